"""`tmt prepare`: from a corpus to ids on disk, with a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from transformer_mt.cli.options import ConfigOption, JsonOption, SetOption, print_json

if TYPE_CHECKING:
    from pathlib import Path

    from transformer_mt.config.schema import Config
    from transformer_mt.data.prepared import Prepared


def prepare(
    config: ConfigOption,
    set_: SetOption = None,
    force: Annotated[bool, typer.Option("--force", help="Prepare again, even if nothing changed.")] = False,
    json: JsonOption = False,
) -> None:
    """Clean, split, learn tokenizers, build vocabularies, write stores; skips what is up to date."""
    from transformer_mt.cli.prepare_tables import remarks, report_lines
    from transformer_mt.config.load import load_config

    prepared = prepare_with_progress(load_config(config, set_ or ()), force)
    report = prepared.manifest["report"]
    if json:
        print_json(
            {
                **report,
                "remarks": [remark._asdict() for remark in remarks(report)],
                "files": prepared.manifest["files"],
                "folder": str(prepared.folder),
                "is_new": prepared.is_new,
            }
        )
    else:
        print("\n".join([*report_lines(report), "", *_where(prepared)]))


def _where(prepared: Prepared) -> list[str]:
    seconds = prepared.manifest["report"]["seconds"]
    made = f"prepared in {seconds:,} s" if prepared.is_new else "up to date; --force prepares it again"
    return [f"{prepared.folder}: {made}", f"{_plot_of(prepared)}: lengths of the training sentences"]


def prepare_with_progress(config: Config, force: bool = False) -> Prepared:
    """Prepare with a bar on stderr; draws the histogram of lengths when something was written."""
    from tqdm import tqdm

    from transformer_mt.data.prepare import prepare as prepare_data

    doing_now = ""
    with tqdm(unit=" pairs", desc="checking data", leave=False, disable=None) as bar:

        def show(doing: str, pairs: int) -> None:
            nonlocal doing_now
            if doing != doing_now:
                doing_now = doing
                bar.reset()
                bar.set_description_str(doing)
            bar.update(pairs - bar.n)

        prepared = prepare_data(config, force, show)
    _plot_lengths(prepared)
    return prepared


def _plot_of(prepared: Prepared) -> Path:
    return prepared.folder / "plots" / "lengths.png"


def _plot_lengths(prepared: Prepared) -> None:
    file = _plot_of(prepared)
    if file.exists():
        return
    from transformer_mt.reporting.plots import plot_lengths

    report = prepared.manifest["report"]
    train, languages = report["splits"]["train"], report["languages"]
    plot_lengths({f"{side} ({languages[side]})": train[side]["histogram"] for side in ("source", "target")}, file)
