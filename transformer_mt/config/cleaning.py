"""The `data.cleaning` section: rules that change or drop sentence pairs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from transformer_mt.config.section import NonNegative, Positive, Section


class CleaningConfig(Section):
    """The report of `tmt prepare` counts the pairs that each rule changed or dropped."""

    unicode: Literal["NFC", "NFKC", "off"] = Field(
        "NFC",
        description="Unicode normalisation; NFC: one code point for a Korean syllable, or for a letter with its accent;"
        " NFKC: also plain forms of full-width letters and ligatures",
    )
    control_characters: bool = Field(True, description="remove invisible characters: control and zero-width characters")
    whitespace: Literal["trim", "collapse", "off"] = Field(
        "trim",
        description="trim: remove spaces at both ends, and make tabs and unusual spaces plain spaces; collapse: also"
        " several spaces one; off: only tabs and line breaks",
    )
    invalid: Literal["error", "drop"] = Field(
        "error",
        description="bytes that are not in the encoding of their file; error: the first such line is an error; drop:"
        " its pair is dropped, in every split",
    )
    entities: bool = Field(
        False, description="characters that are written as in HTML, such as &amp; and &#39;, become these characters"
    )
    max_repeats: NonNegative = Field(
        0,
        description="Korean: letters repeated four or more times are shortened to this number (soynlp's"
        " repeat_normalize); 0: off",
    )
    max_characters: Positive = Field(2_000, description="drop training pairs with more characters than this on a side")
    max_ratio: float | None = Field(
        9.0,
        gt=1,
        description="drop training pairs if one side has more than this many times the tokens of the other; null: keep",
    )
    identical: bool = Field(True, description="drop training pairs with equal source and target")
    duplicates: bool = Field(True, description="keep one of several equal training pairs")
    leaks: Literal["pair", "source", "target", "either", "off"] = Field(
        "pair",
        description="drop training pairs that are also in validation or test; pair: the same pair; source: the same"
        " source with any translation; target: the same translation of any source; either: both of these",
    )
    language: Literal["off", "report", "drop"] = Field(
        "report",
        description="sentences of five or more words that are not in their language; report: a sample of the pairs is"
        " checked; drop: all are, and training pairs are dropped; off: also numbers and swapped columns are accepted",
    )
