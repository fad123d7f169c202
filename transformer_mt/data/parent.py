"""What data is prepared with if a training starts from another model: its tokenizers, and what it was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

from transformer_mt.config.direction import Direction
from transformer_mt.config.runs import TRAINED_ON
from transformer_mt.config.schema import Config
from transformer_mt.data.parallel import Workers
from transformer_mt.data.selection import Selection
from transformer_mt.data.store import SIDES, SOURCE, TARGET
from transformer_mt.data.tokenising import sample_of
from transformer_mt.data.trained_on import TrainedOn
from transformer_mt.errors import TmtError, reason
from transformer_mt.files.checksum import sha256_of
from transformer_mt.text.codec import Codec, Segmenter, load_codecs, tokenizers_digest


@dataclass(frozen=True)
class ParentFigures:
    """For the report of `prepare`.

    name:     the model, as the config names it
    tokens:   of its vocabularies, by side; added: tokens that were learned from the new corpus
    known:    whether it is known what the model was trained on; complete: and its own parents
    seen:     for each split except train, its sentences that the model was trained on, by side
    checked:  the share of the sentences that could be compared, by side
    """

    name: str
    tokens: dict[str, int]
    added: dict[str, int]
    known: bool
    complete: bool
    seen: dict[str, dict[str, int]]
    checked: dict[str, float]


@dataclass(frozen=True)
class Parent:
    """name: as the config names it; directions: that it translates

    folder: of the model, or of the copy of its tokenizers in the run
    """

    name: str
    folder: Path
    directions: tuple[Direction, ...]

    def __reduce__(self) -> tuple[type[Parent], tuple[str, Path, tuple[Direction, ...]]]:
        """For other processes, which read the tokenizers themselves: not all of them can be sent."""
        return Parent, (self.name, self.folder, self.directions)

    @cached_property
    def codecs(self) -> tuple[Codec, Codec]:
        """Of source and target. Raises TmtError if a file is missing or damaged."""
        return load_codecs(self.folder)

    @property
    def vocabularies(self) -> dict[str, list[str]]:
        return {side: codec.vocabulary.untagged for side, codec in zip(SIDES, self.codecs, strict=True)}

    def with_tags(self, config: Config) -> tuple[str, ...]:
        """The tags of a model that starts from it: those of the parent keep their places.

        Raises TmtError if tokens would be added before its tags.
        """
        own = self.codecs[0].tags
        if own and config.source_tokenizer.extend:
            remedy = "Remove tokenizer.extend, or train a model from random weights."
            problem = "a model with tags cannot get new words: its tags are its last tokens"
            raise TmtError(problem, place="tokenizer.extend", remedy=remedy)
        return tuple(dict.fromkeys([*own, *config.data.tags]))

    @cached_property
    def trained_on(self) -> TrainedOn | None:
        return TrainedOn.read(self.folder)

    def identity(self) -> list[str]:
        """Hashes of what prepared data depends on."""
        file = self.folder / TRAINED_ON
        try:
            return [tokenizers_digest(self.folder), sha256_of(file) if file.exists() else ""]
        except OSError as error:
            remedy = "Copy the whole model folder again."
            raise TmtError("a file of the model cannot be read", place=error.filename, remedy=remedy) from None

    def segmenters(self, config: Config, selection: Selection, folder: Path, workers: Workers) -> dict[str, Segmenter]:
        """Its tokenizers by side, extended from the training split if the config says so; saves them.

        A shared tokenizer is one object.
        """
        try:
            source = target = Segmenter.of(config.source_tokenizer, config.data.source_language, self.folder / SOURCE)
            if not config.has_shared_tokenizer:
                target = Segmenter.of(config.target_tokenizer, config.data.target_language, self.folder / TARGET)
        except (OSError, ValueError) as error:
            remedy = "Copy the whole model folder again."
            raise TmtError(f"the tokenizer is damaged: {reason(error)}", place=self.folder, remedy=remedy) from None
        for place, segmenter in enumerate(dict.fromkeys((source, target))):
            settings, tokenizer = segmenter.config, segmenter.tokenizer
            if settings.extend and tokenizer.inventory() is not None:
                pairs = sample_of(selection, settings.training_sentences, workers)
                shown = (pair if config.has_shared_tokenizer else pair[place : place + 1] for pair in pairs)
                tokenizer.extend(map(segmenter.casing.apply, chain.from_iterable(shown)), settings.extend)
        source.save(folder / SOURCE)
        if target is not source:
            target.save(folder / TARGET)
        return {SOURCE: source, TARGET: target}

    def figures(self, selection: Selection, codecs: Mapping[str, Codec]) -> ParentFigures:
        """What to report. codecs: the new ones, by side."""
        old = dict(zip(SIDES, self.codecs, strict=True))
        tokens = {side: len(codec) for side, codec in old.items()}
        seen: dict[str, dict[str, int]] = {}
        checked = dict.fromkeys(SIDES, 1.0)
        trained_on = self.trained_on
        for split in selection.splits[1:] if trained_on is not None else ():
            assert trained_on is not None
            seen[split] = dict.fromkeys(SIDES, 0)
            for keys in selection.keys(split):
                for side in SIDES:
                    found, checked[side] = trained_on.seen(keys[side])
                    seen[split][side] += found
        tags = {side: len(codecs[side].tags) - len(old[side].tags) for side in SIDES}  # these are no text
        added = {side: len(codecs[side]) - tokens[side] - tags[side] for side in SIDES}
        complete = trained_on is not None and trained_on.complete
        return ParentFigures(self.name, tokens, added, trained_on is not None, complete, seen, checked)


def hashes_for_model(prepared: Path, parent: Parent | None) -> bytes | None:
    """What a model of this prepared data has been trained on, for its folder; None if an older version prepared it."""
    own = TrainedOn.read(prepared)
    if own is None:
        return None
    return (own if parent is None else own.with_parent(parent.trained_on)).to_bytes()
