"""The `data` section: languages, corpora, cleaning, and the folder of the prepared data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import (
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from transformer_mt.config.choices import section_of
from transformer_mt.config.cleaning import CleaningConfig
from transformer_mt.config.corpus import CorpusConfig
from transformer_mt.config.direction import SEVERAL, Direction, DirectionName
from transformer_mt.config.runs import PREPARED
from transformer_mt.config.section import FileName, Language, Many, NonNegative, Section
from transformer_mt.errors import TmtError

OneCorpus: TypeAlias = CorpusConfig
if not TYPE_CHECKING:
    OneCorpus = section_of("corpus")


class DataConfig(Section):
    model_config = ConfigDict(validate_default=True)

    directions: Many[DirectionName] | None = Field(
        None,
        min_length=1,
        description="instead of source and target: directions of one model for several, such as [ko-en, en-ko, de-en]",
    )
    source: Language | None = Field(
        None,
        description="language to translate from: an ISO 639 code such as en or ko; required, unless there are"
        " directions",
    )
    target: Language | None = Field(
        None, description="language to translate into; required, unless there are directions"
    )
    corpus: Many[OneCorpus] = Field(
        min_length=1, description="the sentence pairs: one corpus, or a list of corpora to use together"
    )
    temperature: Annotated[float, Field(ge=1, le=100)] | None = Field(
        None,
        description="weighs corpora by their pairs n: each is seen in proportion to n^(1/temperature); 1: as it is;"
        " null: by the key weight. With directions, it weighs directions",
    )
    cleaning: CleaningConfig = Field(CleaningConfig(), description="rules that change or drop sentence pairs")
    max_length: Annotated[int, Field(ge=2, le=4096)] = Field(
        128,
        description="longest sentence in tokens, with its end token; drops longer training pairs, cuts longer input",
    )
    prepared: FileName = Field(
        PREPARED.as_posix(), description="folder of the prepared data; each run has a subfolder with its name"
    )
    workers: NonNegative = Field(
        0,
        description="processes of a machine that prepare the data, and that draw random segmentations for its GPUs;"
        " 0: one per CPU core; 1: no other process",
    )

    @property
    def all_directions(self) -> tuple[Direction, ...]:
        """Every direction that the model is trained for."""
        if self.directions is not None:
            return tuple(map(Direction.of, self.directions))
        return (self.one_direction,)

    @property
    def one_direction(self) -> Direction:
        """The only direction, or the one that was chosen with `towards`.

        Raises TmtError if there are several and none is chosen.
        """
        if self.source is None or self.target is None:
            problem = f"this model translates several directions: {self.direction}"
            raise TmtError(problem, place="data.directions", remedy="Choose one of them.")
        return Direction(self.source, self.target)

    def towards(self, direction: Direction) -> DataConfig:
        """This section for requests of one direction; the others stay in `directions`.

        It is written as the section without a choice.
        """
        if self.directions is None:
            assert direction == self.one_direction
            return self
        return self.model_copy(update=direction._asdict())

    @property
    def direction(self) -> str:
        """The direction as `de-en`, or all of them with commas."""
        if self.directions is not None and self.source is None:
            return ", ".join(self.directions)
        return str(self.one_direction)

    @property
    def source_language(self) -> str:
        """The language of the source side of its tokenizer; SEVERAL if there are several."""
        return _only({one.source for one in self.all_directions})

    @property
    def target_language(self) -> str:
        return _only({one.target for one in self.all_directions})

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags of the source vocabulary, in its order: those of target languages, then those of corpora."""
        implied = [one.tag for one in self.all_directions] if self.directions is not None else []
        return tuple(dict.fromkeys([*implied, *(one.tag for one in self.corpus if one.tag is not None)]))

    @property
    def request_tags(self) -> tuple[str, ...]:
        """The tags before a sentence to translate. Raises TmtError as `one_direction`."""
        return (self.one_direction.tag,) if self.directions is not None else ()

    @field_validator("source", "target")
    @classmethod
    def _required(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None and info.data.get("directions", ()) is None:
            raise PydanticCustomError("missing", "Field required")
        return value

    @model_serializer(mode="wrap")
    def _written(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Either the directions, or source and target: data of an older version still belongs to its config."""
        values: dict[str, Any] = serialize(self)
        unused = ("directions",) if self.directions is None else ("source", "target")
        return {key: value for key, value in values.items() if key not in unused}

    @field_validator("corpus", mode="before", json_schema_input_type=OneCorpus | tuple[OneCorpus, ...])
    @classmethod
    def _several(cls, value: Any) -> Any:
        return [value] if isinstance(value, dict) else value

    @field_validator("corpus")
    @classmethod
    def _with_validation(cls, corpora: tuple[CorpusConfig, ...]) -> tuple[CorpusConfig, ...]:
        needs = any(getattr(one, "train", None) is not None for one in corpora)
        if needs and not any(one.validates for one in corpora):
            raise ValueError(
                "`train` needs `validation` too, here or in another corpus of a list; or give `files`, which are split"
            )
        return corpora

    @model_validator(mode="after")
    def _languages(self) -> DataConfig:
        problems = list(self._problems_of_one() if self.directions is None else self._problems_of_several())
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def _problems_of_one(self) -> Iterator[str]:
        if self.source == self.target:
            yield f"source and target are both '{self.source}'; a translator needs two languages"
            return
        for corpus in self.corpus:
            known = corpus.corpus.languages
            if known and not {self.source, self.target} <= set(known):
                yield f"corpus '{corpus.kind}' has the languages {', '.join(known)}, not {self.direction}"
            for key in ("languages", "direction"):
                if getattr(corpus, key) is not None:
                    yield f"corpus '{corpus.kind}' has the key '{key}', which needs `directions`; remove it"

    def _problems_of_several(self) -> Iterator[str]:
        if self.source is not None or self.target is not None:
            yield "directions cannot be combined with source and target; remove these, or `directions`"
        directions = self.all_directions
        for one in dict.fromkeys(directions):
            if directions.count(one) > 1:
                yield f"directions: '{one}' is named twice"
            if one.source == one.target:
                yield f"directions: '{one}' has the same language twice"
            if SEVERAL in one:
                yield f"directions: '{one}' has the code {SEVERAL}, which means several languages; name one of them"
        served = set[Direction]()
        for number, corpus in enumerate(self.corpus, start=1):
            found = corpus.readings(directions)
            served |= {reading.direction for reading in found}
            place = f"corpus {number} ({corpus.kind})"
            if not found and corpus.languages is None and corpus.direction is None and not corpus.says_languages:
                remedy = "add `languages: [SOURCE, TARGET]` of its columns, or `direction`"
                yield f"{place}: its languages are unknown; {remedy}"
            elif (known := corpus.corpus.languages) and not all({*one.own} <= {*known} for one in found):
                yield f"{place} has the languages {', '.join(known)}, not {found[0].own}"
            elif (always := corpus.corpus.always) and not all(always in one.own for one in found):
                yield f"{place} has '{always}' in all its pairs, which {found[0].own} has not"
            elif not found:
                yield f"{place} has none of the directions {', '.join(map(str, directions))}"
        if any(corpus.readings(directions) for corpus in self.corpus):
            for one in directions:
                if one not in served and one.source != one.target:
                    yield f"directions: no corpus has pairs for '{one}' (see `languages` and `direction` of each)"

    @model_validator(mode="after")
    def _one_way_of_weighing(self) -> DataConfig:
        # A saved config has all keys, so a weight of 1 says nothing.
        weighted = [number for number, corpus in enumerate(self.corpus) if corpus.weight != 1]
        if self.temperature is not None and weighted and self.directions is None:
            raise ValueError(
                f"`temperature` gives the weights; remove `weight` of corpus {weighted[0] + 1}, or `temperature`"
            )
        return self


def _only(languages: set[str]) -> str:
    return languages.pop() if len(languages) == 1 else SEVERAL
