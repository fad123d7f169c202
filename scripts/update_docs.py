"""Writes the generated pages: docs/configuration.md from the schema, docs/troubleshooting.md from the source.

python scripts/update_docs.py
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from transformer_mt.config.reference import reference_table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import messages  # noqa: E402
import remedies  # noqa: E402

NOTE = "<!-- written by scripts/update_docs.py; do not edit -->\n\n"
CONFIGURATION = """# Configuration reference

A run is one YAML file. `tmt init NAME` writes a commented one to start from; this page lists every key. A key
that is left out has the default of its table. An unknown key is an error, and the message names the nearest known key.

`--set key=value` on the command line changes a key without editing the file. The value is YAML, and is checked too:

```console
$ tmt train --config configs/quickstart.yaml --set training.max_epochs=20 --set runtime.threads=1
```

`tmt init NAME --schema` also writes `tmt.schema.json`, with which editors complete the keys and mark mistakes.

"""


def configuration() -> str:
    """The reference: a section for each section of the config, with a table of its keys."""
    tables = re.sub(r"^####", "##", reference_table().strip(), flags=re.M).replace(f"{2**63}", "2^63")
    return NOTE + CONFIGURATION + tables + "\n"


def troubleshooting() -> str:
    """Every message, under what the user was doing."""
    parts = [NOTE, remedies.INTRODUCTION]
    known = messages.messages()
    for title, introduction, prefixes in remedies.GROUPS:
        inside = [one for one in known if remedies.group_of(one.home) == title]
        parts.append(f"## {title}\n\n{introduction}\n\n" if introduction else f"## {title}\n\n")
        parts += remedies.USAGE if "cli" in prefixes else []
        parts += _entries([one for one in inside if one.kind != "note"])
        if notes := [one for one in inside if one.kind == "note"]:
            parts += [f"### Notes: {title.lower()}\n\n", "The command goes on.\n\n", *_entries(notes)]
    parts += ["## Installing\n\n", "The scripts `quickstart` and `test` say this.\n\n", *_installing()]
    return "".join(parts).rstrip() + "\n"


_IN_CONFIG = tuple(f"FILE:LINE: {start}" for start in ("SECTION", "'", "key", "unknown"))


def _entries(some: list[messages.Message]) -> Iterator[str]:
    for one in some:
        title = one.text if re.search("[a-z]{3}", one.text) else one.remedy
        in_config = not one.remedy and one.printed.startswith(_IN_CONFIG)
        yield _entry(title, one.printed, remedies.CAUSES.get(one.home, remedies.CONFIG if in_config else ""))


def _entry(text: str, printed: str, cause: str) -> str:
    title = re.sub("^(?:tmt: |note +)", "", text.splitlines()[0]).strip(" :")
    prefix = "" if printed.startswith("tmt: ") else "tmt: "
    block = f"```text\n{prefix}{printed}\n```\n\n"
    return f"#### {_escaped(title)}\n\n{block}" + (f"{cause}\n\n" if cause else "")


def _escaped(title: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#|$~])", r"\\\1", title)


def _installing() -> Iterator[str]:
    """The refusals of scripts/environment.sh."""
    source = (ROOT / "scripts" / "environment.sh").read_text(encoding="utf-8").replace("\\\n", " ")
    for message, remedy in re.findall(r'refuse "([^"]+)"\s+"((?:[^"$]|\$(?!\()|\$\([^)]*\))+)', source):
        texts = [
            re.sub(r"\$\(.*?\)|\$\{?(\w+)\}?", lambda found: (found[1] or "DETAILS").upper(), one)
            for one in (message, remedy)
        ]
        yield _entry(texts[0], f"SCRIPT: {texts[0]}\n  {texts[1]}", "").replace("tmt: SCRIPT", "SCRIPT")


PAGES = {ROOT / "docs" / "configuration.md": configuration, ROOT / "docs" / "troubleshooting.md": troubleshooting}

if __name__ == "__main__":
    for page, write in PAGES.items():
        page.write_text(write(), encoding="utf-8")
