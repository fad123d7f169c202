"""The HTTP interface of LibreTranslate, by its documented behaviour, so that programs written for it work here."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import islice, repeat
from typing import Literal, NamedTuple

from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from typing_extensions import NotRequired, TypedDict

from transformer_mt.config.languages import name_of
from transformer_mt.serving.answers import json_response
from transformer_mt.serving.batching import Item, Settings
from transformer_mt.serving.keys import Keys
from transformer_mt.serving.limits import BEAM, Limits, RequestError
from transformer_mt.serving.models import READ, Models, ServedModel
from transformer_mt.serving.requests import Body, answered, read_json
from transformer_mt.serving.translate_v1 import (
    in_reader,
    joined,
    lines_of,
    refuse_length,
    refuse_sentences,
    translate_lines,
)
from transformer_mt.text.documents.html import Html
from transformer_mt.text.language import probabilities
from transformer_mt.workflows.documents import OpenDocument

AUTO = "auto"
UNLIKE = 1.0  # percent; a text with less is hardly in the language that fits best of those that are served


class LibreBody(Body):
    """A body as LibreTranslate's clients send it: keys that it does not know are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, allow_inf_nan=False)

    api_key: str | None = Field(None, max_length=1_000, description="needed if the server has keys")


class LibreTranslateRequest(LibreBody):
    """What to translate."""

    q: str | list[str] = Field(description="a text, or a list of texts")
    source: str = Field(max_length=16, description="ISO 639 code of the language, or auto")
    target: str = Field(max_length=16, description="ISO 639 code of the language")
    format: Literal["text", "html"] = Field("text", description="html: tags stay as they are")
    alternatives: int = Field(0, ge=0, lt=BEAM, description="more translations of each text; not of html")


class DetectRequest(LibreBody):
    """The text whose language is wanted."""

    q: str = Field(description="a text")


class Detected(TypedDict):
    """A language. confidence: in percent."""

    confidence: float
    language: str


class LibreTranslateAnswer(TypedDict):
    """The translation; for a list of texts, every value is a list.

    notes: what a reader must know of each text, such as that it was cut; left out if there is nothing. LibreTranslate
        has no such key, so its clients ignore it
    """

    translatedText: str | list[str]
    alternatives: NotRequired[list[str] | list[list[str]]]
    notes: NotRequired[list[str] | list[list[str]]]
    detectedLanguage: NotRequired[Detected | list[Detected]]


class TextResult(NamedTuple):
    """Different translations of a text, the best first, and what a reader must know of the best one."""

    texts: Sequence[str]
    notes: Sequence[str] = ()


class LanguageAnswer(TypedDict):
    """A source language, and what it can be translated to."""

    code: str
    name: str
    targets: list[str]


class LanguageName(TypedDict):
    """A language with its English name."""

    code: str
    name: str


class LanguagePair(TypedDict):
    """The direction that a page begins with."""

    source: LanguageName
    target: LanguageName


class SettingsAnswer(TypedDict):
    """What LibreTranslate tells its page. charLimit: characters of a request; frontendTimeout: in milliseconds."""

    charLimit: int
    frontendTimeout: int
    apiKeys: bool
    keyRequired: bool
    suggestions: bool
    filesTranslation: bool
    supportedFilesFormat: list[str]
    language: LanguagePair


class HealthAnswer(TypedDict):
    """Whether the server runs."""

    status: str


def routes(models: Models, limits: Limits, keys: Keys) -> list[Route]:
    """The routes of this interface."""

    async def translate(request: Request) -> Response:
        wanted = await read_json(request, LibreTranslateRequest, limits, or_form=True)
        keys.check(request, wanted.api_key)
        return json_response(await answered(request, _translated(wanted, models, limits), limits))

    async def detect(request: Request) -> Response:
        wanted = await read_json(request, DetectRequest, limits, or_form=True)
        keys.check(request, wanted.api_key)
        refuse_length([wanted.q], limits)
        return json_response(await _detected(wanted.q, models))

    async def languages(request: Request) -> Response:
        return json_response(languages_of(models))

    async def settings(request: Request) -> Response:
        return json_response(_settings(models, limits, bool(keys)))

    async def health(request: Request) -> Response:
        longest = max(one.batcher.running for one in models.served)
        if longest > limits.stuck:
            raise RequestError(503, f"a model has been busy with one batch for {longest:.0f} seconds: it may be stuck")
        if any(one.batcher.has_gpu_failed for one in models.served):
            raise RequestError(503, "the GPU has failed: see the log, and restart the server")
        return json_response({"status": "ok"})

    return [
        Route("/translate", translate, methods=["POST"]),
        Route("/detect", detect, methods=["POST"]),
        Route("/languages", languages, methods=["GET"]),
        Route("/frontend/settings", settings, methods=["GET"]),
        Route("/health", health, methods=["GET"]),
    ]


