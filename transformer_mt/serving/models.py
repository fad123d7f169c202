"""The models that a server offers, and which of them answers a request."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from transformer_mt.config.direction import Direction
from transformer_mt.config.languages import code_of, name_of
from transformer_mt.decoding.interpreter import Computing, Interpreter
from transformer_mt.decoding.translation import Translation
from transformer_mt.errors import TmtError
from transformer_mt.serving.batching import Batcher, Item, Settings
from transformer_mt.serving.limits import BEAM, Limits, RequestError
from transformer_mt.text.language import ODDS, is_long, probabilities
from transformer_mt.workflows.engines import load_model
from transformer_mt.workflows.models import changed_settings, find_models

READ = 2_000  # characters of a text that its language is recognised by


@dataclass(frozen=True)
class ServedModel:
    """A direction of a loaded model, with its queue; all its directions share both. name: of its run or folder."""

    name: str
    folder: Path
    translator: Interpreter
    engine: str
    batcher: Batcher = field(repr=False)

    @property
    def source(self) -> str:
        return self.translator.config.data.one_direction.source

    @property
    def target(self) -> str:
        return self.translator.config.data.one_direction.target

    @property
    def source_name(self) -> str:
        return name_of(self.source)

    @property
    def target_name(self) -> str:
        return name_of(self.target)

    @property
    def direction(self) -> Direction:
        return self.translator.config.data.one_direction

    async def translate(self, items: Sequence[Item], settings: Settings) -> list[Translation]:
        """The translations of the items in this direction."""
        return await self.batcher.translate(items, replace(settings, direction=self.direction))

    def described(self) -> dict[str, object]:
        """What clients may know of it."""
        return {
            "name": self.name,
            "source": self.source,
            "target": self.target,
            "source_name": self.source_name,
            "target_name": self.target_name,
            "engine": self.engine,
            "quantization": self.translator.quantization,
            "fingerprint": self.translator.fingerprint,
            "parameters": _parameters(self.translator),
            "beam": self.translator.decoding.beam,
            "inside": self.engine == "tmt",
        }


class Models:
    """All directions of the models of a server."""

    def __init__(self, served: Sequence[ServedModel]) -> None:
        """Raises TmtError if two models have the same direction or name."""
        self.served = list(served)
        for number, one in enumerate(self.served):
            for other in self.served[:number]:
                if one.direction == other.direction:
                    raise TmtError(
                        f"two models translate {one.direction}: {other.folder} and {one.folder}",
                        place="--model",
                        remedy="Name one model for each direction.",
                    )
                if one.name == other.name and one.batcher is not other.batcher:
                    raise TmtError(
                        f"two models have the name {one.name}: {other.folder} and {one.folder}",
                        place="--model",
                        remedy="Rename one of the folders.",
                    )

    def find(self, source: str | None, target: str | None, name: str | None = None) -> ServedModel:
        """The model of a name or direction; what is None fits all. Raises RequestError if there is none."""
        return self._fitting(source, target, name)[0]

    def _fitting(self, source: str | None, target: str | None, name: str | None) -> list[ServedModel]:
        fitting = [
            one
            for one in self.served
            if _means(source, one.source) and _means(target, one.target) and name in (None, one.name)
        ]
        if not fitting:
            offered = ", ".join(f"{one.source} to {one.target} (model {one.name})" for one in self.served)
            raise RequestError(400, f"no model of this server does that; it translates {offered}")
        return fitting

    async def find_for(
        self, source: str | None, target: str | None, name: str | None, texts: Sequence[str]
    ) -> ServedModel:
        """As `find`; if several directions fit, the one whose source is the language of the texts.

        Raises RequestError if several targets fit, or if a text is in another language that is read, or in the target.
        """
        fitting = self._fitting(source, target, name)
        first = fitting[0]
        if len({one.target for one in fitting}) > 1:
            offered = ", ".join(f"{one.source} to {one.target}" for one in fitting)
            raise RequestError(400, f"several directions fit: {offered}; say the target")
        read = self._fitting(None, None, name)
        sources = {one.source: one for one in read if one.source != first.target}
        if source is not None or len(sources) == 1:
            return first
        text = " ".join(texts)[:READ]
        of_all = await asyncio.to_thread(probabilities, text, sources)
        best = max(fitting, key=lambda one: of_all[one.source])  # the first one if the text has no letters
        offered = ", ".join(one.source for one in fitting)
        for one in (text, *(one for one in texts if len(texts) > 1 and is_long(one))):
            known = [*sources, first.target] if is_long(one) else list(sources)  # names are alike in many languages
            found = await asyncio.to_thread(probabilities, one[:READ], known)
            other = next(iter(found))
            if found[other] > ODDS * found[best.source]:
                which = "the text looks" if one is text else f"one text looks like {best.source} and another"
                problem = f"{which} like {other}, and {first.target} is translated from {offered}"
                raise RequestError(400, f"{problem}; if it is one of these, say the source")
        return best

    def of_name(self, name: str) -> ServedModel:
        """Raises RequestError if there is none."""
        for one in self.served:
            if one.name == name:
                return one
        raise RequestError(404, "no model of this server has this name; GET /v1/models lists them")

    async def close(self) -> None:
        for batcher in {one.batcher for one in self.served}:
            await batcher.close()


def _means(wanted: str | None, code: str) -> bool:
    """Whether a request wants this language: by its code, or as other programs write it (en-US, zh-Hans, EN)."""
    return wanted in (None, code) or code_of(wanted) == code


def load_models(
    folders: Sequence[Path], limits: Limits, computing: Computing | None = None, engine: str = "tmt"
) -> Models:
    """Load models to serve. folders: of runs or models; (): of the run that finished last.

    Raises TmtError if a folder has no model, or if two translate the same direction.
    """
    served = []
    for folder in find_models(folders):
        translator = load_model([folder], None, computing, engine)
        served += serve_directions(translator, limits, folder)
    return Models(served)


def serve_directions(translator: Interpreter, limits: Limits, folder: Path | None = None) -> list[ServedModel]:
    """Each direction of a translator; one queue for all, because they share weights and a thread."""
    folder = (folder or Path(translator.folders[0])).resolve()
    name = folder.parent.name if folder.name == "model" else folder.name
    engine = "tmt" if hasattr(translator, "models") else "ctranslate2"
    batcher, turned = Batcher(Searches(translator), limits.queue), translator.turned
    directions = translator.config.data.all_directions
    return [ServedModel(name, folder, turned(one), engine, batcher) for one in directions]


class Searches:
    """One model with different search settings: translates the items of a batch."""

    def __init__(self, translator: Interpreter) -> None:
        self.translator = translator
        self._known: dict[tuple[int | None, int, Direction | None], Interpreter] = {}

    def __call__(self, items: Sequence[Item], settings: Settings) -> list[Translation]:
        translator = self.with_settings(settings)
        terms = [item.terms for item in items] if any(item.terms for item in items) else None
        texts = [item.text for item in items]
        return list(translator.translate(texts, align=settings.align, split=settings.split, terms=terms))

    def with_settings(self, settings: Settings) -> Interpreter:
        """Raises RequestError if the search of the model does not have these settings."""
        key = settings.beam, settings.n_best, settings.direction
        if key not in self._known:
            own = self.translator.decoding
            beam = settings.beam or max(own.beam, settings.n_best)
            if beam > max(BEAM, own.beam):
                raise RequestError(422, f"a beam may have at most {max(BEAM, own.beam)} hypotheses here")
            chosen = self.translator if key[2] is None else self.translator.turned(key[2])
            try:
                decoding = changed_settings(own, {"beam": settings.beam, "n_best": settings.n_best})
                self._known[key] = chosen.with_search(decoding)
            except TmtError as error:
                raise RequestError(422, error.message) from None
        return self._known[key]


def _parameters(translator: Interpreter) -> int | None:
    """The number of weights; None if the engine does not tell."""
    models = getattr(translator, "models", None)
    return sum(one.numel() for one in models[0].parameters()) if models else None
