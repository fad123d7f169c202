"""The name under which this program was called, for usage messages and for the commands that messages suggest."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable

NAMES = ("tmt", "transformer-mt")  # the scripts that an installation makes


def program_name() -> str:
    """tmt, transformer-mt or `python -m transformer_mt`; tmt if another Python program calls this package."""
    *folders, name = re.split(r"[\\/]", sys.argv[0] if sys.argv else "")
    if name == "__main__.py" and folders[-1:] == ["transformer_mt"]:
        return "python -m transformer_mt"
    name = re.sub(r"(-script\.pyw?|\.exe)$", "", name, flags=re.IGNORECASE)
    return name if name in NAMES else NAMES[0]


def as_called(text: str, commands: Iterable[str]) -> str:
    """The text with the commands in it as they work here: another program may own the name tmt."""
    pattern = rf"(?<![\w/.-]){NAMES[0]}(?= (?:{'|'.join(commands)}|--help)\b)"
    return re.sub(pattern, program_name(), text)


def quoted(path: object) -> str:
    """A path as one word of a command line."""
    text = str(path)
    if sys.platform != "win32":
        return shlex.quote(text)
    return f'"{text}"' if re.search(r"[\s&()';]", text) else text
