"""CTranslate2 as the engine behind `Interpreter`: the same lines, options, limits and scores as our own search.

Its beam search keeps and drops the same hypotheses as ours, step by step, but ranks what it found by another
length penalty and has one longest length for a whole batch. So all it found is asked for and ranked here, and
what broke a sentence's own limits is searched again with these. In two cases it may find another translation:
where options forbid tokens (a shortest length, no_repeat_ngram), CTranslate2 shares their probability among the
others while it searches, which we do not; and the tokens of a prefix cost nothing there. Samples repeat with the
same seed and input, but depend on their neighbours.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np

from transformer_mt.config.cores import cores
from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.load import CONFIG, load_config
from transformer_mt.decoding.interpreter import Computing, Interpreter
from transformer_mt.decoding.request import Request, SearchResult, allowed_lengths, batched, length_penalty
from transformer_mt.decoding.searches.base import Search
from transformer_mt.decoding.searches.beam import Beam
from transformer_mt.errors import TmtError
from transformer_mt.exporting.ctranslate2 import POSITIONS
from transformer_mt.text.codec import load_codecs
from transformer_mt.text.vocabulary import BOS, MARKS, PAD

_NEVER = -1e9  # the log-probability of what CTranslate2 puts into a place it could not fill is below this
_NO_PENALTY = 1e-6  # a length penalty of 0 would also change when CTranslate2's beam search stops
_AHEAD = 2  # batches queued for each worker while it is busy
_FORBIDDEN = [[MARKS[PAD]], [MARKS[BOS]]]


@dataclass(frozen=True)
class _Task:
    """A request with the fewest tokens its translation may have before the end mark, and the most with it."""

    request: Request
    shortest: int
    longest: int

    def is_broken_by(self, found: Sequence[SearchResult]) -> bool:
        """Is a hypothesis longer than it may be, or does it hold what no translation may?"""
        return any(len(one.ids) > self.longest or PAD in one.ids or BOS in one.ids for one in found)


class Ctranslate2Engine(Interpreter):
    """An exported model, ready to translate."""

    def __init__(self, folder: Path, decoding: DecodingConfig | None, computing: Computing) -> None:
        """folder: a whole exported one.

        Raises TmtError where a file is damaged or an option is not CTranslate2's, RuntimeError where it refuses
        the model or the device.
        """
        super().__init__(load_config(folder / CONFIG), *load_codecs(folder), decoding)
        _refuse_unsupported(self.search, folder)
        self._by_beam = isinstance(self.search.proposer, Beam)
        self._scored = computing.scored or not self._by_beam or self.decoding.beam > 1
        self._words = self.target.vocabulary.tokens
        self._source_words = self.source.vocabulary.tokens
        self._ids = {word: index for index, word in enumerate(self._words)}
        _require_own_words(folder, self._source_words, self._words)
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self._positions: int | None = None if self.config.model.positions == "rotary" else settings[POSITIONS]
        self.max_length = min(self.max_length, self._positions or self.max_length)  # config.yaml may say more since
        ctranslate2.set_random_seed(computing.seed % 2**32)  # read by the threads that start now
        self.engine = _started(folder, computing.device, cores(computing.threads or 0), alone=not self._by_beam)

    def _search(self, requests: Sequence[Request]) -> list[list[SearchResult]]:
        tasks = [_Task(one, *allowed_lengths(one, self.decoding, self._positions)) for one in requests]
        found = self._attempt(tasks, self._batches(tasks))
        wrong = [index for index, (task, one) in enumerate(zip(tasks, found, strict=True)) if task.is_broken_by(one)]
        again = self._attempt_exactly([tasks[index] for index in wrong])
        for index, one in zip(wrong, again, strict=True):
            found[index] = one
        return self._ranked(self._weighed(requests, found) if self._reweighs(requests) else found)

    def _batches(self, tasks: Sequence[_Task]) -> Iterator[list[int]]:
        """Sentences of similar length; all with the same shortest translation, which cannot be mended afterwards."""
        lengths = [len(task.request.source) for task in tasks]
        for batch in batched(lengths, self.search.rows, self.decoding.batch_tokens, self._positions):
            for _, group in groupby(batch, lambda index: tasks[index].shortest):
                yield list(group)

    def _attempt(
        self, tasks: Sequence[_Task], batches: Iterable[Sequence[int]], exact: bool = False
    ) -> list[list[SearchResult]]:
        """Queue the batches, a few ahead of the results that are waited for; in the order of the tasks.

        What is queued cannot be called back: an interrupted program ends only when it is done.
        """
        found: list[list[SearchResult]] = [[] for _ in tasks]
        queued: deque[list[tuple[int, Any, float]]] = deque()
        for batch in batches:
            exponent = self._exponent(max(len(tasks[index].request.source) for index in batch))
            answers = self._ask([tasks[index] for index in batch], exponent, exact)
            queued.append([(index, answer, exponent) for index, answer in zip(batch, answers, strict=True)])
            if len(queued) > _AHEAD * self.engine.num_translators:
                self._receive(queued.popleft(), found)
        for waiting in queued:
            self._receive(waiting, found)
        return found

    def _receive(self, waiting: Sequence[tuple[int, Any, float]], found: list[list[SearchResult]]) -> None:
        """Wait for (index, answer, exponent) of a batch, and put each where it belongs."""
        for index, answer, exponent in waiting:
            result = answer.result()
            for words, score in zip(result.hypotheses, result.scores if self._scored else [0.0], strict=True):
                if (total := score * max(len(words), 1) ** exponent) > _NEVER:
                    found[index].append(self._found(tuple(self._ids[word] for word in words), total))

    def _attempt_exactly(self, tasks: Sequence[_Task]) -> list[list[SearchResult]]:
        """As `_attempt`, within each sentence's own limits and without the marks no translation may hold."""
        found = self._attempt(tasks, _with_equal_limits(tasks), exact=True)
        return self._weighed([task.request for task in tasks], found)

    def _ask(self, tasks: Sequence[_Task], exponent: float, exact: bool) -> Sequence[Any]:
        """Queue a batch: one answer to wait for a sentence. exact: forbid what no translation may hold."""
        prefixes = [self._spelt(task.request.prefix) for task in tasks]
        return self.engine.translate_batch(
            [self._spelt_source(task.request.source) for task in tasks],
            prefixes if any(prefixes) else None,
            max_input_length=0,
            max_decoding_length=max(task.longest for task in tasks),
            min_decoding_length=tasks[0].shortest,
            length_penalty=exponent,
            return_scores=self._scored,
            return_end_token=True,
            suppress_sequences=_FORBIDDEN if exact else None,
            asynchronous=True,
            **self._options(),
        )

    def _options(self) -> dict[str, Any]:
        """Our search settings in CTranslate2's words."""
        decoding = self.decoding
        options: dict[str, Any] = {"no_repeat_ngram_size": decoding.no_repeat_ngram}
        if self._by_beam:
            return options | {"beam_size": decoding.beam, "num_hypotheses": decoding.beam}
        top_k = decoding.top_k if decoding.top_k < len(self._words) else 0
        cut = {"sampling_topk": top_k, "sampling_topp": decoding.top_p}
        heat = {"sampling_temperature": decoding.temperature}
        return options | {"beam_size": 1, "num_hypotheses": self.search.rows} | cut | heat

    def _exponent(self, usual: int) -> float:
        """Of CTranslate2's length penalty, n^exponent, by which it leaves out what it found beyond W hypotheses.

        The one that agrees with our penalty on translations of one token and of the `usual` number.
        """
        if not self._by_beam or self.decoding.beam == 1:
            return 0.0
        usual = max(usual, 2)
        return max(math.log(length_penalty(usual, self.decoding.length_penalty)) / math.log(usual), _NO_PENALTY)

    def _found(self, ids: tuple[int, ...], log_probability: float) -> SearchResult:
        penalty = float(length_penalty(len(ids), self.decoding.length_penalty))
        return SearchResult(ids, log_probability, log_probability / penalty)

    def _ranked(self, found: Sequence[Sequence[SearchResult]]) -> list[list[SearchResult]]:
        """Best first by our length penalty; samples in the order drawn."""
        if not self._by_beam:
            return [list(candidates) for candidates in found]
        return [sorted(candidates, key=lambda one: -one.score) for candidates in found]

    def _reweighs(self, requests: Sequence[Request]) -> bool:
        """Are CTranslate2's scores other than the model's? Prefixes cost nothing there, and what options forbid
        leaves its probability to the others."""
        forbids = self.decoding.no_repeat_ngram > 0 or self.decoding.min_length_ratio > 0
        return forbids or any(request.prefix for request in requests)

    def _weighed(
        self, requests: Sequence[Request], found: Sequence[Sequence[SearchResult]]
    ) -> list[list[SearchResult]]:
        """The same hypotheses with the model's own log-probabilities; as they are where scores are spared."""
        if not self._scored:
            return [list(some) for some in found]
        pairs = [(request, one) for request, some in zip(requests, found, strict=True) for one in some]
        if not pairs:
            return [[] for _ in requests]
        scored = self.engine.score_batch(
            [self._spelt_source(request.source) for request, _ in pairs],
            [self._spelt(one.tokens) for _, one in pairs],
            max_input_length=0,
            max_batch_size=self.decoding.batch_tokens,
            batch_type="tokens",
        )
        # The end mark is always scored, and comes last.
        totals = iter([sum(one.log_probs[: len(pair[1].ids)]) for pair, one in zip(pairs, scored, strict=True)])
        return [[self._found(one.ids, next(totals)) for one in some] for some in found]

    def _align(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[int]]:
        """The finished translation is forced through once more, this time with its attention."""
        aligned: list[list[int]] = [[] for _ in sources]
        lengths = [len(source) for source in sources]
        for batch in batched(lengths, self.search.rows, self.decoding.batch_tokens, self._positions):
            results = self.engine.translate_batch(
                [self._spelt_source(sources[index]) for index in batch],
                [self._spelt(targets[index]) for index in batch],
                beam_size=1,
                max_input_length=0,
                max_decoding_length=max(len(targets[index]) for index in batch),
                return_end_token=True,
                return_attention=True,
            )
            for index, result in zip(batch, results, strict=True):
                weights_TS = np.asarray(result.attention[0][: len(targets[index])])
                words_TS = weights_TS[:, : max(len(sources[index]) - 1, 1)]  # never the end mark
                aligned[index] = words_TS.argmax(axis=1).tolist()
        return aligned

    def _spelt_source(self, ids: Sequence[int]) -> list[str]:
        return [self._source_words[index] for index in ids]

    def _spelt(self, ids: Sequence[int]) -> list[str]:
        return [self._words[index] for index in ids]


