"""`tmt translate`: sentences from arguments, a file, a pipe or a prompt; one line out for each line in."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transformer_mt.cli.options import (
    SEED,
    DeviceOption,
    EngineOption,
    FromOption,
    MbrOption,
    ModelsOption,
    SamplesOption,
    ThemeOption,
    ThreadsOption,
    ToOption,
    UtilityOption,
    WeightsOption,
    ZeroShotOption,
    picture_file,
)
from transformer_mt.errors import TmtError

if TYPE_CHECKING:
    from transformer_mt.reporting.canvas import Theme
    from transformer_mt.workflows.translate import Interpreter

_INPUT = "File with one sentence per line."
_BEAM = "Beam width; 1: greedy. Default: the model's."
_LENGTH_PENALTY = "GNMT length penalty; 0: none. Default: the model's."
_TOP_K = "Sample from the k most likely tokens; 0: all."
_GLOSSARY = "Terms that translations must contain: a file with term, tab, translation. Numbers are copied too."
_DOCUMENT = "Translate a document and keep its markup: Markdown, HTML, subtitles or plain text. -: stdin."
_FORMAT = "Format of the document: text, markdown, html, subtitles or strings. Default: by its suffix."
_OUTPUT = "File to write; it appears once it is complete."
_N_BEST = "Up to N translations per line, written as: line number, tab, score, tab, text."
_TOP_P = "Sample from the fewest tokens with this total probability."
_SCORES = "Write score, tab, text. With --mbr: similarity to the others, 0 to 100."
_JSON = "Write one JSON object with tokens, scores and alignments."
_NO_SPLIT = "Translate each line as one sentence, even if it has several."
_ATTENTION = "Draw the attention maps of one sentence: a .png or .svg file."
_ATTENTION_OF = "Draw one kind (encoder, decoder, cross), layer or head: cross, cross.2, cross.2.1, cross.2.mean."
TextArgument = Annotated[
    list[str] | None, typer.Argument(metavar="TEXT", help="Sentences. Default: read stdin, or prompt for them.")
]
_REPLACE_UNKNOWN = "Replace <unk> by the source word it attends to most."


def translate(
    text: TextArgument = None,
    model: ModelsOption = None,
    to: ToOption = None,
    from_: FromOption = None,
    zero_shot: ZeroShotOption = False,
    input_: Annotated[Path | None, typer.Option("--input", "-i", metavar="FILE", help=_INPUT)] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help=_OUTPUT)] = None,
    document: Annotated[Path | None, typer.Option(metavar="FILE", help=_DOCUMENT)] = None,
    format_: Annotated[str | None, typer.Option("--format", metavar="NAME", help=_FORMAT)] = None,
    beam: Annotated[int | None, typer.Option(min=1, metavar="N", help=_BEAM)] = None,
    n_best: Annotated[int | None, typer.Option(min=1, metavar="N", help=_N_BEST)] = None,
    length_penalty: Annotated[float | None, typer.Option(metavar="X", help=_LENGTH_PENALTY)] = None,
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="Every translation starts with this text.")] = "",
    glossary: Annotated[Path | None, typer.Option(metavar="FILE", help=_GLOSSARY)] = None,
    replace_unknown: Annotated[bool | None, typer.Option("--replace-unknown", help=_REPLACE_UNKNOWN)] = None,
    no_split: Annotated[bool, typer.Option("--no-split", help=_NO_SPLIT)] = False,
    sample: Annotated[bool, typer.Option("--sample", help="Sample translations at random.")] = False,
    mbr: MbrOption = False,
    samples: SamplesOption = None,
    utility: UtilityOption = None,
    temperature: Annotated[float | None, typer.Option(metavar="X", help="Sampling: divides the logits.")] = None,
    top_k: Annotated[int | None, typer.Option(min=0, metavar="N", help=_TOP_K)] = None,
    top_p: Annotated[float | None, typer.Option(metavar="X", help=_TOP_P)] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, metavar="N", help="Seed of sampling.")] = SEED,
    scores: Annotated[bool, typer.Option("--scores", help=_SCORES)] = False,
    json: Annotated[bool, typer.Option("--json", help=_JSON)] = False,
    attention: Annotated[Path | None, typer.Option(metavar="FILE", help=_ATTENTION, parser=picture_file)] = None,
    attention_of: Annotated[str, typer.Option(metavar="WHICH", help=_ATTENTION_OF)] = "all",
    theme: ThemeOption = "light",
    threads: ThreadsOption = None,
    engine: EngineOption = "tmt",
    device: DeviceOption = "auto",
    weights: WeightsOption = "float32",
) -> None:
    """Translate sentences, one line out for each line in; or a document."""
    from transformer_mt.cli.streaming import translate_all, write_document
    from transformer_mt.files.lines import printable
    from transformer_mt.workflows import translate as workflow

    prefix, given = printable(prefix), list(map(printable, text or ()))
    unfit: dict[str, object] = {"TEXT": text, "--input": input_, "--n-best": n_best, "--prefix": prefix}
    unfit |= {"--scores": scores, "--json": json, "--attention": attention, "--no-split": no_split}
    workflow.check_document(document, format_, [name for name, value in unfit.items() if value], given)
    _check_usage(given, input_, output, attention, sample and mbr, document, glossary, model or ())
    workflow.check_drawing(attention, attention_of, theme)
    search = {"method": "mbr" if mbr else "sample" if sample else None, "beam": beam, "length_penalty": length_penalty}
    search |= {"replace_unknown": replace_unknown, "samples": samples, "utility": utility, "temperature": temperature}
    search |= {"top_k": top_k, "top_p": top_p, "n_best": n_best if json else n_best or 1}  # one line out for each in
    computing = workflow.Computing(device, threads, seed, scores or json, weights)
    translator, folders = workflow.open_translator(model or (), search, computing, engine)
    translator = workflow.turned(translator, workflow.Wanted(to, from_, zero_shot))
    terms = translator.glossary(glossary) if glossary is not None else None
    if document is not None:
        write_document(translator, document, format_, output, terms)
        return
    if attention is not None:
        sentences = given if no_split else translator.sentences(given[0], prefix)
        _draw(translator, sentences, prefix, attention, attention_of, theme)
    translate_all(translator, given, input_, output, prefix, scores, _head(folders, json), not no_split, terms)


def _draw(translator: Interpreter, sentences: Sequence[str], prefix: str, file: Path, which: str, theme: Theme) -> None:
    """Draw the first of the sentences of a line."""
    from transformer_mt.workflows.translate import draw_attention

    picture, number = draw_attention(translator, sentences[0], file, prefix, which, theme), len(sentences)
    partial = f" of the first of {number} sentences; --no-split draws the line as one" if number > 1 else ""
    print(f"tmt: wrote {picture}{partial}", file=sys.stderr)


def _head(folders: Sequence[Path], json: bool) -> dict[str, object] | None:
    """The first key of the JSON object: the folder of a model, or the folders of an ensemble."""
    names = [str(folder) for folder in folders]
    return {"model": names if len(names) > 1 else names[0]} if json else None


def _check_usage(
    given: list[str],
    input_: Path | None,
    output: Path | None,
    attention: Path | None,
    two_methods: bool,
    document: Path | None,
    glossary: Path | None,
    models: Sequence[Path],
) -> None:
    """Raises TmtError if options contradict each other. given: the sentences on the command line."""
    from transformer_mt.cli.answers import check_outputs

    check_outputs((), (output,), models)
    if len(given) > 1 and not any(len(sentence.split()) > 1 for sentence in given):
        whole = " ".join(given)
        print(f'tmt: {len(given)} sentences of one word each; one sentence needs quotes: "{whole}"', file=sys.stderr)
    if attention is not None and glossary is not None:
        raise TmtError("--attention draws a translation without terms", remedy="Leave out --glossary or --attention.")
    if two_methods:
        raise TmtError("--sample and --mbr cannot be combined", remedy="Give one of them.")
    if given and input_:
        raise TmtError("sentences on the command line and --input cannot be combined", remedy="Give one of them.")
    if input_ is not None and not input_.exists():
        raise TmtError("no such file", place=input_, remedy="Check the path after --input; stdin needs no option.")
    if input_ is not None and input_.is_dir():
        raise TmtError("this is a folder, not a file", place=input_, remedy="Give a file with one sentence per line.")
    for option, file in (("--input", input_), ("--document", document), ("--glossary", glossary)):
        if file and output and file.exists() and output.exists() and output.samefile(file):
            raise TmtError(f"--output is the same file as {option}", place=output, remedy="Choose another file.")
    if attention is not None and len(given) != 1:
        raise TmtError(
            "--attention draws exactly one sentence", remedy='For example:  tmt translate "..." --attention map.png'
        )
    if attention and output and attention.resolve() == output.resolve():
        raise TmtError("--attention and --output are the same file", place=output, remedy="Choose two files.")
