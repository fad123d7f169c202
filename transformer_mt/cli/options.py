"""Options that several commands share, written once."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

SEED = 1  # of sampling, where nobody says another

ConfigOption = Annotated[Path, typer.Option("--config", "-c", help="YAML config of the run.", show_default=False)]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a config key; may be given several times."),
]
DeviceOption = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]
MbrOption = Annotated[
    bool,
    typer.Option(
        "--mbr", help="Minimum Bayes risk: of samples, or of what --beam finds, the one most like the others."
    ),
]
SamplesOption = Annotated[
    int | None, typer.Option("--samples", min=1, help="Number of samples for --mbr.", show_default=False)
]
UtilityOption = Annotated[
    str | None, typer.Option("--utility", help="Likeness for --mbr: chrf or bleu. Default: the model's.")
]
ThreadsOption = Annotated[
    int | None,
    typer.Option("--threads", min=1, max=1024, help="CPU threads; default: one for each core.", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
ModelOption = Annotated[
    Path | None,
    typer.Option("--model", "-m", help="Model folder; default: the run that finished last.", show_default=False),
]
ThemeOption = Annotated[Literal["light", "dark"], typer.Option("--theme", help="Colours of the picture.")]


def print_json(value: object) -> None:
    """The one JSON object a command prints on stdout, whose encoding may know few letters."""
    knows_all = "utf" in (sys.stdout.encoding or "utf-8").lower()
    print(json.dumps(value, ensure_ascii=not knows_all, indent=1))
