"""The `data.cleaning` section: the rules that change or drop pairs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from transformer_mt.config.section import NonNegative, Positive, Section


class CleaningConfig(Section):
    """Rules that change or drop pairs; each is counted in the report of `tmt prepare`."""

    unicode: Literal["NFC", "NFKC", "off"] = Field("NFC", description="Unicode normalisation form")
    control_characters: bool = Field(True, description="remove control and zero-width characters")
    whitespace: Literal["trim", "collapse", "off"] = Field(
        "trim", description="trim, and make tabs and odd spaces plain ones; collapse: runs of them too; off: tabs only"
    )
    max_repeats: NonNegative = Field(
        0,
        description="Korean: shorten runs of four and more equal letters to this (soynlp's repeat_normalize); 0: off",
    )
    max_characters: Positive = Field(2_000, description="drop training pairs with a longer side, in characters")
    max_ratio: float | None = Field(
        9.0, gt=1, description="drop training pairs whose token counts differ by more; null: keep"
    )
    identical: bool = Field(True, description="drop training pairs whose source equals the target")
    duplicates: bool = Field(True, description="keep only the first of equal pairs (in training, or before a split)")
    leaks: Literal["pair", "source", "off"] = Field(
        "pair",
        description="drop training pairs that stand in validation or test: as a pair, or by their source alone",
    )
