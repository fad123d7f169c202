"""Options that several commands share, written once."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from transformer_mt.cli import completion
from transformer_mt.errors import CONTROLS, TmtError

STDOUT = Path("-")
SEED = 1  # default seed of sampling

ConfigOption = Annotated[
    Path,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="YAML config of the run.",
        show_default=False,
        autocompletion=completion.config_files,
    ),
]
_RUN = "Folder of the run, such as runs/NAME. Default: the run that finished last."
RunOption = Annotated[Path | None, typer.Option("--run", metavar="DIR", help=_RUN, autocompletion=completion.runs)]
_SET = "Override a config key, such as training.max_epochs=5; repeatable."
SetOption = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help=_SET)]
DeviceOption = Annotated[
    str,
    typer.Option("--device", metavar="NAME", help="auto, cpu, cuda, cuda:1 or mps.", autocompletion=completion.devices),
]
_ENGINE = "tmt or ctranslate2; exported folders always use ctranslate2."
EngineOption = Annotated[str, typer.Option("--engine", metavar="NAME", help=_ENGINE, autocompletion=completion.engines)]
MbrOption = Annotated[
    bool,
    typer.Option(
        "--mbr", help="Minimum Bayes risk: the sample (with --beam: the hypothesis) most similar to the others."
    ),
]
SamplesOption = Annotated[
    int | None, typer.Option("--samples", min=1, metavar="N", help="Number of samples for --mbr.", show_default=False)
]
UtilityOption = Annotated[
    str | None,
    typer.Option(
        "--utility",
        metavar="NAME",
        help="Similarity for --mbr: chrf or bleu. Default: the model's.",
        autocompletion=completion.utilities,
    ),
]
ThreadsOption = Annotated[
    int | None,
    typer.Option(
        "--threads", min=1, max=1024, metavar="N", help="CPU threads. Default: one per core.", show_default=False
    ),
]
WeightsOption = Annotated[
    str, typer.Option("--weights", metavar="NAME", help="Number format: float32, or for GPUs bfloat16.")
]
ToOption = Annotated[
    str | None, typer.Option("--to", metavar="CODE", help="Target language, for a model of several directions.")
]
FromOption = Annotated[
    str | None, typer.Option("--from", metavar="CODE", help="Source language. Default: any that the model reads.")
]
ZeroShotOption = Annotated[
    bool, typer.Option("--zero-shot", help="Allow a direction that the model was not trained for.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
_MODEL = "Run or model folder. Default: the newest finished run."
_MODELS = "Run or model folder; repeat it for an ensemble. Default: the newest finished run."
model_option = partial(typer.Option, "--model", "-m", metavar="DIR", autocompletion=completion.models)
ModelOption = Annotated[Path | None, model_option(help=_MODEL)]
ModelsOption = Annotated[list[Path] | None, model_option(help=_MODELS)]
ThemeOption = Annotated[Literal["light", "dark"], typer.Option("--theme", help="Colours of the picture.")]


def picture_file(text: str) -> Path:
    """The path of a picture. Raises TmtError for `-`, an empty name and a folder, which a Path does not show."""
    if text in ("", "-") or text.endswith(("/", os.sep)):
        raise TmtError(
            f"'{text}' is not the name of a picture", remedy="Name a file, such as picture.png or picture.svg."
        )
    return Path(text)


def print_json(value: object) -> None:
    """Print the JSON object of a command on stdout; escape letters that its encoding may not have."""
    is_unicode = "utf" in (sys.stdout.encoding or "utf-8").lower()
    print(as_unicode(value, indent=1) if is_unicode else json.dumps(value, indent=1))


def as_unicode(value: object, indent: int | None = None) -> str:
    """JSON with letters as they are; control characters, which a terminal acts on, are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)  # escapes only those below U+0020
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
