"""Scores a model for several directions on the splits of its data, direction by direction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from transformer_mt.config.direction import Direction
from transformer_mt.data.prepared import Prepared
from transformer_mt.decoding.batches import translate_ids
from transformer_mt.decoding.model_directory import load_model_directory
from transformer_mt.decoding.searches.base import search_name
from transformer_mt.evaluation.examine import System, examine
from transformer_mt.evaluation.report import Report
from transformer_mt.runtime.device import pick_device
from transformer_mt.text.vocabulary import bleu_of_tokens
from transformer_mt.workflows.candidates import places_of


def evaluate_directions(
    folder: Path, prepared: Prepared, names: Sequence[str], device: str
) -> Iterator[tuple[str, Report]]:
    """The report of each direction of each split, named as `test ko-en`, with the BLEU of its target language.

    folder: of the model
    """
    machine = pick_device(device)
    model = load_model_directory(folder, machine)
    decoding = model.config.decoding
    for name in names:
        store, (sources, references) = prepared.store(name), prepared.raw(name)
        for direction, places in places_of(prepared, name).items():
            found = translate_ids(model.model, [store.source[place] for place in places], decoding, machine)
            system = System(
                name=f"{name} {direction}",
                hypotheses=[model.target.decode(ids) for ids in found],
                references=[references[place] for place in places],
                language=Direction.of(direction).target,
                sources=[sources[place] for place in places],
                search=search_name(decoding),
            )
            yield system.name, examine(system, ("bleu", "chrf"), bleu_of_tokens)
