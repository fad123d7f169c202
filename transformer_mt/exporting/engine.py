"""CTranslate2 as the engine of an `Interpreter`: the same options, limits and scores as `decoding.translator`.

Its beam search keeps and drops the same hypotheses as `decoding.beam_search`, step by step. But it ranks the results by
another length penalty, and it has one longest length for a whole batch. So all its results are fetched and ranked here,
and sentences with a result beyond their own limits are searched again. It may still find other translations in two
cases: if options forbid tokens (a shortest length, no_repeat_ngram), CTranslate2 gives their probability to the other
tokens while it searches; and the tokens of a prefix cost nothing. Samples repeat with the same seed and input, but
depend on the other sentences of a batch.
"""

from __future__ import annotations

import json
import math
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import ctranslate2
import numpy as np
from typing_extensions import Self

from transformer_mt.config.cores import cores
from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.load import CONFIG, load_config
from transformer_mt.decoding.forced import Forced
from transformer_mt.decoding.interpreter import Computing, Interpreter
from transformer_mt.decoding.request import Request, SearchResult, allowed_lengths, batched, length_penalty
from transformer_mt.decoding.searches.base import Search
from transformer_mt.decoding.searches.beam import Beam
from transformer_mt.errors import TmtError
from transformer_mt.exporting.origin import verified_origin
from transformer_mt.text.codec import load_codecs
from transformer_mt.text.vocabulary import BOS, EOS, PAD

POSITIONS = "max_positions"  # key in CTranslate2's config.json: rows of the position tables
_NEVER = -1e9  # CTranslate2 fills empty places of a beam with log-probabilities below this
_NO_PENALTY = 1e-6  # not 0, which would also change when CTranslate2's beam search stops
_AHEAD = 2  # batches queued for each worker while it is busy


class _Task(NamedTuple):
    """A request, the fewest tokens of its translation without the end token, and the most tokens with it."""

    request: Request
    shortest: int
    longest: int


