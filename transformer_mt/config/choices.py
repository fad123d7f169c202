"""The tokenizers, corpora, schedules, optimizers, trackers and searches that a config can name, one line each.

A line names a class, which has everything about its choice: options, limits and code. There is no other list of
choices. The modules are imported when the schema is built, so they must import fast: they import heavy libraries inside
functions.
"""

from __future__ import annotations

from functools import cache, reduce
from importlib import import_module
from operator import or_
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Discriminator, Field, Tag, create_model

from transformer_mt.config.section import Section

CHOICES = {
    "tokenizer": {
        "spacy": "transformer_mt.text.tokenizers.spacy:SpacyTokenizer",
        "soynlp": "transformer_mt.text.tokenizers.soynlp:SoynlpTokenizer",
        "sentencepiece": "transformer_mt.text.tokenizers.sentencepiece:SentencepieceTokenizer",
        "sentencepiece_model": "transformer_mt.text.tokenizers.sentencepiece_model:SentencepieceModelTokenizer",
        "character": "transformer_mt.text.tokenizers.character:CharacterTokenizer",
        "whitespace": "transformer_mt.text.tokenizers.whitespace:WhitespaceTokenizer",
    },
    "corpus": {
        "phrasebook": "transformer_mt.corpora.embedded:EmbeddedCorpus",
        "multi30k": "transformer_mt.corpora.multi30k:Multi30kCorpus",
        "aihub": "transformer_mt.corpora.aihub:AihubCorpus",
        "text": "transformer_mt.corpora.text:TextCorpus",
        "tsv": "transformer_mt.corpora.tables:TsvCorpus",
        "csv": "transformer_mt.corpora.tables:CsvCorpus",
        "jsonl": "transformer_mt.corpora.json_files:JsonlCorpus",
        "json": "transformer_mt.corpora.json_files:JsonCorpus",
        "xlsx": "transformer_mt.corpora.xlsx:XlsxCorpus",
        "tmx": "transformer_mt.corpora.tmx:TmxCorpus",
        "parquet": "transformer_mt.corpora.parquet:ParquetCorpus",
    },
    "schedule": {
        "noam": "transformer_mt.training.schedules.noam:Noam",
        "inverse_sqrt": "transformer_mt.training.schedules.inverse_sqrt:InverseSqrt",
        "cosine": "transformer_mt.training.schedules.cosine:Cosine",
        "constant": "transformer_mt.training.schedules.constant:Constant",
        "plateau": "transformer_mt.training.schedules.plateau:Plateau",
    },
    "optimizer": {
        "adam": "transformer_mt.training.optimizers.adam:Adam",
        "adamw": "transformer_mt.training.optimizers.adam:AdamW",
        "muon": "transformer_mt.training.optimizers.muon:MuonAndAdamW",
    },
    "tracker": {
        "wandb": "transformer_mt.reporting.trackers.wandb:Wandb",
        "mlflow": "transformer_mt.reporting.trackers.mlflow:Mlflow",
    },
    "search": {
        "beam": "transformer_mt.decoding.searches.beam:Beam",
        "sample": "transformer_mt.decoding.searches.sampling:Sampling",
        "mbr": "transformer_mt.decoding.searches.mbr:MinimumBayesRisk",
    },
}


@cache
def choice(family: str, name: str) -> Any:
    """The class of a choice. Raises KeyError for an unknown name."""
    module, _, attribute = CHOICES[family][name].partition(":")
    return getattr(import_module(module), attribute)


def section_of(family: str) -> Any:
    """The type of a section with a `kind`, which decides the keys that the section may have."""
    return _any_of([_options_of(family, name) for name in CHOICES[family]])


def name_of(family: str) -> Any:
    """The type of a key that names a choice: `name`, or `{kind: name, ...}` with the options of that choice."""
    plain = Literal[tuple(CHOICES[family])]  # type: ignore[valid-type]
    options = {name: _options_of(family, name) for name in CHOICES[family]}
    if not any(options.values()):
        return Annotated[plain, BeforeValidator(_name_alone)]
    mapping = _any_of([one or _kind_alone(name) for name, one in options.items()])
    without = [{"kind": name} for name, one in options.items() if one is None]
    needing = [
        name
        for name, one in options.items()
        if one is not None
        and any(key != "kind" and field.is_required() for key, field in getattr(one, "model_fields", {}).items())
    ]

    def in_other_form(value: Any) -> Any:
        """A name alone for a choice without options; a mapping for one that needs some."""
        return value["kind"] if value in without else {"kind": value} if value in needing else value

    return Annotated[
        Annotated[plain, Tag("name")] | Annotated[mapping, Tag("options")],
        Discriminator(lambda value: "options" if isinstance(value, (dict, Section)) else "name"),
        BeforeValidator(in_other_form),
    ]


def _options_of(family: str, name: str) -> Any:
    """The `Options` of a choice, or None. Raises TypeError if they are those of another name."""
    options = getattr(choice(family, name), "Options", None)
    fields = getattr(options, "model_fields", None)  # scripts/gpu_check.py has no pydantic
    if fields is not None and ("kind" not in fields or get_args(fields["kind"].annotation) != (name,)):
        raise TypeError(
            f"{CHOICES[family][name]}: its Options need  kind: Literal[{name!r}],  as it is named in CHOICES"
        )
    return options


def _kind_alone(name: str) -> Any:
    """The section of a choice without options."""
    return create_model("Options", __base__=Section, kind=(Literal[name], ...))  # type: ignore[arg-type]


def _name_alone(value: Any) -> Any:
    """`name` for `{kind: name}`."""
    return value["kind"] if isinstance(value, dict) and set(value) == {"kind"} else value


def _any_of(sections: list[Any]) -> Any:
    union = reduce(or_, sections)
    return Annotated[union, Field(discriminator="kind")] if len(sections) > 1 else union


def chosen(family: str, value: str | Section) -> tuple[Any, Any]:
    """The class that the value of a key names, and its options, or None if the class has no options."""
    cls = choice(family, value if isinstance(value, str) else getattr(value, "kind", ""))
    options = getattr(cls, "Options", None)
    return cls, value if isinstance(value, Section) or options is None else options(kind=value)