def _started(folder: Path, device: str, threads: int, alone: bool) -> ctranslate2.Translator:
    """CTranslate2 with the model in its memory. alone: one batch after the other, so that samples repeat.

    On a CPU sentences are many and small: a thread for each batch is faster than several threads for one.
    """
    on_cpu = device == "cpu" or (device == "auto" and ctranslate2.get_cuda_device_count() == 0)
    workers = threads if on_cpu and not alone else 1
    return ctranslate2.Translator(
        str(folder), device, inter_threads=workers, intra_threads=threads // workers, max_queued_batches=-1
    )


def _require_own_words(folder: Path, source: Sequence[str], target: Sequence[str]) -> None:
    """Raises ValueError where CTranslate2's vocabularies are not those of our tokenizers."""
    for name, words in (("shared", source), ("source", source), ("target", target)):
        file = folder / f"{name}_vocabulary.json"
        if file.exists() and json.loads(file.read_text(encoding="utf-8")) != list(words):
            raise ValueError(f"{file.name} is not the vocabulary of the tokenizer beside it")


def _with_equal_limits(tasks: Sequence[_Task]) -> Iterator[list[int]]:
    """Indices of tasks that allow the same lengths."""

    def limits(index: int) -> tuple[int, int]:
        return tasks[index].shortest, tasks[index].longest

    for _, group in groupby(sorted(range(len(tasks)), key=limits), limits):
        yield list(group)


