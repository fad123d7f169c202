"""Scores models on the validation split: greedily while they train; before one is shipped, as a user will use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from torch import Tensor

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.direction import Direction
from transformer_mt.config.schema import Config
from transformer_mt.data.prepared import Prepared
from transformer_mt.data.store import Store
from transformer_mt.decoding.batches import translate_ids
from transformer_mt.decoding.interpreter import Computing
from transformer_mt.decoding.model_directory import ModelDirectory
from transformer_mt.decoding.searches.base import make_search, search_name
from transformer_mt.decoding.translator import Translator
from transformer_mt.errors import number_of
from transformer_mt.evaluation.scores import score
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.device import Machine
from transformer_mt.runtime.weights import load_weights
from transformer_mt.text.cleaning import as_written
from transformer_mt.text.codec import Codec
from transformer_mt.training.ending import Candidate
from transformer_mt.training.validation import BleuOf, BleuResult, Sample, Validation

SAMPLES = 3  # translations shown after each validation
ROWS = 10_000  # hypotheses that a comparison decodes for each candidate: 2,000 sentences with a beam of 5


@dataclass(frozen=True)
class Scorer:
    """Scores models on the validation split of prepared data. Under `torchrun`, all processes share the work."""

    config: Config
    prepared: Prepared
    machine: Machine

    def greedy(self) -> Validation:
        """For training: BLEU of greedy translations of the first `bleu_sentences` sentences, and a few samples.

        With several directions, of each of them.
        """
        config, most = self.config, self.config.training.bleu_sentences
        decoding = config.decoding.model_copy(update={"method": "beam", "beam": 1, "n_best": 1})
        places = self.prepared.places("validation", most)
        bleu_of = self._bleu_of(places, self._translating_ids(decoding, self.prepared.codecs()[1])) if most else None
        return Validation(self._store, self.machine, bleu_of)

    def _translating_ids(
        self, decoding: DecodingConfig, target: Codec
    ) -> Callable[[Transformer, Sequence[int]], list[str]]:
        """A function that translates the sentences at some places of the split as they are stored, with their tags."""
        store = self._store

        def translate(model: Transformer, places: Sequence[int]) -> list[str]:
            chosen = [store.source[place] for place in places]
            found = translate_ids(model, chosen, decoding, target.first_tag)
            return [target.decode(one) for one in found]

        return translate

    def final(self, codecs: tuple[Codec, Codec] | None = None) -> Validation:
        """For a finished model: BLEU with the search of the config, as by `tmt evaluate --split validation`.

        codecs: of the model, if they are not those of the prepared data; then only BLEU can be computed. With several
        directions, sentences are read as they are stored, so its source vocabulary must give them the same ids
        """
        own, decoding = self.prepared.codecs(), self.config.decoding
        codecs = codecs or own
        places, sources = self.prepared.places("validation", self.sentences), self._texts[0]

        def translate(model: Transformer, places: Sequence[int]) -> list[str]:
            directory = ModelDirectory(self.prepared.folder, self.config, model, *codecs)
            translator = Translator([directory], decoding, Computing(scored=False))
            return [one.text for one in translator.translate([sources[place] for place in places], split=False)]

        several = self.config.data.directions is not None
        known = codecs[0].vocabulary.tokens
        assert not several or known == own[0].vocabulary.tokens[: len(known)]
        translating = self._translating_ids(decoding, codecs[1]) if several else translate
        bleu_of = self._bleu_of(places, translating) if self.config.training.bleu_sentences else None
        return Validation(self._store, self.machine, bleu_of)

    @cached_property
    def _store(self) -> Store:
        return self.prepared.store("validation")

    @cached_property
    def _texts(self) -> tuple[list[str], list[str]]:
        return self.prepared.raw("validation")

    @property
    def sentences(self) -> int:
        """How many validation sentences `final` translates: all, unless this takes long with the config's search.

        With several directions, how many of each at most.
        """
        most = ROWS // make_search(self.config.decoding).rows // len(self.config.data.all_directions)
        return min(self.prepared.manifest.splits["validation"], max(1, most))

    @property
    def criterion(self) -> dict[str, Any]:
        """The settings that the figures of `compare` depend on."""
        decides = "bleu" if self.config.training.bleu_sentences else "loss"
        return {
            "decides": decides,
            "sentences": self.sentences,
            "decoding": self.config.decoding.model_dump(mode="json"),
        }

    def describe(self) -> str:
        """What `compare` measures, in a few words."""
        if not self.config.training.bleu_sentences:
            return "the loss of the validation split (training.bleu_sentences is 0)"
        number = sum(len(places) for places in self.prepared.places("validation", self.sentences).values())
        return f"{number_of(number, 'validation sentence')} with {search_name(self.config.decoding)}"

    def compare(
        self,
        candidates: Sequence[Candidate],
        weights_of: Callable[[Candidate], Mapping[str, Tensor]],
        model: Transformer,
        say: Callable[[str], None],
    ) -> list[Candidate]:
        """The candidates with their loss and BLEU. The weights of `model` are replaced. say: shows a line for each."""
        validation, measured = self.final(), []
        for one in candidates:
            load_weights(model, weights_of(one), str(one))
            result = validation.evaluate(model)
            measured.append(replace(one, loss=result.loss, bleu=result.bleu))
            bleu = "" if result.bleu is None else f"BLEU {result.bleu:6.2f}   "
            say(f"{one!s:<26} {bleu}loss {result.loss:.3f}")
        return measured

    def _bleu_of(
        self, of: Mapping[str, Sequence[int]], translate: Callable[[Transformer, Sequence[int]], list[str]]
    ) -> BleuOf:
        """BLEU of the sentences at some places, by direction, and its mean. translate: those at some of the places."""
        sources, references = self._texts
        world, places = self.machine.world, [place for some in of.values() for place in some]
        count = len(places)

        rules, languages = self.config.data.cleaning, {name: Direction.of(name).target for name in of}
        expected = {  # the same in all validations
            name: [as_written(references[place], rules, languages[name]) for place in some] for name, some in of.items()
        }

        def bleu(name: str, hypotheses: list[str]) -> float:
            return score(hypotheses, expected[name], languages[name], ["bleu"])["bleu"].value

        def scores(translated: Mapping[int, str]) -> dict[str, float]:
            return {name: bleu(name, [translated[place] for place in some]) for name, some in of.items()}

        def bleu_of(model: Transformer) -> BleuResult:
            translated = dict(zip(places, world.split_work(places, lambda own: translate(model, own)), strict=True))
            bleus = world.from_main(lambda: scores(translated))
            shown = [places[count * place // SAMPLES] for place in range(min(SAMPLES, count))]
            samples = [Sample(sources[i], translated[i], references[i]) for i in shown]
            return BleuResult(sum(bleus.values()) / len(bleus), samples, bleus if len(bleus) > 1 else {})

        return bleu_of
