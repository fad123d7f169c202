"""The `data` section: which languages, which corpora, how they are split and cleaned."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from transformer_mt.config.section import Language, Many, NonNegative, Positive, Section

MULTI30K_TEST_SETS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")
RESERVED_SPLITS = ("train", "validation", "all", "source", "target", "scratch", "plots", "manifest.json")  # taken there
PHRASEBOOK_LANGUAGES = ("ko", "en", "de")

Share = Annotated[int | float, Field(ge=0)]
Column = str | NonNegative


class SplitConfig(Section):
    """How a corpus without splits of its own is divided, after cleaning and removal of duplicates."""

    validation: Share = Field(0.1, description="share (below 1) or number of pairs for validation")
    test: Share = Field(0.1, description="share (below 1) or number of pairs for testing")
    seed: NonNegative = Field(1, description="seed of the shuffle; apart from the run's seed, so that splits stay put")

    @field_validator("validation", "test")
    @classmethod
    def _share_or_number(cls, value: int | float) -> int | float:
        if isinstance(value, float) and value >= 1:
            raise ValueError(f"{value:g} is neither a share below 1 nor a whole number of pairs")
        return value

    @model_validator(mode="after")
    def _leaves_some_training(self) -> SplitConfig:
        shares = [share for share in (self.validation, self.test) if share < 1]
        if sum(shares) >= 1:
            raise ValueError("validation and test leave nothing for training; their shares must sum to below 1")
        return self


class CorpusConfig(Section):
    weight: float = Field(1.0, gt=0, le=100, description="times a pair of this corpus is seen in an epoch")


class PhrasebookConfig(CorpusConfig):
    kind: Literal["phrasebook"]
    train: Positive = Field(20_000, description="number of training pairs")
    validation: Positive = Field(500, description="number of validation pairs")
    test: Positive = Field(1_000, description="number of test pairs")
    seed: int = Field(1, description="seed of the grammar")


class Multi30kConfig(CorpusConfig):
    kind: Literal["multi30k"]
    directory: str = Field("data/multi30k", description="folder of the .gz files; missing ones are downloaded into it")
    mirror: str | None = Field(None, description="another address, or a local folder, to fetch the files from")
    test_sets: Many[str] = Field(
        ("test_2016_flickr", "test_2017_flickr"),
        min_length=1,
        description="names of the test sets to prepare",
    )

    @field_validator("test_sets")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in MULTI30K_TEST_SETS:
                raise ValueError(f"'{name}' is no test set of Multi30k; it has {', '.join(MULTI30K_TEST_SETS)}")
        return names


class FilesConfig(CorpusConfig):
    """What the kinds made of files share: either `files` to be split, or files per split."""

    split: SplitConfig = Field(SplitConfig(), description="how `files` are divided")

    @model_validator(mode="after")
    def _one_way_of_splitting(self) -> FilesConfig:
        whole = getattr(self, "files", None)
        parts = getattr(self, "train", None)
        if (whole is None) == (parts is None):
            raise ValueError("give either `files` (to be split) or `train`, `validation` and `test`")
        if parts is not None and getattr(self, "validation", None) is None:
            raise ValueError("`train` needs a `validation` beside it; or give `files` and let them be split")
        if parts is None and (getattr(self, "validation", None), getattr(self, "test", None)) != (None, None):
            raise ValueError("`files` are split; leave `validation` and `test` out, or name the training files `train`")
        for name in getattr(self, "test", None) or {}:
            if name in RESERVED_SPLITS or not re.fullmatch(r"\w[\w.-]*", name):
                raise ValueError(f"'{name}' cannot name a test set; take another of letters, digits, '.', '-' and '_'")
        return self


class TextPair(Section):
    source: str = Field(description="file of source sentences, one a line (plain, .gz, .xz or .zst)")
    target: str = Field(description="file of target sentences, line by line their translations")


class TextConfig(FilesConfig):
    kind: Literal["text"]
    files: Many[TextPair] | None = Field(None, description="pairs of parallel files, to be split")
    train: Many[TextPair] | None = Field(None, description="pairs of parallel files for training")
    validation: TextPair | None = Field(None, description="pair of parallel files for validation")
    test: dict[str, TextPair] | None = Field(None, description="test sets by name, each a pair of parallel files")

    @field_validator("files", "train", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return [value] if isinstance(value, dict) else value

    @field_validator("test", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        return {"test": value} if isinstance(value, dict) and set(value) <= {"source", "target"} else value


class TableConfig(FilesConfig):
    """Files whose rows hold a pair: one sentence and its translation in two columns."""

    files: Many[str] | None = Field(None, description="files to be split")
    train: Many[str] | None = Field(None, description="files for training")
    validation: str | None = Field(None, description="file for validation")
    test: dict[str, str] | None = Field(None, description="test files by name")

    @field_validator("files", "train", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("test", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        return {"test": value} if isinstance(value, str) else value


class TsvConfig(TableConfig):
    kind: Literal["tsv"]
    source_column: Column = Field(0, description="column of the source: its number from 0, or its name in the header")
    target_column: Column = Field(1, description="column of the target: its number from 0, or its name in the header")


class CsvConfig(TableConfig):
    kind: Literal["csv"]
    source_column: Column = Field(0, description="column of the source: its number from 0, or its name in the header")
    target_column: Column = Field(1, description="column of the target: its number from 0, or its name in the header")
    delimiter: str = Field(",", min_length=1, max_length=1, description="the character between columns")


class JsonlConfig(TableConfig):
    kind: Literal["jsonl"]
    source_column: str = Field("source", description="key of the source sentence; a.b reaches into a nested object")
    target_column: str = Field("target", description="key of the target sentence; a.b reaches into a nested object")


class AihubConfig(CorpusConfig):
    kind: Literal["aihub"]
    files: Many[str] = Field(min_length=1, description="folder or list of the .xlsx, .json and .csv files handed out")
    split: SplitConfig = Field(SplitConfig(), description="how the pairs are divided")

    @field_validator("files", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value


Corpus = Annotated[
    PhrasebookConfig | Multi30kConfig | AihubConfig | TextConfig | TsvConfig | CsvConfig | JsonlConfig,
    Field(discriminator="kind"),
]


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


class DataConfig(Section):
    source: Language = Field(description="language to translate from (ISO code)")
    target: Language = Field(description="language to translate into (ISO code)")
    corpus: Many[Corpus] = Field(min_length=1, description="one corpus, or a list of corpora to concatenate")
    cleaning: CleaningConfig = Field(CleaningConfig(), description="cleaning rules")
    max_length: Annotated[int, Field(ge=2, le=4096)] = Field(
        128,
        description="longest sentence in tokens, end mark included; longer training pairs are dropped, "
        "longer input is cut",
    )
    prepared: str = Field(
        "data/prepared", description="folder that receives prepared corpora, each under the run's name"
    )
    workers: NonNegative = Field(0, description="processes that prepare; 0: one for each core")

    @property
    def direction(self) -> str:
        """Both languages, as `de-en`."""
        return f"{self.source}-{self.target}"

    @field_validator("corpus", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return [value] if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _languages(self) -> DataConfig:
        if self.source == self.target:
            raise ValueError(f"source and target are both '{self.source}'; a translator needs two languages")
        for corpus in self.corpus:
            known = {"phrasebook": PHRASEBOOK_LANGUAGES, "multi30k": ("de", "en")}.get(corpus.kind)
            if known and not {self.source, self.target} <= set(known):
                raise ValueError(f"corpus '{corpus.kind}' has {', '.join(known)}, not {self.direction}")
        return self
