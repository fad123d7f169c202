"""Scores models on the validation split: greedily while they train; before one is shipped, as a user will use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from torch import Tensor

from transformer_mt.config.schema import Config
from transformer_mt.data.prepared import Prepared
from transformer_mt.data.store import Store
from transformer_mt.decoding.batches import translate_ids
from transformer_mt.decoding.interpreter import Computing
from transformer_mt.decoding.model_directory import ModelDirectory
from transformer_mt.decoding.searches.base import make_search, search_name
from transformer_mt.decoding.translator import Translator
from transformer_mt.evaluation.scores import score
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.device import Machine
from transformer_mt.runtime.weights import load_weights
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
        """For training: BLEU of greedy translations of the first `bleu_sentences` sentences, and a few samples."""
        config, most = self.config, self.config.training.bleu_sentences
        decoding = config.decoding.model_copy(update={"method": "beam", "beam": 1, "n_best": 1})
        store, target = self._store, self.prepared.codecs()[1]
        ids = [store.source[number] for number in range(min(most, len(store.source.lengths)))]

        def translate(model: Transformer, places: Sequence[int]) -> list[str]:
            found = translate_ids(model, [ids[place] for place in places], decoding, self.machine.device)
            return [target.decode(one) for one in found]

        return Validation(store, self.machine, self._bleu_of(len(ids), translate) if most else None)

    def final(self, codecs: tuple[Codec, Codec] | None = None) -> Validation:
        """For a finished model: BLEU with the search of the config, as by `tmt evaluate --split validation`.

        codecs: of the model, if they are not those of the prepared data; then only BLEU can be computed
        """
        codecs, decoding = codecs or self.prepared.codecs(), self.config.decoding
        sources = self._texts[0][: self.sentences]

        def translate(model: Transformer, places: Sequence[int]) -> list[str]:
            directory = ModelDirectory(self.prepared.folder, self.config, model, *codecs)
            translator = Translator([directory], decoding, Computing(scored=False))
            return [one.text for one in translator.translate([sources[place] for place in places], split=False)]

        bleu_of = self._bleu_of(len(sources), translate) if self.config.training.bleu_sentences else None
        return Validation(self._store, self.machine, bleu_of)

    @cached_property
    def _store(self) -> Store:
        return self.prepared.store("validation")

    @cached_property
    def _texts(self) -> tuple[list[str], list[str]]:
        return self.prepared.raw("validation")

    @property
    def sentences(self) -> int:
        """How many validation sentences `final` translates: all, unless this takes long with the config's search."""
        return min(self.prepared.manifest.splits["validation"], max(1, ROWS // make_search(self.config.decoding).rows))

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
        return f"{self.sentences:,} validation sentences with {search_name(self.config.decoding)}"

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

    def _bleu_of(self, count: int, translate: Callable[[Transformer, Sequence[int]], list[str]]) -> BleuOf:
        """BLEU of the first `count` sentences. translate: those at some places of the split."""
        sources, references = (side[:count] for side in self._texts)
        world, language = self.machine.world, self.config.data.one_direction.target

        def bleu_of(model: Transformer) -> BleuResult:
            translations = world.split_work(range(count), lambda own: translate(model, own))
            bleu = world.from_main(lambda: score(translations, references, language, ["bleu"])["bleu"].value)
            shown = [count * place // SAMPLES for place in range(min(SAMPLES, count))]
            return BleuResult(bleu, [Sample(sources[i], references[i], translations[i]) for i in shown])

        return bleu_of