class Ctranslate2Engine(Interpreter):
    """An exported model, ready to translate."""

    def __init__(self, folder: Path, decoding: DecodingConfig | None, computing: Computing) -> None:
        """folder: an export.

        Raises TmtError if a file is damaged, RuntimeError if CTranslate2 cannot load the model or use the device,
        ValueError if its vocabularies do not match the tokenizers.
        """
        origin = verified_origin(folder)
        super().__init__(load_config(folder / CONFIG), *load_codecs(folder), decoding)
        self.folders = [folder]
        if origin is not None:
            self.fingerprint, self.quantization = origin.fingerprint, origin.quantization
        self._wants_scores = computing.scored
        source, target = self.source.vocabulary.tokens, self.target.vocabulary.tokens
        for name, words in (("shared", source), ("source", source), ("target", target)):
            file = folder / f"{name}_vocabulary.json"
            if file.exists() and json.loads(file.read_text(encoding="utf-8")) != words:
                raise ValueError(f"{file.name} does not match the tokenizer in this folder")
        self._ids = {word: index for index, word in enumerate(target)}
        self._forbidden = {PAD, BOS, *self.target.vocabulary.tag_ids(self.target.tags)}
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self._positions: int | None = None if self.config.model.positions == "rotary" else settings[POSITIONS]
        self.max_length = min(self.max_length, self._positions or self.max_length)  # config.yaml may have been edited
        ctranslate2.set_random_seed(computing.seed % 2**32)  # for the threads that start below
        (device, _, number), threads = computing.device.partition(":"), cores(computing.threads or 0)
        # On a CPU, one thread for each batch is faster than several threads for one batch.
        # Samples repeat only if batches are translated one after the other.
        on_cpu = device == "cpu" or (device == "auto" and ctranslate2.get_cuda_device_count() == 0)
        workers = threads if on_cpu and self._by_beam else 1
        torch: Any = sys.modules.get("torch")  # CTranslate2 changes its number of threads
        before = torch.get_num_threads() if torch else None
        self.engine = ctranslate2.Translator(
            str(folder),
            device,
            device_index=int(number or 0),
            inter_threads=workers,
            intra_threads=threads // workers,
            max_queued_batches=-1,
        )
        if torch:
            torch.set_num_threads(before)

    def with_search(self, decoding: DecodingConfig) -> Self:
        other = super().with_search(decoding)
        refuse_unsupported(other.search, self.folders[0])
        return other

    @property
    def _by_beam(self) -> bool:
        return isinstance(self.search.proposer, Beam)

    @property
    def _scored(self) -> bool:
        return self._wants_scores or not self._by_beam or self.decoding.beam > 1

    def _search(self, requests: Sequence[Request]) -> list[list[SearchResult]]:
        """Best first by `request.length_penalty`; samples in the order drawn."""
        tasks = [_Task(one, *allowed_lengths(one, self.decoding, self._positions)) for one in requests]
        lengths = [len(request.source) for request in requests]
        batches = [  # with equal shortest lengths, because a translation that is too short cannot be completed later
            list(group)
            for batch in batched(lengths, self.search.rows, self.decoding.token_budget, self._positions)
            for _, group in groupby(batch, lambda index: tasks[index].shortest)
        ]
        found = self._search_batches(tasks, batches)
        wrong = [  # too long, or with forbidden marks or tags: searched again with exact limits
            index
            for index, task in enumerate(tasks)
            if any(len(one.ids) > task.longest or not self._forbidden.isdisjoint(one.ids) for one in found[index])
        ]
        again = sorted(wrong, key=lambda index: tasks[index][1:])  # equal limits together
        batches = [list(group) for _, group in groupby(again, lambda index: tasks[index][1:])]
        found |= self._search_batches(tasks, batches, exact=True)
        # In CTranslate2's scores a prefix costs nothing, and forbidden tokens leave their probability to the others.
        forbids = self.decoding.no_repeat_ngram > 0 or self.decoding.min_length_ratio > 0
        rescored = range(len(tasks)) if forbids or any(request.prefix for request in requests) else wrong
        if self._scored:
            found |= self._rescored(requests, {index: found[index] for index in rescored})
        ranked = (found[index] for index in range(len(tasks)))
        return [sorted(some, key=lambda one: -one.score) if self._by_beam else some for some in ranked]

    def _search_batches(
        self, tasks: Sequence[_Task], batches: Iterable[Sequence[int]], exact: bool = False
    ) -> dict[int, list[SearchResult]]:
        """Search batches of task indices; returns the results by task index.

        Only a few batches are queued at once: a queued batch cannot be cancelled, so an interrupted program has to wait
        for it.
        exact: forbid marks and tags, which no translation may contain
        """
        found: dict[int, list[SearchResult]] = {}
        queued: deque[tuple[Sequence[int], Sequence[Any], float]] = deque()
        for batch in batches:
            exponent = self._exponent(max(len(tasks[index].request.source) for index in batch))
            queued.append((batch, self._queue([tasks[index] for index in batch], exponent, exact), exponent))
            if len(queued) > _AHEAD * self.engine.num_translators:
                found |= self._results(*queued.popleft())
        for waiting in queued:
            found |= self._results(*waiting)
        return found

    def _results(self, batch: Sequence[int], answers: Sequence[Any], exponent: float) -> dict[int, list[SearchResult]]:
        """Wait for the answers to a batch; returns the results by task index."""
        found: dict[int, list[SearchResult]] = {index: [] for index in batch}
        for index, answer in zip(batch, answers, strict=True):
            result = answer.result()
            for words, score in zip(result.hypotheses, result.scores if self._scored else [0.0], strict=True):
                if (total := score * max(len(words), 1) ** exponent) > _NEVER:
                    found[index].append(self._result(tuple(self._ids[word] for word in words), total))
        return found

    def _queue(self, tasks: Sequence[_Task], exponent: float, exact: bool) -> Sequence[Any]:
        """Queue a batch, with our settings as CTranslate2's options; returns an answer to wait for per sentence."""
        decoding, source, target = self.decoding, self.source.vocabulary, self.target.vocabulary
        prefixes = [target.decode(task.request.prefix) for task in tasks]
        options: dict[str, float] = {"beam_size": decoding.beam, "num_hypotheses": decoding.beam}
        if not self._by_beam:
            options = {
                "beam_size": 1,
                "num_hypotheses": self.search.rows,
                "sampling_topk": decoding.top_k if decoding.top_k < len(target) else 0,
                "sampling_topp": decoding.top_p,
                "sampling_temperature": decoding.temperature,
            }
        answers: Sequence[Any] = self.engine.translate_batch(
            [source.decode(task.request.source) for task in tasks],
            prefixes if any(prefixes) else None,
            max_input_length=0,
            max_decoding_length=max(task.longest for task in tasks),
            min_decoding_length=tasks[0].shortest,
            no_repeat_ngram_size=decoding.no_repeat_ngram,
            length_penalty=exponent,
            return_scores=self._scored,
            return_end_token=True,
            suppress_sequences=[[target.tokens[one]] for one in sorted(self._forbidden)] if exact else None,
            asynchronous=True,
            **options,
        )
        return answers

    def _exponent(self, usual: int) -> float:
        """The exponent of CTranslate2's length penalty n^exponent, by which it drops results beyond the beam width.

        With it, the penalty equals `request.length_penalty` for translations of 1 token and of `usual` tokens.
        """
        if not self._by_beam or self.decoding.beam == 1:
            return 0.0
        usual = max(usual, 2)
        return max(math.log(length_penalty(usual, self.decoding.length_penalty)) / math.log(usual), _NO_PENALTY)

    def _result(self, ids: tuple[int, ...], log_probability: float) -> SearchResult:
        penalty = float(length_penalty(len(ids), self.decoding.length_penalty))
        return SearchResult(ids, log_probability, log_probability / penalty)

    def _rescored(
        self, requests: Sequence[Request], found: Mapping[int, Sequence[SearchResult]]
    ) -> dict[int, list[SearchResult]]:
        """The same hypotheses, by index of the request, with the log-probabilities of the model."""
        pairs = [(index, one) for index, some in found.items() for one in some]
        if not pairs:
            return {}
        forced = dict(
            self._force([requests[index].source for index, _ in pairs], [one.ids for _, one in pairs], True, False)
        )
        rescored: dict[int, list[SearchResult]] = {index: [] for index in found}
        for place, (index, one) in enumerate(pairs):
            rescored[index].append(self._result(one.ids, sum(forced[place].log_probabilities or ())))
        return rescored

    def _force(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], scored: bool, attentive: bool
    ) -> Iterator[tuple[int, Forced]]:
        scores = self._token_scores(sources, targets) if scored else None
        lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
        for batch in batched(lengths, self.search.rows, self.decoding.token_budget, self._positions):
            attention = self._attention([sources[n] for n in batch], [targets[n] for n in batch]) if attentive else None
            for row, index in enumerate(batch):
                yield index, Forced(scores[index] if scores else None, attention[row] if attention else None)

    def _token_scores(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[Sequence[float]]:
        results = self.engine.score_batch(
            [self.source.vocabulary.decode(source) for source in sources],
            [self.target.vocabulary.decode(target[:-1] if target[-1:] == (EOS,) else target) for target in targets],
            max_input_length=0,
            max_batch_size=self.decoding.token_budget,
            batch_type="tokens",
        )
        # The end token is always scored, and comes last.
        return [result.log_probs[: len(target)] for result, target in zip(results, targets, strict=True)]

    def _attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[np.ndarray[Any, Any]]:
        """Translates again with the finished translation as prefix, to get its attention [T, S]."""
        results = self.engine.translate_batch(
            [self.source.vocabulary.decode(source) for source in sources],
            [self.target.vocabulary.decode(target) for target in targets],
            beam_size=1,
            max_input_length=0,
            max_decoding_length=max(map(len, targets)),
            return_end_token=True,
            return_attention=True,
        )
        return [
            np.asarray(result.attention[0][: len(target)])[:, : len(source)]
            for result, source, target in zip(results, sources, targets, strict=True)
        ]


def refuse_unsupported(search: Search, folder: Path) -> None:
    """Raises TmtError for a search method, or a setting, that CTranslate2 does not support. folder: of the model."""
    decoding, by_beam = search.decoding, isinstance(search.proposer, Beam)
    refusals = (
        (
            "ctranslate2" not in search.engines,
            f"CTranslate2 does not support decoding.method {decoding.method}",
            "Use --engine tmt, or another method.",
        ),
        (  # it uses attention, which CTranslate2 gets wrong in a beam search of several sentences
            decoding.coverage_penalty > 0,
            "CTranslate2 does not support decoding.coverage_penalty",
            "Set decoding.coverage_penalty to 0, or use --engine tmt.",
        ),
        (  # in CTranslate2 other hypotheses end
            by_beam and decoding.beam > 1 and decoding.min_length_ratio > 0,
            "CTranslate2's beam search does not support decoding.min_length_ratio",
            "Set decoding.min_length_ratio to 0, or use --beam 1 or --engine tmt.",
        ),
        (
            not by_beam and decoding.top_k == 1 and search.rows > 1,
            "CTranslate2 draws only one sample if decoding.top_k is 1",
            "For greedy search use --beam 1 without --sample and --mbr; or use --engine tmt.",
        ),
    )
    for applies, message, remedy in refusals:
        if applies:
            raise TmtError(message, place=folder / CONFIG, remedy=remedy)
