"""A loaded model (or several) that translates, weighs references and shows where it looks.

How lines become ids and ids lines again is `interpreter`'s; how is searched, `batches`'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.decoding.batches import pad, search
from transformer_mt.decoding.ensemble import mean_log_probability
from transformer_mt.decoding.interpreter import Interpreter
from transformer_mt.decoding.looking import align_pairs, maps_of
from transformer_mt.decoding.model_directory import ModelDirectory, load_model_directory
from transformer_mt.decoding.request import Request, SearchResult, batched
from transformer_mt.errors import TmtError
from transformer_mt.model.transformer import Transformer
from transformer_mt.text.vocabulary import BOS, EOS, MARKS, PAD

LOSS_TOKENS = 2048  # of a batch: all its positions have their logits at once
ALIGN_TOKENS = 12288  # of a batch


@dataclass(frozen=True)
class AttentionMaps:
    """Attention of every module for one sentence, with the tokens that stand at its rows and columns.

    maps: numpy [H, Q, M] by module path. Rows of the decoder are the tokens produced, columns of its
    self-attention the tokens read.
    """

    maps: Mapping[str, Any]
    rows: Mapping[str, tuple[str, ...]]
    columns: Mapping[str, tuple[str, ...]]


class ReferenceLoss(NamedTuple):
    """nats: sum of -log p over the references' tokens, end marks included. tokens: their number. n_cut: references
    whose end was not read."""

    nats: float
    tokens: int
    n_cut: int


class Translator(Interpreter):
    """One model, or an ensemble that shares its vocabularies, ready to translate."""

    def __init__(
        self,
        directories: Sequence[ModelDirectory],
        decoding: DecodingConfig | None = None,
        seed: int = 0,
        scored: bool = True,
    ) -> None:
        """seed, scored: see `Computing`. Raises TmtError if the models do not share their vocabularies."""
        first = directories[0]
        for other in directories[1:]:
            _require_alike(first, other)
        super().__init__(first.config, first.source, first.target, decoding)
        self.max_length = min(directory.config.data.max_length for directory in directories)
        self.models: list[Transformer] = [directory.model for directory in directories]
        self.seed, self.scored = seed, scored

    @classmethod
    def load(
        cls,
        folders: str | Path | Sequence[str | Path],
        decoding: DecodingConfig | None = None,
        device: str = "cpu",
        seed: int = 0,
        scored: bool = True,
    ) -> Translator:
        """folders: a model directory, or several for an ensemble.

        Raises TmtError if a folder is no model directory, or the models do not fit each other.
        """
        several = [folders] if isinstance(folders, (str, Path)) else folders
        return cls([load_model_directory(Path(folder), device) for folder in several], decoding, seed, scored)

    def reference_loss(self, sources: Sequence[str], references: Sequence[str]) -> ReferenceLoss:
        """How well the references are foretold, as far as the model can read them."""
        read = [self._read(source, "").ids for source in sources]
        whole = [self.target.encode(self._clean(reference, "target")) for reference in references]
        pairs = list(zip(read, map(self._cut, whole), strict=True))
        total, count = 0.0, 0
        lengths = [max(len(source), len(target)) for source, target in pairs]
        for batch in batched(lengths, 1, LOSS_TOKENS):
            total += self._loss([pairs[index] for index in batch])
            count += sum(len(pairs[index][1]) for index in batch)
        return ReferenceLoss(total, count, sum(len(ids) > self.max_length for ids in whole))

    def attention(self, line: str, target: Sequence[str] | None = None, prefix: str = "") -> AttentionMaps:
        """Where the first model looks while it translates `line` into the tokens `target`.

        Default: its own best translation, that begins with `prefix`, and is shown as far as it was written.
        """
        source = self._read(line, prefix)
        produced: Sequence[int] = (*self.target.vocabulary.encode(target or ()), EOS)
        if target is None and source.tokens:
            produced = self._choose(self._search([Request(source.ids, source.prefix)])[0])[0].ids
        written = tuple(self.target.vocabulary.decode(produced))
        weights = {path: map_HQM.numpy() for path, map_HQM in maps_of(self.models[0], source.ids, produced).items()}
        read, before = (*source.tokens, MARKS[EOS]), (MARKS[BOS], *written[:-1])
        return AttentionMaps(
            weights,
            {path: read if path.startswith("encoder") else written for path in weights},
            {path: before if path.startswith("decoder") and "self" in path else read for path in weights},
        )

    def _cut(self, ids: Sequence[int]) -> tuple[int, ...]:
        most = self.max_length
        return tuple(ids) if len(ids) <= most else (*ids[: most - 1], EOS)

    def _search(self, requests: Sequence[Request]) -> list[list[SearchResult]]:
        return search(self.models, requests, self.decoding, self.seed, self.scored)

    def _align(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[int]]:
        aligned: list[list[int]] = [[] for _ in sources]
        lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
        for batch in batched(lengths, 1, ALIGN_TOKENS):
            rows = align_pairs(self.models, [sources[index] for index in batch], [targets[index] for index in batch])
            for index, row in zip(batch, rows, strict=True):
                aligned[index] = row
        return aligned

    def _loss(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> float:
        device = self.device
        source_BS = pad([source for source, _ in pairs], device)
        out_BT = pad([target for _, target in pairs], device)
        in_BT = pad([[BOS, *target[:-1]] for _, target in pairs], device)
        with torch.inference_mode():
            logits = [model.generate_logits(model(source_BS, in_BT)) for model in self.models]
            log_p_BTV = mean_log_probability(logits)
            return float(F.nll_loss(log_p_BTV.flatten(0, 1), out_BT.flatten(), ignore_index=PAD, reduction="sum"))

    @cached_property
    def device(self) -> torch.device:
        return next(self.models[0].parameters()).device


def _require_alike(first: ModelDirectory, other: ModelDirectory) -> None:
    """Raises TmtError where two models do not translate between the same languages, from and into the same tokens."""
    wanted, found = first.config.data.direction, other.config.data.direction
    if wanted != found:
        raise TmtError(
            f"this model translates {found}, and {first.folder} {wanted}",
            place=other.folder,
            remedy="An ensemble needs models of the same direction.",
        )
    for side in ("source", "target"):
        if getattr(first, side).vocabulary != getattr(other, side).vocabulary:
            raise TmtError(
                f"the {side} vocabulary differs from that of {first.folder}, so their votes cannot be counted together",
                place=other.folder,
                remedy="An ensemble needs models trained on the same prepared data.",
            )
