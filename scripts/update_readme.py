"""Writes the configuration reference into README.md, between its two marks, from the schema.

python scripts/update_readme.py
"""

from __future__ import annotations

from pathlib import Path

from transformer_mt.config.reference import reference_table

BEGIN, END = "<!-- reference: made by scripts/update_readme.py -->", "<!-- end of reference -->"
README = Path(__file__).parents[1] / "README.md"


def updated(text: str) -> str:
    """The README with the reference as the schema has it now."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{reference_table().strip()}\n\n{END}{after}"


if __name__ == "__main__":
    README.write_text(updated(README.read_text(encoding="utf-8")), encoding="utf-8")