def languages_of(models: Models) -> list[LanguageAnswer]:
    """Each source language, with its targets."""
    targets: dict[str, list[str]] = {}
    for one in models.served:
        targets.setdefault(one.source, []).append(one.target)
    return [LanguageAnswer(code=code, name=name_of(code), targets=some) for code, some in targets.items()]


async def _translated(wanted: LibreTranslateRequest, models: Models, limits: Limits) -> LibreTranslateAnswer:
    texts = [wanted.q] if isinstance(wanted.q, str) else wanted.q
    refuse_length(texts, limits)
    detected: list[Detected] = []
    sources = [wanted.source] * len(texts)
    if wanted.source == AUTO:
        detected = [(await _detected(text, models))[0] for text in texts]
        sources = [one["language"] for one in detected]
    results = [TextResult([text]) for text in texts]  # what is in the target language already stays as it is
    for source in dict.fromkeys(sources):
        if source == wanted.target and any(source in (one.source, one.target) for one in models.served):
            continue
        places = [place for place, own in enumerate(sources) if own == source]
        model, some = models.find(source, wanted.target), [texts[place] for place in places]
        work = (
            _html_translated(some, model, limits)
            if wanted.format == "html"
            else _text_translated(some, model, limits, wanted.alternatives + 1)
        )
        for place, result in zip(places, await work, strict=True):
            results[place] = result
    for place, one in enumerate(detected):
        if one["confidence"] < UNLIKE and any(map(str.isalpha, texts[place])):
            note = f"no language that is served fits this text; it was taken for {name_of(one['language'])}"
            results[place] = results[place]._replace(notes=[note, *results[place].notes])
    is_one = isinstance(wanted.q, str)
    best, others = [result.texts[0] for result in results], [list(result.texts[1:]) for result in results]
    answer = LibreTranslateAnswer(translatedText=best[0] if is_one else best)
    if any(notes := [list(dict.fromkeys(result.notes)) for result in results]):
        answer["notes"] = notes[0] if is_one else notes
    if wanted.alternatives:
        answer["alternatives"] = others[0] if is_one else others
    if detected:
        answer["detectedLanguage"] = detected[0] if is_one else detected
    return answer


async def _text_translated(texts: Sequence[str], model: ServedModel, limits: Limits, n_best: int) -> list[TextResult]:
    parted = await lines_of(texts, model, limits)
    results = []
    for lines, found in zip(parted, await translate_lines(model, parted, Settings(n_best=n_best)), strict=True):
        most = max((len(one.n_best) for one in found), default=1)
        ranked = [[one.n_best[min(n, len(one.n_best) - 1)].text for one in found] for n in range(most)]
        different = list(dict.fromkeys(joined(lines, some) for some in ranked))
        results.append(TextResult(different, [note for one in found for note in one.notes]))
    return results


async def _html_translated(texts: Sequence[str], model: ServedModel, limits: Limits) -> list[TextResult]:
    """The translation of each page, with its tags as they are, byte for byte."""

    def opened() -> tuple[list[OpenDocument], int]:
        pages = [OpenDocument(text, Html(), model.translator) for text in texts]
        return pages, sum(len(model.translator.sentences(one)) for page in pages for one in page.texts)

    pages, sentences = await in_reader(opened)
    refuse_sentences(sentences, limits)
    items = [Item(*one) for page in pages for one in zip(page.texts, page.terms or repeat(()), strict=False)]
    found = iter(await model.translate(items, Settings(align=True, split=True)))
    answers = [(page, list(islice(found, len(page.texts)))) for page in pages]
    done = await asyncio.to_thread(lambda: [page.translated(some) for page, some in answers])
    return [TextResult([one.text], [text for _, text in one.notes]) for one in done]


async def _detected(text: str, models: Models) -> list[Detected]:
    """The served languages, the most probable first."""
    known = dict.fromkeys(code for one in models.served for code in (one.source, one.target))
    found: Mapping[str, float] = await asyncio.to_thread(probabilities, text[:READ], known)
    return [Detected(confidence=round(100 * value, 1), language=code) for code, value in found.items()]


def _settings(models: Models, limits: Limits, needs_key: bool) -> SettingsAnswer:
    first = models.served[0]
    return SettingsAnswer(
        charLimit=limits.characters,
        frontendTimeout=500,
        apiKeys=needs_key,
        keyRequired=needs_key,
        suggestions=False,
        filesTranslation=False,
        supportedFilesFormat=[],
        language=LanguagePair(
            source=LanguageName(code=first.source, name=name_of(first.source)),
            target=LanguageName(code=first.target, name=name_of(first.target)),
        ),
    )
