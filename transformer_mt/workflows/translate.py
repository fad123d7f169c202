"""Opens a translator with its search settings, and draws its attention."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.decoding.choosing import Wanted as Wanted
from transformer_mt.decoding.copying import lacks_markup as lacks_markup
from transformer_mt.decoding.glossary import Glossary as Glossary
from transformer_mt.decoding.glossary import GlossaryCount as GlossaryCount
from transformer_mt.decoding.interpreter import Computing as Computing
from transformer_mt.decoding.interpreter import Hypothesis as Hypothesis
from transformer_mt.decoding.interpreter import Interpreter as Interpreter
from transformer_mt.decoding.interpreter import Translation as Translation
from transformer_mt.errors import TmtError, named, number_of
from transformer_mt.files.lines import check_exists, path_of
from transformer_mt.reporting.attention_map import check_which, plot_attention
from transformer_mt.reporting.canvas import Theme, check_theme, check_writable, drawable
from transformer_mt.reporting.notes import note
from transformer_mt.text.documents.html import Html
from transformer_mt.text.documents.markdown import Markdown
from transformer_mt.workflows.documents import format_of, is_file
from transformer_mt.workflows.engines import load_model, note_sources
from transformer_mt.workflows.models import IN_HELP, find_models, search_settings

_TABLES = frozenset((".csv", ".tsv", ".json", ".jsonl"))


def open_translator(
    models: str | Path | Sequence[str | Path], search: Mapping[str, Any], computing: Computing, engine: str
) -> tuple[Interpreter, list[Path]]:
    """A translator, and the folders of its models. search: settings that replace those of the first model."""
    folders = find_models(models)
    return load_model(folders, search_settings(folders[0], search), computing, engine), folders


def turned(translator: Interpreter, wanted: str | Wanted) -> Interpreter:
    """The translator for one of its directions, with a note if several sources fit. Raises TmtError as `towards`."""
    chosen = translator.towards(*Wanted.of(wanted))
    note_sources(translator.config.data, chosen.direction)
    return chosen


def check_document(document: Path | None, form: str | None, others: Sequence[str], texts: Sequence[str]) -> None:
    """Raises TmtError, before a model is loaded, if a document cannot be read, or if `others` do not go with it.

    document: None if there is none; `-` for stdin. others: options that were given
    texts:    to translate as they are; a note says so if one is the name of a file
    """
    for text in filter(is_file, texts):
        note(f'the text "{text}" is translated; for the file of this name give --document or --input')
    if document is None:
        if form is not None:
            raise TmtError("--format needs --document", remedy="For example:  tmt translate --document README.md")
        return
    if others:
        raise TmtError(f"{others[0]} and --document cannot be combined", remedy="Give one of them.")
    if str(document) == "-" and form is None:
        raise TmtError("stdin has no suffix", place="--document", remedy="Name its format, such as --format markdown.")
    if str(document) != "-":
        check_exists(document)
    format_of(document, form)


def load(
    models: str | Path | Sequence[str | Path] = (),
    *,
    beam: int | None = None,
    length_penalty: float | None = None,
    n_best: int | None = None,
    device: str = "auto",
    threads: int | None = None,
    seed: int = 1,
    engine: str = "tmt",
    weights: str = "float32",
    **search: Any,
) -> Interpreter:
    """Load a model to translate and score with; `Translator`, or its counterpart for an exported model.

    models: a run or model folder, or several for an ensemble; default: the run that finished last
    n_best: number of different translations of a line
    engine: tmt or ctranslate2; an exported folder always uses ctranslate2
    weights: number format: float32, or for GPUs bfloat16
    search: other keys of `decoding`, such as method="mbr"; what is not given stays as the model's config says
    Raises TmtError if a folder has no model, if models do not fit together, or if a setting is wrong.
    """
    search |= {"beam": beam, "length_penalty": length_penalty, "n_best": n_best}
    try:
        return open_translator(models, search, Computing(device, threads, seed, weights=weights), engine)[0]
    except TmtError as error:
        place, message, remedy = map(_as_arguments, (error.place, error.message, error.remedy))
        raise TmtError(message, place=place, remedy=remedy) from None


def _as_arguments(words: str) -> str:
    """The words of an error with arguments of `load` instead of options of `tmt translate`."""
    words = words.replace(
        IN_HELP, "help(transformer_mt.load) lists its arguments; docs/configuration.md those of the search."
    )
    words = re.sub(r"--(sample|mbr)\b", r'method="\1"', words)
    settings = [
        "device",
        "threads",
        "seed",
        "engine",
        "weights",
        *(name.replace("_", "-") for name in DecodingConfig.model_fields),
    ]
    return re.sub(rf"--({'|'.join(settings)})(?: (\d+)| (auto|tmt|b?float\d+))?\b(?!-)", _as_argument, words)


def _as_argument(option: re.Match[str]) -> str:
    name, number, word = option.groups()
    value = f'="{word}"' if word else f"={number}" if number else ""
    return name.replace("-", "_") + value


def check_drawing(file: Path | None, which: str, theme: Theme) -> None:
    """Raises TmtError, before a model is loaded, if `draw_attention` cannot write this file or read `which`.

    file: None to draw nothing; `which` must then be `all`, and `theme` `light`.
    """
    if file is not None:
        check_which(which)
        check_writable(file)
    elif which != "all" or theme != "light":
        option = "--attention-of" if which != "all" else "--theme"
        raise TmtError(f"{option} needs --attention", remedy="Add a file to draw in:  --attention map.png")


def draw_attention(
    translator: Interpreter,
    line: str,
    file: str | Path,
    prefix: str = "",
    which: str = "all",
    theme: Theme = "light",
) -> Path:
    """Draw the attention maps of the first model while it translates a sentence; return the file.

    file:   PNG or SVG, by its ending
    prefix: the beginning of the translation
    which:  `all`, or KIND[.LAYER[.HEAD]]; KIND is encoder, decoder or cross, HEAD a number or `mean`
    theme:  light or dark
    Raises TmtError if there is no such map, or if the translator's engine gives no attention.
    """
    from transformer_mt.decoding.translator import Translator

    check_theme(theme)
    if not isinstance(translator, Interpreter):
        problem = f"{named(translator)} was given, but a loaded model is needed"
        raise TmtError(problem, place="translator", remedy='For example:  tmt.load("runs/NAME")')
    if not isinstance(translator, Translator):
        raise TmtError("--attention needs --engine tmt", remedy="CTranslate2 returns the attention of one layer only.")
    if len(translator.folders) > 1:
        note(f"the attention is that of the first model, {translator.folders[0]}")
    seen = translator.attention(line, prefix=prefix)
    texts = {line, *seen.rows, *seen.columns}
    if missing := sum(one != shown for text in texts for one, shown in zip(text, drawable(text), strict=True)):
        note(f"{number_of(missing, 'character')} drawn as boxes: no font of the pictures has them")
    return plot_attention(seen.maps, seen.rows, seen.columns, path_of(file), line, which=which, theme=theme)


def note_form(file: Path) -> None:
    """Note if the name of a file is that of a table or a document, since all its lines are translated."""
    if _TABLES.intersection(file.suffixes):
        note(f"{file} is translated line by line: all its columns are translated, with their separators")
    elif {*Markdown.suffixes, *Html.suffixes}.intersection(file.suffixes):
        note(f"{file} is translated line by line: --document in place of --input keeps its markup")


@contextmanager
def loaded_stays() -> Iterator[None]:
    """For long work: Python does not look for garbage among what is there now, PyTorch and the models."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
