"""Export to CTranslate2, a fast engine for CPUs and GPUs, and loading of exported models.

model.bin, config.json, *_vocabulary.json   written by CTranslate2's classes; other programs read only these
config.yaml, source/, target/               as in a model directory: how text becomes tokens and back
export.json                                 what it was made of, and checksums (`origin`)

`specification` decides which tensor goes where, `engine` searches. CTranslate2 is optional and imported when needed. So
is PyTorch: translating with an exported model does not need it.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.load import CONFIG, dump_config
from transformer_mt.decoding.computing import FLOAT32, Computing
from transformer_mt.errors import TmtError
from transformer_mt.exporting.origin import is_exported, parts_of, write_origin
from transformer_mt.files.replace import replaced_folder
from transformer_mt.text.codec import SOURCE, TARGET, save_codecs

if TYPE_CHECKING:
    from transformer_mt.decoding.model_directory import ModelDirectory
    from transformer_mt.exporting.engine import Ctranslate2Engine

# What a user has put beside the parts of an export, and what stays when it is replaced
KEPT_FILES = re.compile(r"(README|LICEN[CS]E)[\w.-]*", re.IGNORECASE)
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


def write_export(
    directory: ModelDirectory,
    output: Path,
    quantization: str = "float32",
    prove: Callable[[Path], None] = lambda written: None,
) -> None:
    """Write an export to a temporary folder, then replace `output` with it.

    output:       a new or empty folder, or an earlier export; a README and a licence in it stay
    quantization: how weights are stored, one of QUANTIZATIONS
    prove:        called with the temporary folder; if it raises, `output` stays as it was
    Raises TmtError if CTranslate2 is missing or does not support the model, or if `output` contains other files.
    """
    require_ctranslate2()
    from transformer_mt.decoding.model_directory import require_replaceable

    require_export_folder(output)
    require_replaceable(output)
    with replaced_folder(output) as aside:
        _fill(aside, directory, quantization)
        prove(aside)
        for file in _kept_files(output):
            shutil.copy2(file, aside, follow_symlinks=False)


def load_engine(
    folder: Path, decoding: DecodingConfig | None = None, computing: Computing | None = None
) -> Ctranslate2Engine:
    """An engine that translates like `decoding.translator.Translator`.

    folder: an export; or a model directory, which is converted in float32 to a temporary folder
    Raises TmtError if CTranslate2 is missing or does not support the model, or if the folder is damaged.
    """
    require_ctranslate2()
    from transformer_mt.exporting.engine import Ctranslate2Engine, refuse_unsupported

    computing = computing or Computing()
    if computing.weights != FLOAT32:
        raise TmtError(
            "CTranslate2 takes the number format of the export",
            place="--weights",
            remedy="Leave out --weights, or choose a format when exporting:  tmt export --quantization bfloat16",
        )
    with _as_exported(folder) as exported:
        if not re.fullmatch("cpu|auto|cuda(:[0-9]+)?", computing.device):
            message = f"CTranslate2 does not run on '{computing.device}'"
            raise TmtError(message, place="--device", remedy="Use cpu, cuda or auto; or cuda:1 for the second GPU.")
        try:
            engine = Ctranslate2Engine(exported, decoding, computing)
        except (RuntimeError, ValueError, KeyError, OSError) as error:  # a damaged file, no such device, a newer format
            raise TmtError(
                f"CTranslate2 cannot load this folder: {error}",
                place=folder,
                remedy="Export the model again. --device cuda needs an NVIDIA GPU and its libraries.",
            ) from None
    refuse_unsupported(engine.search, folder)  # here, to name this folder and not a temporary one
    return engine


def require_ctranslate2() -> None:
    """Raises TmtError unless CTranslate2 is installed."""
    if importlib.util.find_spec("ctranslate2") is None:
        raise TmtError("CTranslate2 is not installed", remedy="pip install ctranslate2")


def require_export_folder(output: Path) -> None:
    """Raises TmtError if `output` exists and is neither an empty folder nor an earlier export."""
    if not output.exists():
        return
    remedy = "Give --output a new or empty folder, or an earlier export."
    if not output.is_dir():
        raise TmtError("this is a file", place=output, remedy=remedy)
    folders = [folder for folder in (output / SOURCE, output / TARGET) if folder.is_dir() and not folder.is_symlink()]
    found = {*output.iterdir(), *(file for folder in folders for file in folder.iterdir())}
    found = found.difference(folders, _kept_files(output))
    if others := sorted({path.relative_to(output).as_posix() for path in found} - parts_of(output)):
        message = f"this folder contains other files ({', '.join(others[:3])}); nothing was written"
        raise TmtError(message, place=output, remedy=remedy)


def _kept_files(output: Path) -> list[Path]:
    """What a user has put into an export, and what a new export keeps."""
    return [file for file in output.glob("*") if KEPT_FILES.fullmatch(file.name) and file.is_file()]


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
    write_origin(folder, quantization, directory.fingerprint)


@contextmanager
def _as_exported(folder: Path) -> Iterator[Path]:
    """The folder itself if it is an export; for a model directory, a temporary export."""
    if is_exported(folder):
        yield folder
        return
    from transformer_mt.decoding.model_directory import load_model_directory

    with tempfile.TemporaryDirectory() as name:
        _fill(Path(name), load_model_directory(folder), "float32")
        yield Path(name)
