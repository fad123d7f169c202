"""Export to CTranslate2, a fast engine for CPUs and GPUs, and translation with what was exported.

model.bin, config.json, *_vocabulary.json   CTranslate2's own, written by its classes; other programs read these
config.yaml, source/, target/               ours, as in a model directory: how text becomes tokens and back

Which tensor goes where is `specification`'s, how it searches, `engine`'s. CTranslate2 is optional and imported late;
so is PyTorch, which translating with what was exported does without.
"""

from __future__ import annotations

import importlib.util
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.load import CONFIG, dump_config
from transformer_mt.decoding.interpreter import Computing
from transformer_mt.errors import TmtError
from transformer_mt.files.replace import replaced_folder
from transformer_mt.text.codec import save_codecs

if TYPE_CHECKING:
    from transformer_mt.decoding.model_directory import ModelDirectory
    from transformer_mt.exporting.engine import Ctranslate2Engine

WEIGHTS = "model.bin"
OURS = re.compile(r"model\.bin|config\.(json|yaml)|\w+_vocabulary\.json|source|target")  # what an export consists of
QUANTIZATIONS = (
    "float32",
    "float16",
    "bfloat16",
    "int16",
    "int8",
    "int8_float32",
    "int8_float16",
    "int8_bfloat16",
)


def is_exported(folder: Path) -> bool:
    """Is this what `write_export` writes?"""
    return (folder / WEIGHTS).is_file() and (folder / CONFIG).is_file()


def write_export(
    directory: ModelDirectory,
    output: Path,
    quantization: str = "float32",
    prove: Callable[[Path], None] = lambda written: None,
) -> None:
    """Write the folder aside, then put it in place of an earlier export.

    quantization: one of QUANTIZATIONS; how the weights are stored. prove: may look at what was written before it gets
    its place, and raise what it thinks of it.
    Raises TmtError where CTranslate2 is missing or cannot express the model, or `output` holds something else.
    """
    require_ctranslate2()
    from transformer_mt.decoding.model_directory import require_replaceable

    refuse_foreign(output)
    require_replaceable(output)
    with replaced_folder(output) as aside:
        _fill(aside, directory, quantization)
        prove(aside)


def load_engine(
    folder: Path, decoding: DecodingConfig | None = None, computing: Computing | None = None
) -> Ctranslate2Engine:
    """An engine that translates as `decoding.translator.Translator` does.

    folder: an exported one, or a model directory, which is then converted to float32 for this once.
    Raises TmtError if CTranslate2 is missing, or the folder is neither, damaged, or not expressible.
    """
    require_ctranslate2()
    from transformer_mt.exporting.engine import Ctranslate2Engine, refuse_unsupported

    computing = computing or Computing()
    with _as_exported(folder) as exported:
        if computing.device not in ("cpu", "cuda", "auto"):
            message = f"CTranslate2 does not run on '{computing.device}'"
            raise TmtError(message, place="--device", remedy="Use cpu, cuda or auto.")
        try:
            engine = Ctranslate2Engine(exported, decoding, computing)
        except (RuntimeError, ValueError, KeyError, OSError) as error:  # a damaged file, no such device, a newer format
            raise TmtError(
                f"CTranslate2 cannot load this: {error}",
                place=folder,
                remedy="Export the model again; for --device cuda, an NVIDIA GPU and its libraries must be there.",
            ) from None
    refuse_unsupported(engine.search, folder)  # named, not the temporary folder of a conversion
    return engine


def require_ctranslate2() -> None:
    """Raises TmtError unless CTranslate2 is installed."""
    if importlib.util.find_spec("ctranslate2") is None:
        raise TmtError("CTranslate2 is not installed", remedy="pip install 'transformer_mt[ctranslate2]'")


def refuse_foreign(output: Path) -> None:
    """Raises TmtError where a file, or a folder that holds more than an earlier export, stands in the way."""
    if not output.exists():
        return
    foreign = [path.name for path in output.iterdir() if not OURS.fullmatch(path.name)] if output.is_dir() else []
    if foreign or not output.is_dir() or (any(output.iterdir()) and not is_exported(output)):
        held = f" ({', '.join(sorted(foreign)[:3])})" if foreign else ""
        raise TmtError(
            f"this folder holds something else{held}; nothing was written" if output.is_dir() else "this is a file",
            place=output,
            remedy="Name a new or an empty folder, or an earlier export, after --output.",
        )


def _fill(folder: Path, directory: ModelDirectory, quantization: str) -> None:
    """Write an export into an empty folder."""
    from transformer_mt.exporting.specification import specification

    data, decoding = directory.config.data, directory.config.decoding
    longest = max(int(decoding.max_length_ratio * data.max_length) + decoding.max_length_offset, data.max_length)
    tokens = directory.source.vocabulary.tokens, directory.target.vocabulary.tokens
    spec = specification(directory.model, *tokens, positions=longest)
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))
    (folder / CONFIG).write_text(dump_config(directory.config), encoding="utf-8")
    save_codecs((directory.source, directory.target), folder)


@contextmanager
def _as_exported(folder: Path) -> Iterator[Path]:
    """The folder itself, or what a model directory would be exported to, until an engine has read it."""
    if is_exported(folder):
        yield folder
        return
    from transformer_mt.decoding.model_directory import load_model_directory

    with tempfile.TemporaryDirectory() as name:
        _fill(Path(name), load_model_directory(folder), "float32")
        yield Path(name)
