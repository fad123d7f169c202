"""`tmt init NAME`: a commented config to start from, copied as it is shipped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from importlib.abc import Traversable

ORDER = ("quickstart", "multi30k-de-en", "multi30k-en-de", "aihub-ko-en", "files")


def init(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help=f"{', '.join(ORDER)}, or classics/NAME.", show_default=False)
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write, - for stdout; default: ./NAME.yaml.")
    ] = None,
) -> None:
    """Write a commented config to start from."""
    import sys

    text = _find(name)
    if output == Path("-"):
        sys.stdout.write(text)
        return
    file = output or Path(f"{name.removesuffix('.yaml').rsplit('/', 1)[-1]}.yaml")
    _write(file, text)
    print(f"Wrote {file}. Adapt it, then:  tmt train --config {file}", file=sys.stderr)


def _find(name: str) -> str:
    """The text of a shipped config. Raises TmtError that names the nearest."""
    import difflib

    from transformer_mt.errors import TmtError

    configs = _shipped()
    found = configs.get(name.removesuffix(".yaml"))
    if found is not None:
        return found.read_text(encoding="utf-8")
    near = difflib.get_close_matches(name, configs, n=1, cutoff=0.4)
    hint = f"Did you mean '{near[0]}'? " if near else ""
    raise TmtError(f"no config is called '{name}'", remedy=f"{hint}There are: {', '.join(configs)}.")


def _shipped() -> dict[str, Traversable]:
    """Configs by name: in a wheel they lie inside the package, in a clone beside it."""
    from importlib.resources import files

    package = files("transformer_mt")
    inside = package / "configs"
    folder = inside if inside.is_dir() else Path(str(package)).parent / "configs"
    places = {"": folder, "classics/": folder / "classics"}
    found = {
        prefix + file.name.removesuffix(".yaml"): file
        for prefix, place in places.items()
        if place.is_dir()
        for file in sorted(place.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".yaml")
    }
    first = [name for name in ORDER if name in found]
    return {name: found[name] for name in [*first, *(name for name in found if name not in first)]}


def _write(file: Path, text: str) -> None:
    from transformer_mt.errors import TmtError

    if file.is_dir():
        raise TmtError("this is a folder", place=file, remedy=f"Name a file:  -o {file / 'config.yaml'}")
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise TmtError(
            "this file is there already, and is left as it is", place=file, remedy="Choose another:  -o FILE"
        ) from None
    except FileNotFoundError:
        raise TmtError(
            "there is no such folder", place=file.parent, remedy="Make it first, or choose another."
        ) from None