def _refuse_unsupported(search: Search, folder: Path) -> None:
    """Raises TmtError for a search, or a setting of it, that CTranslate2 does not have."""
    decoding, by_beam = search.decoding, isinstance(search.proposer, Beam)
    if "ctranslate2" not in search.engines:
        raise TmtError(
            f"CTranslate2 cannot search by decoding.method {decoding.method}",
            place=folder / CONFIG,
            remedy="Use --engine tmt, or another method.",
        )
    if decoding.coverage_penalty:  # it needs the attention of a beam search, which is wrong for several sentences
        raise TmtError(
            "CTranslate2 has no decoding.coverage_penalty like ours",
            place=folder / CONFIG,
            remedy="Set decoding.coverage_penalty to 0 there, or use --engine tmt.",
        )
    if by_beam and decoding.beam > 1 and decoding.min_length_ratio:  # it lets other hypotheses end
        raise TmtError(
            "CTranslate2's beam search has no decoding.min_length_ratio like ours",
            place=folder / CONFIG,
            remedy="Set decoding.min_length_ratio to 0 there, or use --beam 1 or --engine tmt.",
        )
    if not by_beam and decoding.top_k == 1 and search.rows > 1:
        raise TmtError(
            "CTranslate2 draws one sample only where decoding.top_k is 1",
            place=folder / CONFIG,
            remedy="That is greedy search: use --beam 1 without --sample or --mbr, or --engine tmt.",
        )
