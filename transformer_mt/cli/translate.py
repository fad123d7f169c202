"""`tmt translate`: arguments, a file, a pipe, or a prompt; one line out for each line in."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transformer_mt.cli.options import (
    SEED,
    DeviceOption,
    MbrOption,
    SamplesOption,
    ThreadsOption,
    UtilityOption,
    printable,
)

if TYPE_CHECKING:
    from tqdm import tqdm

    from transformer_mt.cli.answers import Form
    from transformer_mt.config.decoding import DecodingConfig
    from transformer_mt.decoding.interpreter import Interpreter

_OUTPUT = "File to write; it appears once it is whole."
_N_BEST = "Up to N translations of each line, one a line: line number, tab, score, tab, text."
_TOP_P = "Sample from the fewest tokens whose probabilities sum to this."
_SCORES = "Write score, tab, text. With --mbr the score is the likeness to the others, 0 to 100."


def translate(
    text: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="Sentences; without any: a pipe, or a prompt.")
    ] = None,
    model: Annotated[
        list[Path] | None,
        typer.Option("--model", "-m", help="Model folder; default: the run that finished last. Several: an ensemble."),
    ] = None,
    input_: Annotated[Path | None, typer.Option("--input", "-i", help="File of sentences, one a line.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help=_OUTPUT)] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Width of the beam; 1 is greedy.")] = None,
    n_best: Annotated[int | None, typer.Option(min=1, help=_N_BEST)] = None,
    length_penalty: Annotated[float | None, typer.Option(help="GNMT length penalty; 0: none.")] = None,
    prefix: Annotated[str, typer.Option(help="What every translation must begin with.")] = "",
    replace_unknown: Annotated[
        bool | None, typer.Option("--replace-unknown", help="Write the source word for a word unknown to the model.")
    ] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw translations at random.")] = False,
    mbr: MbrOption = False,
    samples: SamplesOption = None,
    utility: UtilityOption = None,
    temperature: Annotated[float | None, typer.Option(help="Divides the logits when sampling.")] = None,
    top_k: Annotated[int | None, typer.Option(min=0, help="Sample from the k likeliest tokens; 0: all.")] = None,
    top_p: Annotated[float | None, typer.Option(help=_TOP_P)] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of sampling.")] = SEED,
    scores: Annotated[bool, typer.Option("--scores", help=_SCORES)] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object with tokens, scores and alignments.")] = False,
    attention: Annotated[Path | None, typer.Option(metavar="PNG", help="Draw the attention of one sentence.")] = None,
    threads: ThreadsOption = None,
    engine: Annotated[
        str, typer.Option(help="tmt or ctranslate2; a folder of `tmt export` always uses the second.")
    ] = "tmt",
    device: DeviceOption = "auto",
) -> None:
    """Translate sentences: one line out for each line in, in order (--n-best: several)."""
    _check_usage(text, input_, output, attention, engine)
    prefix = printable(prefix)
    from transformer_mt.cli.models import find_models, search_settings

    folders = find_models(model)
    sampling = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "samples": samples, "utility": utility}
    lines = n_best if n_best is not None or json else 1  # one line out for each line in, whatever the model's own
    given = {"beam": beam, "n_best": lines, "length_penalty": length_penalty, "replace_unknown": replace_unknown}
    decoding = search_settings(folders[0], {**given, **sampling, "method": _method(sample, mbr)})
    translator = _load(engine, folders, decoding, device, threads, seed, scored=scores or json)
    if attention is not None:
        assert text is not None, "see _check_usage"
        _draw(translator, printable(text[0]), prefix, attention)
    from transformer_mt.cli.answers import form_of

    form = None if json else form_of(scores, decoding.n_best)
    names = [str(folder) for folder in folders]
    _translate_all(translator, text, input_, output, form, prefix, {"model": names if len(names) > 1 else names[0]})


def _check_usage(
    text: list[str] | None, input_: Path | None, output: Path | None, attention: Path | None, engine: str
) -> None:
    """Raises TmtError where options contradict each other."""
    from transformer_mt.errors import TmtError

    if text and input_:
        raise TmtError("sentences on the command line and --input exclude each other", remedy="Give one of them.")
    if input_ is not None and not input_.exists():
        raise TmtError("no such file", place=input_, remedy="Check the path after --input.")
    if input_ is not None and input_.is_dir():
        raise TmtError("this is a folder, not a file", place=input_, remedy="Name a file of sentences, one a line.")
    if output is not None and output.is_dir():
        raise TmtError("this is a folder, not a file", place=output, remedy="Name a file to write.")
    if output is not None and not output.absolute().parent.is_dir():
        raise TmtError("no such folder", place=output.parent, remedy=f"Make it first:  mkdir -p {output.parent}")
    if input_ and output and output.exists() and output.samefile(input_):
        raise TmtError("--output is the same file as --input", place=output, remedy="Name another file.")
    if attention is not None and len(text or []) != 1:
        raise TmtError(
            "--attention draws exactly one sentence", remedy='For example:  tmt translate "..." --attention map.png'
        )
    if attention is not None and attention.exists() and not attention.is_file():
        raise TmtError("this is no file to draw in", place=attention, remedy="Name a file:  --attention map.png")
    if attention and output and attention.resolve() == output.resolve():
        raise TmtError("--attention and --output are the same file", place=output, remedy="Name two files.")
    if engine not in ("tmt", "ctranslate2"):
        raise TmtError(f"'{engine}' is no engine", place="--engine", remedy="Use tmt or ctranslate2.")


def _method(sample: bool, mbr: bool) -> str | None:
    """The way of searching that was asked for; None: as the model and the other options say."""
    from transformer_mt.errors import TmtError

    if sample and mbr:
        raise TmtError("--sample and --mbr are two ways of searching", remedy="Give one of them.")
    return "mbr" if mbr else "sample" if sample else None


def _load(
    engine: str,
    folders: list[Path],
    decoding: DecodingConfig,
    device: str,
    threads: int | None,
    seed: int,
    scored: bool,
) -> Interpreter:
    from transformer_mt.export.ctranslate2 import is_exported, load_engine

    if engine == "ctranslate2" or any(map(is_exported, folders)):
        if len(folders) > 1:
            from transformer_mt.errors import TmtError

            raise TmtError("CTranslate2 takes one model", remedy="An ensemble needs --engine tmt and model folders.")
        return load_engine(folders[0], decoding, threads or 0, device, seed, scored)
    from transformer_mt.cli.models import load_translator

    return load_translator(folders, decoding, device, threads, seed, scored)


def _draw(translator: Interpreter, line: str, prefix: str, file: Path) -> None:
    from transformer_mt.decoding.translator import Translator
    from transformer_mt.errors import TmtError
    from transformer_mt.reporting.attention_map import plot_attention

    if not isinstance(translator, Translator):
        raise TmtError("--attention needs --engine tmt", remedy="CTranslate2 hands out one layer's only.")
    seen = translator.attention(line, prefix=prefix)
    plot_attention(seen.maps, seen.rows, seen.columns, file, line)
    print(f"tmt: wrote {file}", file=sys.stderr)


def _translate_all(
    translator: Interpreter,
    text: list[str] | None,
    input_: Path | None,
    output: Path | None,
    form: Form | None,
    prefix: str,
    head: dict[str, Any],
) -> None:
    """Read, translate and write batch by batch; notes and progress go to stderr."""
    from functools import partial

    from transformer_mt.cli.answers import Notes, Writer, opened
    from transformer_mt.cli.lines import check_file

    known = check_file(input_) if input_ is not None and input_.is_file() else None
    with _progress(known) as bar, opened(output) as stream:
        notes = Notes(partial(print if bar is None else bar.write, file=sys.stderr))
        writer = Writer(stream, form, head)
        for batch in _batches(text, input_, known is not None, notes, translator):
            prefixes = [prefix] * len(batch) if prefix else None
            answers = translator.translate(batch, prefixes, align=form is None)
            for line, translation in zip(batch, answers, strict=True):
                writer.write(line, translation)
                notes.tell(writer.written, translation.notes)
                if bar is not None:
                    bar.update()
            writer.flush()
        writer.close()
        notes.close()


def _batches(
    text: list[str] | None, input_: Path | None, checked: bool, notes: Any, translator: Interpreter
) -> Iterator[list[str]]:
    """Sentences of the command line, a file, a pipe or a prompt."""
    from transformer_mt.cli.lines import file_batches, pipe_batches, prompt_batches

    def warn(number: int) -> None:
        notes.tell(number, ("not UTF-8; each wrong byte was read as U+FFFD",))

    if text:
        return iter([[printable(sentence) for sentence in text]])
    if input_ is not None and checked:
        return file_batches(input_)
    if input_ is not None:
        return pipe_batches(os.open(input_, os.O_RDONLY), warn)
    if sys.stdin is None:
        return iter(())
    if sys.stdin.isatty():
        data = translator.config.data
        print("tmt: one sentence a line; Ctrl-D leaves", file=sys.stderr)
        return prompt_batches(f"{data.source} > {data.target}: ")
    return pipe_batches(sys.stdin.fileno(), warn)


@contextmanager
def _progress(known: int | None) -> Iterator[tqdm[Any] | None]:
    """A bar for a file of known length, where a person watches."""
    if known is None or not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(total=known, unit=" lines", file=sys.stderr, dynamic_ncols=True) as bar:
        yield bar
