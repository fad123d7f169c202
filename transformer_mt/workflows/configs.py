"""The commented configs that come with the program, and the schema with which an editor completes their keys."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_mt.config.reference import TITLE, json_schema
from transformer_mt.errors import TmtError
from transformer_mt.files.replace import replace_text

if TYPE_CHECKING:
    from importlib.abc import Traversable  # in another module from Python 3.14 on

SCHEMA = "tmt.schema.json"
_SENTENCE_END = re.compile(r"(?<=.{20}):\s|\.\s+(?=[A-Z])|[.:]$")


def shipped_config(name: str, first: Sequence[str] = ()) -> str:
    """The text of a shipped config. Raises TmtError with a similar name and all names, those in `first` first."""
    configs = shipped_configs(first)
    found = configs.get(name.removesuffix(".yaml"))
    if found is not None:
        return found.read_text(encoding="utf-8")
    near = difflib.get_close_matches(name, configs, n=1, cutoff=0.4)
    hint = f"Did you mean '{near[0]}'? " if near else ""
    raise TmtError(f"unknown config '{name}'", remedy=f"{hint}Use one of {', '.join(configs)}.")


def shipped_configs(first: Sequence[str] = ()) -> dict[str, Traversable]:
    """The configs by name. In a wheel they are inside the package, in a clone beside it."""
    package = files("transformer_mt")
    inside = package / "configs"
    folder = inside if inside.is_dir() else Path(str(package)).parent / "configs"
    found = {
        prefix + file.name.removesuffix(".yaml"): file
        for prefix, place in (("", folder), ("classics/", folder / "classics"))
        if place.is_dir()
        for file in sorted(place.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".yaml")
    }
    known = [name for name in first if name in found]
    return {name: found[name] for name in [*known, *(name for name in found if name not in known)]}


def described(first: Sequence[str] = ()) -> list[str]:
    """A line for each shipped config: its name, and the beginning of its comment."""
    configs = shipped_configs(first)
    width = max(map(len, configs))
    lines = []
    for name, file in configs.items():
        comment = takewhile(lambda line: line.strip("# "), file.read_text(encoding="utf-8").splitlines())
        text = " ".join(line.strip("# ") for line in comment)
        lines.append(f"{name:<{width}}  {_SENTENCE_END.split(text)[0]}")
    return lines


def require_new(file: Path) -> None:
    """Raises TmtError if a file or folder with this name exists."""
    if file.is_dir():
        raise TmtError("this is a folder", place=file, remedy=f"Name a file:  -o {file / 'config.yaml'}")
    if file.exists():
        raise TmtError("this file exists already and was not changed", place=file, remedy="Name another file:  -o FILE")


def write_config(file: Path, text: str) -> None:
    """Write a new file. Raises TmtError if it exists already, or if its folder does not exist."""
    try:
        stream = file.open("x", encoding="utf-8")
        try:
            with stream:
                stream.write(text)
        except BaseException:  # a part of a config could be a config, and its name would be taken
            file.unlink(missing_ok=True)
            raise
    except UnicodeEncodeError:
        remedy = "Rename it, or name another folder."
        raise TmtError("a config cannot name a folder whose name is not UTF-8", place=file, remedy=remedy) from None
    except (FileExistsError, PermissionError):  # a file or a folder; Windows denies permission for a folder
        require_new(file)
        raise
    except FileNotFoundError:
        raise TmtError(
            "no such folder", place=file.parent, remedy="Create it first, or choose another folder."
        ) from None


def header(schema: Path) -> str:
    """The first line of a config, which gives the path of its schema to editors with yaml-language-server."""
    return f"# yaml-language-server: $schema={schema.as_posix()}\n"


def write_schema(file: Path) -> None:
    """Write the JSON schema of a config, also over an older one. Raises TmtError as `write_config` does."""
    text = json.dumps(json_schema(), ensure_ascii=False, indent=1) + "\n"
    if file.is_file() and f'"title": "{TITLE}"' in file.read_text(encoding="utf-8", errors="replace"):
        replace_text(file, text)
    else:
        write_config(file, text)
