"""Text in, text out: a loaded model (or several) with its tokenizers and search settings.

Reading files, printing and progress are the caller's; lines come and go one by one, in constant memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.schema import Config
from transformer_mt.decoding.batches import Request, batched, pad, search
from transformer_mt.decoding.ensemble import mean_log_probability
from transformer_mt.decoding.looking import align_pairs, maps_of
from transformer_mt.decoding.mbr import consensus
from transformer_mt.decoding.model_directory import ModelDirectory, load_model_directory
from transformer_mt.decoding.search import Found
from transformer_mt.errors import TmtError
from transformer_mt.model.transformer import Transformer
from transformer_mt.text.cleaning import clean_text
from transformer_mt.text.codec import Codec
from transformer_mt.text.vocabulary import BOS, EOS, MARKS, PAD, UNK

CHUNK = 2048  # lines that are read, sorted by length and translated together


@dataclass(frozen=True)
class Hypothesis:
    """One translation. alignment: for each token the place of its source token; None unless asked for."""

    text: str
    tokens: tuple[str, ...]
    score: float
    alignment: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Translation:
    """What became of one line. n_best: at least one, best first, no two with the same text."""

    source_tokens: tuple[str, ...]
    n_best: tuple[Hypothesis, ...]
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return self.n_best[0].text

    @property
    def score(self) -> float:
        return self.n_best[0].score

    @property
    def tokens(self) -> tuple[str, ...]:
        return self.n_best[0].tokens


@dataclass(frozen=True)
class AttentionMaps:
    """Attention of every module for one sentence, with the tokens that stand at its rows and columns.

    maps: numpy [H, Q, M] by module path. Rows of the decoder are the tokens produced, columns of its
    self-attention the tokens read.
    """

    maps: Mapping[str, Any]
    rows: Mapping[str, tuple[str, ...]]
    columns: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class _Source:
    """A line on its way into the model."""

    tokens: tuple[str, ...]
    ids: tuple[int, ...]
    prefix: tuple[int, ...]
    notes: tuple[str, ...]


_SILENCE = Translation((), (Hypothesis("", (), 0.0, ()),))


class Translator:
    """One model, or an ensemble that shares its vocabularies, ready to translate."""

    def __init__(
        self, directories: Sequence[ModelDirectory], decoding: DecodingConfig | None = None, seed: int = 0
    ) -> None:
        """Raises TmtError where the models do not share their vocabularies."""
        first = directories[0]
        for other in directories[1:]:
            _require_same_vocabularies(first, other)
        self.config: Config = first.config
        self.decoding = decoding or first.config.decoding
        self.models: list[Transformer] = [directory.model for directory in directories]
        self.source: Codec = first.source
        self.target: Codec = first.target
        self.seed = seed

    @classmethod
    def load(
        cls, folders: Sequence[Path], decoding: DecodingConfig | None = None, device: str = "cpu", seed: int = 0
    ) -> Translator:
        """Raises TmtError where a folder is no model directory, or the models do not fit each other."""
        return cls([load_model_directory(folder, device) for folder in folders], decoding, seed)

    def translate(
        self,
        lines: Iterable[str],
        prefixes: Iterable[str] | None = None,
        chunk_size: int = CHUNK,
        align: bool = False,
    ) -> Iterator[Translation]:
        """One translation for each line, in order. A line of white space becomes an empty one.

        prefixes: what the translations must begin with, one a line. chunk_size: lines taken from `lines` before
        the first answer. align: also say which source token each target token comes from.
        """
        iterator, starts = iter(lines), iter(prefixes) if prefixes is not None else None
        while chunk := list(islice(iterator, chunk_size)):
            given = list(islice(starts, len(chunk))) if starts is not None else [""] * len(chunk)
            sources = [self._read(line, prefix) for line, prefix in zip(chunk, given, strict=True)]
            spoken = [index for index, source in enumerate(sources) if source.tokens]
            answers = self._answer([sources[index] for index in spoken], align)
            found = dict(zip(spoken, answers, strict=True))
            yield from (found.get(index, _SILENCE) for index in range(len(chunk)))

    def reference_loss(self, sources: Sequence[str], references: Sequence[str]) -> tuple[float, int]:
        """Sum of -log p over all reference tokens, end marks included, and their number."""
        pairs = [
            (self._read(source, "").ids, self._cut(self.target.encode(self._clean(reference, "target"))))
            for source, reference in zip(sources, references, strict=True)
        ]
        total, count = 0.0, 0
        lengths = [max(len(source), len(target)) for source, target in pairs]
        for batch in batched(lengths, self.decoding.model_copy(update={"method": "beam", "beam": 1, "n_best": 1})):
            total += self._loss([pairs[index] for index in batch])
            count += sum(len(pairs[index][1]) for index in batch)
        return total, count

    def attention(self, line: str, target: Sequence[str] | None = None) -> AttentionMaps:
        """Where the first model looks while it translates `line` into the tokens `target` (default: its own best)."""
        source = self._read(line, "")
        if target is None:
            target = self._answer([source], align=False)[0].tokens if source.tokens else ()
        produced = (*self.target.vocabulary.encode(target), EOS)
        weights = {path: map_HQM.numpy() for path, map_HQM in maps_of(self.models[0], source.ids, produced).items()}
        read, written = (*source.tokens, MARKS[EOS]), (*target, MARKS[EOS])
        before = (MARKS[BOS], *target)
        return AttentionMaps(
            weights,
            {path: read if path.startswith("encoder") else written for path in weights},
            {path: before if path.startswith("decoder") and "self" in path else read for path in weights},
        )

    def _clean(self, line: str, side: str) -> str:
        language = self.config.data.source if side == "source" else self.config.data.target
        return clean_text(line, self.config.data.cleaning, language)

    def _read(self, line: str, prefix: str) -> _Source:
        """Clean, split and number a line; say what is lost on the way."""
        tokens = self.source.segmenter.tokenize(self._clean(line, "source")) if line.strip() else []
        most, notes = self.config.data.max_length - 1, []
        if len(tokens) > most:
            notes.append(f"cut to {most} of {len(tokens)} tokens (the model's longest sentence)")
            tokens = tokens[:most]
        ids = self.source.vocabulary.encode(tokens)
        unknown = [token for token, index in zip(tokens, ids, strict=True) if index == UNK]
        if unknown:
            shown = ", ".join(dict.fromkeys(self.source.segmenter.detokenize([token]) for token in unknown[:5]))
            more = ", ..." if len(unknown) > 5 else ""
            notes.append(f"{len(unknown)} unknown {'word' if len(unknown) == 1 else 'words'}: {shown}{more}")
        return _Source(tuple(tokens), (*ids, EOS), self._prefix_ids(prefix), tuple(notes))

    def _prefix_ids(self, prefix: str) -> tuple[int, ...]:
        if not prefix.strip():
            return ()
        ids = self.target.encode(self._clean(prefix, "target"))[:-1]
        if len(ids) > self.config.data.max_length - 2:
            raise TmtError(
                f"the prefix has {len(ids)} tokens; the model writes at most {self.config.data.max_length}",
                remedy="Give a shorter prefix.",
            )
        return tuple(ids)

    def _cut(self, ids: Sequence[int]) -> tuple[int, ...]:
        most = self.config.data.max_length
        return tuple(ids) if len(ids) <= most else (*ids[: most - 1], EOS)

    def _answer(self, sources: Sequence[_Source], align: bool) -> list[Translation]:
        found = search(self.models, [Request(one.ids, one.prefix) for one in sources], self.decoding, self.seed)
        found = [self._chosen(candidates) for candidates in found]
        aligned = self._alignments(sources, found, align)
        return [
            self._translation(source, candidates, alignments, align)
            for source, candidates, alignments in zip(sources, found, aligned, strict=True)
        ]

    def _chosen(self, found: list[Found]) -> list[Found]:
        """The n best with different texts."""
        texts: dict[str, Found] = {}
        for candidate in found:
            texts.setdefault(self.target.decode(candidate.ids), candidate)
        if self.decoding.method == "mbr":
            every = [self.target.decode(candidate.ids) for candidate in found]
            ranked = consensus(every, self.decoding.utility)
            texts = {text: Found(texts[text].ids, texts[text].log_probability, score) for text, score in ranked}
        chosen = list(texts.values())
        if self.decoding.method == "sample":
            chosen.sort(key=lambda candidate: -candidate.score)
        return chosen[: self.decoding.n_best]

    def _alignments(
        self, sources: Sequence[_Source], found: Sequence[Sequence[Found]], wanted: bool
    ) -> list[list[list[int]]]:
        """For each hypothesis of each source, where its tokens come from; empty where nobody needs to know."""
        empty: list[list[list[int]]] = [[[] for _ in candidates] for candidates in found]
        needed = [
            (row, place)
            for row, candidates in enumerate(found)
            for place, candidate in enumerate(candidates)
            if candidate.ids and (wanted or (self.decoding.replace_unknown and UNK in candidate.ids))
        ]
        lengths = [max(len(sources[row].ids), len(found[row][place].ids)) for row, place in needed]
        for batch in batched(lengths, DecodingConfig(beam=1)):
            pairs = [needed[index] for index in batch]
            rows = align_pairs(
                self.models, [sources[row].ids for row, _ in pairs], [found[row][at].ids for row, at in pairs]
            )
            for (row, place), alignment in zip(pairs, rows, strict=True):
                empty[row][place] = alignment
        return empty

    def _translation(
        self, source: _Source, found: Sequence[Found], alignments: Sequence[Sequence[int]], aligned: bool
    ) -> Translation:
        notes = source.notes
        if found[0].stopped:
            notes = (*notes, f"the translation was stopped after {len(found[0].ids)} tokens")
        n_best = tuple(
            self._hypothesis(source, candidate, alignment, aligned)
            for candidate, alignment in zip(found, alignments, strict=True)
        )
        return Translation(source.tokens, n_best, notes)

    def _hypothesis(self, source: _Source, found: Found, alignment: Sequence[int], aligned: bool) -> Hypothesis:
        unknown: list[str] = []
        if self.decoding.replace_unknown:
            places = [place for index, place in zip(found.ids, alignment, strict=False) if index == UNK]
            unknown = [self.source.segmenter.detokenize([source.tokens[place]]) for place in places]
        tokens = tuple(self.target.vocabulary.decode(found.tokens))
        text = self.target.decode(found.ids, unknown)
        return Hypothesis(text, tokens, found.score, tuple(alignment[: len(tokens)]) if aligned else None)

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


def _require_same_vocabularies(first: ModelDirectory, other: ModelDirectory) -> None:
    for side in ("source", "target"):
        if getattr(first, side).vocabulary != getattr(other, side).vocabulary:
            raise TmtError(
                f"the {side} vocabulary differs from that of {first.folder}, so their votes cannot be counted together",
                place=other.folder,
                remedy="An ensemble needs models trained on the same prepared data.",
            )
