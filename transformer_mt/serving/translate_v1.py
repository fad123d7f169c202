"""Our own interface: `POST /v1/translate` with n-best lists, scores, tokens and word alignments; `GET /v1/models`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Annotated, TypeVar

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from typing_extensions import TypedDict

from transformer_mt.decoding.joining import join
from transformer_mt.decoding.translation import Hypothesis, Translation
from transformer_mt.serving.answers import json_response
from transformer_mt.serving.batching import Item, Settings
from transformer_mt.serving.limits import BEAM, Limits, RequestError
from transformer_mt.serving.models import Models, ServedModel
from transformer_mt.serving.requests import Body, answered, read_json

_SHORT = 2_000  # characters; longer texts are split into sentences in a thread, because it takes milliseconds
# A malicious text takes long. With one thread, many of them leave time for others, also if their clients go away.
_READER = ThreadPoolExecutor(1, "reading")
_NOTHING = Translation((), (Hypothesis("", (), 0.0, (), (), ()),))  # of a blank line
Read = TypeVar("Read")
Text = Annotated[str, Field(description="one text; it may have several lines and sentences")]
Code = Annotated[str | None, Field(max_length=16, description="ISO 639 code of a language")]
BeamWidth = Annotated[int | None, Field(ge=1, le=BEAM, description="beam width; null: that of the model")]


class TranslateRequest(Body):
    """What to translate, and how."""

    text: Text | list[Text] = Field(description="a text, or a list of texts")
    source: Code = None
    target: Code = None
    model: str | None = Field(None, max_length=200, description="name of a model; null: by its direction")
    n_best: int = Field(1, ge=1, le=BEAM, description="different translations of each line")
    beam: BeamWidth = None
    align: bool = Field(False, description="whether to return scores of tokens and word alignments")
    split: bool = Field(True, description="whether a line may have several sentences")


class HypothesisAnswer(TypedDict):
    """One translation of a line. words: pairs of words (source, translation), counted from 0."""

    text: str
    score: float
    tokens: list[str]
    token_scores: list[float] | None
    words: list[tuple[int, int]] | None


class LineAnswer(TypedDict):
    """A line of a text, without its line break and the white space around it."""

    source: str
    text: str
    notes: list[str]
    source_tokens: list[str]
    hypotheses: list[HypothesisAnswer]


class TextAnswer(TypedDict):
    """A text. text: with the line breaks, blank lines and indentations of the source."""

    text: str
    lines: list[LineAnswer]


class TranslateAnswer(TypedDict):
    """The translations, in the order of the texts."""

    model: str
    source: str
    target: str
    engine: str
    seconds: float
    translations: list[TextAnswer]


class LimitsAnswer(TypedDict):
    """Of one request."""

    characters: int
    sentences: int


class ModelAnswer(TypedDict):
    """A served model. inside: whether it can show its attention and its search.

    fingerprint: sha256 of the weights, or of those that an export was made of; null if an older version exported it
    quantization: of an export, or of a run that CTranslate2 computes; null for others
    """

    name: str
    source: str
    target: str
    source_name: str
    target_name: str
    engine: str
    quantization: str | None
    fingerprint: str | None
    parameters: int | None
    beam: int
    inside: bool
    default: bool
    limits: LimitsAnswer


class ModelsAnswer(TypedDict):
    """All served models; the first is the default."""

    models: list[ModelAnswer]


class Line:
    """A line of a text, with the sentences to translate."""

    def __init__(self, line: str, model: ServedModel, split: bool) -> None:
        self.core = line.strip()
        self.before, _, self.after = line.partition(self.core) if self.core else (line, "", "")
        self.sentences: list[str] = []
        if self.core:
            self.sentences = model.translator.sentences(self.core) if split else [self.core]


def refuse_length(texts: Sequence[str], limits: Limits) -> None:
    """Raises RequestError if the texts have too many characters, or if there are too many of them."""
    characters = sum(map(len, texts))
    if characters > limits.characters:
        raise RequestError(422, f"a request may have at most {limits.characters:,} characters, not {characters:,}")
    if len(texts) > limits.sentences:
        raise RequestError(422, f"a request may have at most {limits.sentences:,} texts, not {len(texts):,}")


def refuse_sentences(number: int, limits: Limits) -> None:
    """Raises RequestError if there are too many sentences."""
    if number > limits.sentences:
        raise RequestError(422, f"a request may have at most {limits.sentences:,} sentences, not {number:,}")


async def in_reader(work: Callable[[], Read]) -> Read:
    """The result of reading a long text, which waits for those of other requests."""
    return await asyncio.get_running_loop().run_in_executor(_READER, work)


async def lines_of(texts: Sequence[str], model: ServedModel, limits: Limits, split: bool = True) -> list[list[Line]]:
    """The lines of each text. Raises RequestError if there are too many characters or sentences."""

    def lines() -> list[list[Line]]:
        return [[Line(line, model, split) for line in text.splitlines(keepends=True)] for text in texts]

    refuse_length(texts, limits)
    parted = lines() if sum(map(len, texts)) < _SHORT else await in_reader(lines)
    refuse_sentences(sum(len(line.sentences) for some in parted for line in some), limits)
    return parted


async def translate_lines(
    model: ServedModel, parted: Sequence[Sequence[Line]], settings: Settings
) -> list[list[Translation]]:
    """The translation of each line of each text."""
    items = [Item(sentence) for lines in parted for line in lines for sentence in line.sentences]
    found = iter(await model.translate(items, settings))
    return [[_line_translation(line, found, model, settings.n_best) for line in lines] for lines in parted]


def _line_translation(line: Line, found: Iterator[Translation], model: ServedModel, n_best: int) -> Translation:
    """The translation of a line from the next ones of its sentences."""
    if not line.sentences:
        return _NOTHING
    some, target = list(islice(found, len(line.sentences))), model.translator.config.data.one_direction.target
    return join(some, line.sentences, target, n_best, model.translator.search.total)


def joined(lines: Sequence[Line], texts: Sequence[str]) -> str:
    """A text from the translations of its lines."""
    return "".join(line.before + text + line.after for line, text in zip(lines, texts, strict=True))


def routes(models: Models, limits: Limits) -> list[Route]:
    """The routes of this interface but those that look inside a model."""

    async def translate(request: Request) -> Response:
        wanted = await read_json(request, TranslateRequest, limits)
        start = time.perf_counter()
        texts = [wanted.text] if isinstance(wanted.text, str) else wanted.text
        refuse_length(texts, limits)
        model = await models.find_for(wanted.source, wanted.target, wanted.model, texts)
        settings = Settings(wanted.beam, wanted.n_best, wanted.align)

        async def work() -> tuple[list[list[Line]], list[list[Translation]]]:
            parted = await lines_of(texts, model, limits, wanted.split)
            return parted, await translate_lines(model, parted, settings)

        parted, found = await answered(request, work(), limits)
        answer = TranslateAnswer(
            model=model.name,
            source=model.source,
            target=model.target,
            engine=model.engine,
            seconds=round(time.perf_counter() - start, 4),
            translations=[_text_answer(*pair) for pair in zip(parted, found, strict=True)],
        )
        return json_response(answer)

    async def list_models(request: Request) -> Response:
        offered = LimitsAnswer(characters=limits.characters, sentences=limits.sentences)
        return json_response(
            {
                "models": [
                    {**one.described(), "default": number == 0, "limits": offered}
                    for number, one in enumerate(models.served)
                ]
            }
        )

    return [
        Route("/v1/translate", translate, methods=["POST"]),
        Route("/v1/models", list_models, methods=["GET"]),
    ]


def _text_answer(lines: Sequence[Line], found: Sequence[Translation]) -> TextAnswer:
    return TextAnswer(
        text=joined(lines, [one.text for one in found]),
        lines=[_line_answer(*pair) for pair in zip(lines, found, strict=True)],
    )


def _line_answer(line: Line, found: Translation) -> LineAnswer:
    return LineAnswer(
        source=line.core,
        text=found.text,
        notes=list(found.notes),
        source_tokens=list(found.source_tokens),
        hypotheses=[_hypothesis_answer(one) for one in found.n_best],
    )


def _hypothesis_answer(one: Hypothesis) -> HypothesisAnswer:
    return HypothesisAnswer(
        text=one.text,
        score=one.score,
        tokens=list(one.tokens),
        token_scores=None if one.token_scores is None else list(one.token_scores),
        words=None if one.word_alignment is None else [(read, written) for read, written in one.word_alignment],
    )
