"""`tmt score`: the log-probability of each target line as the translation of its source line."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transformer_mt.cli.answers import LineNotes, check_outputs, opened
from transformer_mt.cli.options import (
    STDOUT,
    DeviceOption,
    EngineOption,
    FromOption,
    ModelsOption,
    ThreadsOption,
    ToOption,
    ZeroShotOption,
    as_unicode,
)
from transformer_mt.errors import TmtError, visible

if TYPE_CHECKING:
    from transformer_mt.workflows.score import PairScore

_STDIN = Path("-")
_SOURCE = "Source sentences, one a line; - for stdin."
_TARGET = "Their translations, line by line."
_OUTPUT = "File to write; it appears once it is complete. Default: stdout."
_ALIGNMENT = "Also write word alignments to this file (- for stdout), in the Pharaoh format: 0-0 1-2."
_GAIN = "Also write what the source adds, in nats per token: the best score to find wrong pairs."
_PER_TOKEN = "Also write each token with its log-probability."
_JSON = "Write one JSON object a line, with tokens, their scores, and notes."


def score(
    source: Annotated[Path, typer.Option("--source", metavar="FILE", help=_SOURCE)],
    target: Annotated[Path, typer.Option("--target", metavar="FILE", help=_TARGET)],
    model: ModelsOption = None,
    to: ToOption = None,
    from_: FromOption = None,
    zero_shot: ZeroShotOption = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help=_OUTPUT)] = None,
    alignment: Annotated[Path | None, typer.Option("--alignment", metavar="FILE", help=_ALIGNMENT)] = None,
    gain: Annotated[bool, typer.Option("--gain", help=_GAIN)] = False,
    per_token: Annotated[bool, typer.Option("--per-token", help=_PER_TOKEN)] = False,
    json: Annotated[bool, typer.Option("--json", help=_JSON)] = False,
    threads: ThreadsOption = None,
    engine: EngineOption = "tmt",
    device: DeviceOption = "auto",
) -> None:
    """Score sentence pairs by the log-probability of the target.

    Writes a line for each pair: log-probability in nats, its mean per token, number of tokens; separated by tabs.
    """
    from transformer_mt.workflows.score import Computing, ScoreTotals, Wanted, pharaoh
    from transformer_mt.workflows.score import score as work

    source, target = _inputs(source, target)
    check_outputs((source, target), (output or STDOUT, alignment), model)
    computing = Computing(device, threads)
    align = alignment is not None or json
    wanted = Wanted(to, from_, zero_shot)
    pairs = work(source, target, model or (), align=align, gain=gain, computing=computing, engine=engine, wanted=wanted)
    totals, notes = ScoreTotals(), LineNotes(partial(print, file=sys.stderr))
    with ExitStack() as stack:
        stream = stack.enter_context(opened(output))
        links = stack.enter_context(opened(alignment)) if alignment is not None else None
        for number, one in enumerate(pairs, start=1):
            text = _as_json(number, one) if json else _as_row(one, per_token)
            stream.write(f"{text}\n".encode("utf-8", "replace"))
            if links is not None:
                links.write(f"{pharaoh(one.word_alignment or ())}\n".encode())
            totals.add(one)
            notes.add(number, one.notes)
        stream.flush()
    notes.close()
    print(f"tmt: {totals}", file=sys.stderr)


def _inputs(*files: Path) -> list[Path]:
    """The files; `-` is stdin. Raises TmtError if several are."""
    if files.count(_STDIN) > 1:
        raise TmtError("both files are stdin", place="--source - --target -", remedy="Name a file for one of them.")
    stdin = Path("/dev/stdin")  # not on Windows: there is no such file then
    return [stdin if file == _STDIN and stdin.exists() else file for file in files]


def _as_row(one: PairScore, per_token: bool) -> str:
    row = f"{one.log_probability:.6f}\t{one.mean:.6f}\t{len(one.tokens)}"
    if one.gain is not None:
        row += f"\t{one.gain:.6f}"
    if per_token:
        row += "\t" + " ".join(
            f"{visible(token)} {value:.6f}" for token, value in zip(one.tokens, one.token_scores, strict=True)
        )
    return row


def _as_json(number: int, one: PairScore) -> str:
    value = {
        "line": number,
        "log_probability": round(one.log_probability, 6),
        "mean": round(one.mean, 6),
        "gain": one.gain if one.gain is None else round(one.gain, 6),
        "source_tokens": one.source_tokens,
        "tokens": one.tokens,
        "token_scores": [round(value, 6) for value in one.token_scores],
        "word_alignment": one.word_alignment,
        "notes": one.notes,
    }
    return as_unicode(value)
