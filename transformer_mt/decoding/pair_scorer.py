"""The score of a given translation: the log-probability that a model gives it, and which words belong together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import overload

from transformer_mt.decoding.forced import Forced, Link, PairScore, ReferenceLoss, aligned_words
from transformer_mt.decoding.given import checked
from transformer_mt.decoding.line_reader import LineReader
from transformer_mt.decoding.translation import Source, Target
from transformer_mt.errors import TmtError
from transformer_mt.text.vocabulary import EOS
from transformer_mt.text.words import words_of_tokens

CHUNK = 2048  # lines that are read, sorted by length and searched or scored together, on a CPU


class PairScorer(LineReader, ABC):
    """Scores of pairs, around an engine that a subclass provides."""

    @abstractmethod
    def _force(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], scored: bool, attentive: bool
    ) -> Iterator[tuple[int, Forced]]:
        """What the model says of each target, with its index, in any order. scored, attentive: what is requested."""

    def _forced(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], scored: bool, attentive: bool
    ) -> Iterator[tuple[int, Forced]]:
        """As `_force`, but without the attention to tags, which are not in the line."""
        n_tags = len(self._tags)
        for index, one in self._force(sources, targets, scored, attentive):
            weights_TS = one.attention_TS
            yield index, one if weights_TS is None else one._replace(attention_TS=weights_TS[:, n_tags:])

    def _word_alignment(
        self, forced: Forced, source: Source, tokens: Sequence[str], text: str, clean: bool = False
    ) -> tuple[Link, ...]:
        """tokens: of the text. clean: whether the text is cleaned before it is split into tokens."""
        assert forced.attention_TS is not None
        rules, target = self.config.data.cleaning, self.target.segmenter
        of_source = words_of_tokens(source.tokens, source.line, self.source.segmenter, rules)
        return aligned_words(
            forced.attention_TS, of_source, words_of_tokens(tokens, text, target, rules if clean else None)
        )

    @overload
    def score(  # type: ignore[overload-overlap]
        self,
        sources: str,
        targets: str,
        align: bool = False,
        gain: bool = False,
        *,
        to: str | None = None,
        source: str | None = None,
        zero_shot: bool = False,
    ) -> PairScore: ...

    @overload
    def score(
        self,
        sources: Iterable[str],
        targets: Iterable[str],
        align: bool = False,
        gain: bool = False,
        *,
        to: str | None = None,
        source: str | None = None,
        zero_shot: bool = False,
    ) -> Iterator[PairScore]: ...

    def score(
        self,
        sources: str | Iterable[str],
        targets: str | Iterable[str],
        align: bool = False,
        gain: bool = False,
        *,
        to: str | None = None,
        source: str | None = None,
        zero_shot: bool = False,
    ) -> PairScore | Iterator[PairScore]:
        """The log-probability of a target for its source, or of each pair, in order.

        Sources and targets are cut to the longest length of the model, with a note.

        sources, targets: two lines as str, or two iterables of lines
        align:            whether the results have alignments of words
        gain:             whether they say what the source adds; this takes a second pass
        to, source, zero_shot: the direction, for a model of several; see `towards`
        Raises TmtError if they are not text, or if one has more lines than the other.
        """
        if isinstance(sources, str) != isinstance(targets, str):
            raise TmtError("one side is a line, the other is not", remedy="Give two lines, or two lists of lines.")
        scores = self._chosen(to, source, zero_shot)._score(checked(sources), checked(targets), align, gain)
        return next(scores) if isinstance(sources, str) else scores

    def _score(self, sources: Iterator[str], targets: Iterator[str], align: bool, gain: bool) -> Iterator[PairScore]:
        pairs = enumerate(zip_longest(sources, targets), start=1)
        while chunk := list(islice(pairs, CHUNK)):
            for number, (source, target) in chunk:
                if source is None or target is None:
                    fewer, more = ("source", "target") if source is None else ("target", "source")
                    message = f"the {fewer} ends after line {number - 1:,}, the {more} does not"
                    raise TmtError(message, remedy="Line n of one must belong to line n of the other.")
            read = [(self._read(source, ""), self._read_target(target)) for _, (source, target) in chunk]
            targets_ids, empty = [target.ids for _, target in read], [(*self._tags, EOS)] * len(read)
            forced = dict(self._forced([source.ids for source, _ in read], targets_ids, scored=True, attentive=align))
            alone = dict(self._force(empty, targets_ids, scored=True, attentive=False)) if gain else {}
            for index, (line, target_line) in enumerate(read):
                yield self._pair_score(line, target_line, forced[index], alone.get(index), align)

    def _pair_score(
        self, source: Source, target: Target, forced: Forced, alone: Forced | None, align: bool
    ) -> PairScore:
        """alone: what the model says of the target after an empty source."""
        assert forced.log_probabilities is not None
        notes = list(source.notes)
        if not source.tokens:
            notes.append("the source is empty")
        tokens = tuple(self.target.vocabulary.decode(target.ids))
        words = self._word_alignment(forced, source, target.tokens, target.line, clean=True) if align else None
        scores, prior = tuple(forced.log_probabilities), None
        if alone is not None and alone.log_probabilities is not None:
            prior = sum(alone.log_probabilities)
        return PairScore(source.tokens, tokens, scores, words, prior, (*notes, *target.notes), target.is_cut)

    def reference_loss(self, sources: Sequence[str], references: Sequence[str]) -> ReferenceLoss:
        """The loss of the references, one for each source. Sources and references are cut to the longest length."""
        return ReferenceLoss.of(self.score(sources, references))
