"""Prepares data: from a corpus to ids on disk, with a report and a plot of the lengths."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

from transformer_mt.config.load import ConfigLike, config_of
from transformer_mt.config.runs import RUNS
from transformer_mt.config.schema import Config
from transformer_mt.data.doctor import DataReport as DataReport
from transformer_mt.data.doctor import Outliers as Outliers
from transformer_mt.data.doctor import PairCounts as PairCounts
from transformer_mt.data.parent import Parent
from transformer_mt.data.prepare import Progress
from transformer_mt.data.prepare import prepare as prepare_data
from transformer_mt.data.prepared import Prepared
from transformer_mt.errors import visible
from transformer_mt.reporting import bars
from transformer_mt.reporting.distributions import plot_data


def prepare(config: ConfigLike, force: bool = False, cluster: str | None = None) -> Prepared:
    """Clean and split the corpus, train tokenizers, build vocabularies and write ids, if that is not done yet.

    config: a Config or a YAML file. force: prepare again. The result has a `report` and a `folder`.
    cluster: a Ray cluster that does the work: `auto`, `local`, `ray://host:port` or `host:port`
    Raises TmtError for wrong data (with file and line) and if writing fails; earlier prepared data is then unchanged.
    """
    settings = config_of(config)
    return prepare_with(settings, _parent_of(settings), force, cluster)


def prepare_with(
    config: Config,
    parent: Parent | None,
    force: bool = False,
    cluster: str | None = None,
    accept: Callable[[Sequence[Path]], object] = lambda files: None,
) -> Prepared:
    """The same for a checked config, with the tokenizers of a parent if there is one. accept: as `data.prepare`"""

    def say(message: str) -> None:
        tqdm.write(visible(message), sys.stderr)

    with _progress() as progress:
        prepared = prepare_data(config, force, progress, parent, cluster, say, accept)
    if not prepared.picture.exists():
        plot_data(prepared.lengths(), None, prepared.picture)
    return prepared


def _parent_of(config: Config) -> Parent | None:
    if config.training.start_from is None:
        return None
    from transformer_mt.workflows.parents import parent_of  # imports torch: most of the time that a second call takes

    return parent_of(config, RUNS / config.name)


@contextmanager
def _progress() -> Iterator[Progress]:
    """A progress bar for each stage: pairs, pairs per second, and the time left if it can be estimated.

    Without a terminal, a line now and then.
    """
    if not bars.is_watched():
        yield bars.PlainProgress("pairs", lambda line: print(line, file=sys.stderr, flush=True)).show
        return
    stage = ""
    with bars.bar(unit=" pairs", desc="checking data", miniters=1) as shown:

        def show(doing: str, pairs: int, share: float | None) -> None:
            nonlocal stage
            if doing != stage:
                stage = doing
                shown.set_description_str(doing, refresh=False)
                shown.total = None
                shown.reset()
            shown.total = round(pairs / share) if share else None
            shown.update(pairs - shown.n)

        yield show
