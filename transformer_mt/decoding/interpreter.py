"""Translates lines of text with any search engine: clean, tokenise, search, write as text.

This file knows text, ids and `DecodingConfig`. A subclass decides which engine searches, and where. The caller reads
files, prints and shows progress. Memory does not grow with the number of lines.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from itertools import chain, islice, repeat, tee
from typing import NamedTuple, cast, overload

from transformer_mt.decoding.computing import Computing as Computing
from transformer_mt.decoding.copying import (
    LACKS,
    faults,
    is_only_copies,
    notes_of_copies,
    notes_of_markup,
    unbroken,
    with_copies,
)
from transformer_mt.decoding.forced import Forced, aligned_tokens, links_across
from transformer_mt.decoding.given import checked, for_each_line, prefix_for_each_line
from transformer_mt.decoding.glossary import Glossary
from transformer_mt.decoding.joining import join
from transformer_mt.decoding.pair_scorer import CHUNK, PairScorer
from transformer_mt.decoding.replacing import is_spaced, loses_words, with_terms, words_linked
from transformer_mt.decoding.request import Request, SearchResult
from transformer_mt.decoding.term_reader import BoundLine, Piece
from transformer_mt.decoding.terms import LineTerms, Span, Term, between, spans_of_terms
from transformer_mt.decoding.translation import Hypothesis as Hypothesis
from transformer_mt.decoding.translation import Source, shown, without_search
from transformer_mt.decoding.translation import Translation as Translation
from transformer_mt.errors import checked_number
from transformer_mt.text.cleaning import with_characters
from transformer_mt.text.vocabulary import UNK
from transformer_mt.text.words import words_of_tokens

GPU_CHUNK = 32_768  # lines that are translated together on a GPU, for up to 9 hypotheses of a line
ALIGNED_CHUNK = 8192  # at most, with alignments: their attention is in memory
WITHOUT = "without the term"
Terms = Iterable[LineTerms] | Sequence[Term] | Glossary | Mapping[str, str] | None


class _Free(NamedTuple):
    """A line as the model reads it without terms, and the copies that its translation must have."""

    source: Source
    spans: Sequence[Span]

    @property
    def copies(self) -> list[str]:
        return [span.term.target for span in self.spans]


class Interpreter(PairScorer):
    """Text to text: codecs of both sides and search settings, around an engine that a subclass provides."""

    @property
    def chunk(self) -> int:
        """Number of lines that are best translated together."""
        return CHUNK

    @abstractmethod
    def _search(self, requests: Sequence[Request]) -> list[list[SearchResult]]:
        """What `decoding` finds for each request, best first; samples in any order."""

    @overload
    def translate(  # type: ignore[overload-overlap]
        self,
        lines: str,
        prefixes: str | Iterable[str] | None = None,
        chunk_size: int | None = None,
        align: bool = False,
        *,
        split: bool = True,
        terms: Terms = None,
        to: str | None = None,
        source: str | None = None,
        zero_shot: bool = False,
    ) -> Translation: ...

    @overload
    def translate(
        self,
        lines: Iterable[str],
        prefixes: str | Iterable[str] | None = None,
        chunk_size: int | None = None,
        align: bool = False,
        *,
        split: bool = True,
        terms: Terms = None,
        to: str | None = None,
        source: str | None = None,
        zero_shot: bool = False,
    ) -> Iterator[Translation]: ...

    def translate(
        self,
        lines: str | Iterable[str],
        prefixes: str | Iterable[str] | None = None,
        chunk_size: int | None = None,
        align: bool = False,
        *,
        split: bool = True,
        terms: Terms = None,
        to: str | None = None,
        source: str | None = None,
        zero_shot: bool = False,
    ) -> Translation | Iterator[Translation]:
        """The translation of a line, or of each line, in order. A line of white space has an empty translation.

        A line of several sentences is translated sentence by sentence; its result joins theirs (see `joining`).

        lines:      one line as str, or an iterable of lines; of an iterable, the result is an iterator
        prefixes:   the text that every translation must begin with, or one for each line
        chunk_size: number of lines that are read before the first translation is returned; None: 2,048, and up to
                    32,768 on a GPU
        align:      whether hypotheses have scores of their tokens, and alignments
        split:      whether a line may hold several sentences
        terms:      what translations must contain: a glossary or its entries, or the terms of each line, in their order
        to, source, zero_shot: the direction, for a model of several; see `towards`
        Raises TmtError if `lines` is not text, if `chunk_size` is less than 1, if a prefix is too long, if a term is
        not in its line, or if there are fewer prefixes or lists of terms than lines; of sequences, also if there are
        more.
        """
        if (chosen := self._chosen(to, source, zero_shot)) is not self:
            return chosen.translate(lines, prefixes, chunk_size, align, split=split, terms=terms)
        if chunk_size is None:
            chunk_size = min(self.chunk, ALIGNED_CHUNK) if align or terms is not None else self.chunk
        chunk_size = checked_number(chunk_size, "chunk_size")
        one_line = isinstance(lines, str)
        n_lines = 1 if one_line else len(lines) if isinstance(lines, Sized) else None
        given, starts = checked(lines), prefix_for_each_line(prefixes, n_lines)
        needed: Iterator[LineTerms] = repeat(())
        if isinstance(terms, (Glossary, Mapping)):
            given, again = tee(given)
            needed = map(self.glossary(terms).spans, again)
        elif terms is not None:
            of_one = one_line and isinstance(terms, Sequence) and all(isinstance(term, Term) for term in terms)
            of_each = cast("Iterable[LineTerms]", [terms] if of_one else terms)
            needed = for_each_line(of_each, "terms", n_lines)
        answers = self._translate(zip(given, starts, needed, strict=False), chunk_size, align, split)
        return next(answers) if one_line else answers

    def _translate(
        self, given: Iterator[tuple[str, str, LineTerms]], chunk_size: int, align: bool, split: bool
    ) -> Iterator[Translation]:
        """The work of `translate`. All sentences of a chunk of lines are searched together."""
        while chunk := list(islice(given, chunk_size)):
            if self.config.data.cleaning.entities:
                chunk = [one if one[2] else (self._with_characters(one[0]), *one[1:]) for one in chunk]
            parted = [list(self._parts(*one)) if split else [Piece(*one)] for one in chunk]
            for parts, translated in zip(parted, self._translated(parted, align), strict=True):
                yield self._join(parts, translated)

    def _translated(self, parted: Sequence[Sequence[Piece]], align: bool) -> Iterator[list[Translation]]:
        """The translations of the pieces of each line."""
        read = [[(piece, self._read_piece(piece)) for piece in some] for some in parted]
        searched = [one for some in read for one in some if one[1].tokens]
        found = self._free_or_bound(searched, align)
        answers = iter(self._with_own_words([piece for piece, _ in searched], found, align))
        for some in read:
            yield [next(answers) if source.tokens else without_search(source) for _, source in some]

    def _with_characters(self, line: str) -> str:
        """The line without entities, if the model knows none, and if the words that users count stay the same."""
        shown = with_characters(line, self.config.data.cleaning)
        return shown if len(shown.split()) == len(line.split()) else line

    def _read_piece(self, piece: Piece) -> Source:
        if not piece.terms and not piece.prefix.strip() and is_only_copies(piece.line):
            bound = BoundLine(((piece.line, piece.line),), answer=piece.line.strip())
            return Source(piece.line, (), (), (), (), False, bound)
        return self._read(*piece)

    def _free_or_bound(self, searched: Sequence[tuple[Piece, Source]], align: bool) -> list[Translation]:
        """As `_answer`; but copies are only required where the model, which is first left free, has no place for them.

        They are the terms of a line if all of these are copies, and without terms its addresses and placeholders.
        """
        free = {n: one for n, pair in enumerate(searched) if (one := self._free(*pair)) is not None}
        found = self._answer([free[n].source if n in free else source for n, (_, source) in enumerate(searched)], align)
        again = list[int]()
        for n, one in free.items():
            right = with_copies(found[n], one.copies, searched[n][0].prefix)
            if right is not None:
                found[n] = self._without_unknown_copies(right, one, searched[n][0].prefix)
            elif self.binds:
                again.append(n)
        bound = [self._read(*searched[n][0][:2], free[n].spans) for n in again]
        for n, translation in zip(again, self._answer(bound, align) if bound else (), strict=True):
            copies = free[n].copies
            if searched[n][0].terms or faults(translation, copies) < faults(found[n], copies):
                found[n] = translation
        return [_with_notes(piece, one) for (piece, _), one in zip(searched, found, strict=True)]

    def _free(self, piece: Piece, source: Source) -> _Free | None:
        """A line with copies alone as the model reads it when it is left free; None for others."""
        spans = spans_of_terms(piece.line, piece.terms)
        if not spans:
            return _Free(source, copies) if (copies := unbroken(piece.line)) else None
        if piece.prefix.strip() or not all(span.term.is_copy for span in spans):
            return None
        free = self._read(piece.line, "")
        return None if UNK in free.ids or free.is_cut else _Free(free, spans)

    def _without_unknown_copies(self, translation: Translation, free: _Free, prefix: str) -> Translation:
        """A translation that has its copies, without a note of their unknown tokens."""
        source, spans = free
        if UNK not in source.ids or source.is_cut:
            return translation
        beside = self._read(" ".join(between(source.line, spans)), prefix).notes
        return replace(translation, notes=(*beside, *translation.notes[len(source.notes) :]))

    def _with_own_words(self, pieces: Sequence[Piece], found: Sequence[Translation], align: bool) -> list[Translation]:
        """The translations; where one has lost words or a term, the model's own one with the terms in their places."""
        spans = [
            spans_of_terms(piece.line, piece.terms)
            if piece.terms and not piece.prefix.strip() and is_spaced(one.text)
            else []
            for piece, one in zip(pieces, found, strict=True)
        ]
        places = [n for n, some in enumerate(spans) if not all(span.term.is_copy for span in some)]
        if not places:
            return list(found)
        copies = [[span for span in spans[n] if span.term.is_copy] for n in places]
        own = self._answer([self._read(pieces[n].line, "", some) for n, some in zip(places, copies, strict=True)], True)
        better = list(found)
        for n, translation, others in zip(places, own, copies, strict=True):
            terms = [span for span in spans[n] if not span.term.is_copy]
            lacks = any(note.startswith(WITHOUT) for note in found[n].notes)
            if not lacks and not loses_words(found[n].text, translation.text, [span.term for span in terms]):
                continue
            hypotheses = [] if others else self._replaced(pieces[n].line, terms, translation)
            if hypotheses:
                n_best = tuple({one.text: one for one in hypotheses}.values())[: len(found[n].n_best)]
                if not align:
                    n_best = tuple(Hypothesis(one.text, one.tokens, one.score) for one in n_best)
                better[n] = replace(translation, n_best=n_best)
            elif not lacks:
                better[n] = replace(found[n], notes=(*found[n].notes, "words beside the terms may be missing"))
        return better

    def _replaced(self, line: str, terms: Sequence[Span], own: Translation) -> list[Hypothesis]:
        """The hypotheses of a translation without terms and copies, with the terms where they have a clear place."""
        of_source = words_of_tokens(own.source_tokens, line, self.source.segmenter, self.config.data.cleaning)
        linked = ((one, words_linked(one, of_source, self.target.segmenter)) for one in own.n_best)
        found = (with_terms(one, links, line, terms, self.target.segmenter.casing) for one, links in linked)
        return [one for one in found if one is not None]

    def _join(self, parts: Sequence[Piece], translated: Sequence[Translation]) -> Translation:
        texts = [part.line for part in parts]
        return join(translated, texts, self.config.data.one_direction.target, self.decoding.n_best, self.search.total)

    def _answer(self, sources: Sequence[Source], align: bool) -> list[Translation]:
        """Search, choose among the results, align those that need it, and write them as text."""
        found = self._search([self._request(source) for source in sources])
        kept = [self._correct(source, candidates) for source, candidates in zip(sources, found, strict=True)]
        again = self._in_pieces([source for source, some in zip(sources, kept, strict=True) if not some], align)
        chosen = [
            list(self.search.choose(some, self._writer(source))) if some else []
            for source, some in zip(sources, kept, strict=True)
        ]
        pairs = [(source, one) for source, best in zip(sources, chosen, strict=True) for one in best]
        replaces = self.decoding.replace_unknown
        needed = [index for index, (_, one) in enumerate(pairs) if one.ids and (align or (replaces and UNK in one.ids))]
        sides = [pairs[index][0].ids for index in needed], [pairs[index][1].ids for index in needed]
        forced = {needed[place]: one for place, one in self._forced(*sides, scored=align, attentive=True)}
        written = (self._write(*pair, forced.get(index), align) for index, pair in enumerate(pairs))
        answers = []
        for source, best in zip(sources, chosen, strict=True):
            if not best:
                answers.append(next(again))
                continue
            notes, (hypotheses, (missing, *_)) = source.notes, zip(*islice(written, len(best)), strict=True)
            if missing:
                notes = (*notes, f"{WITHOUT}{'s' * (len(missing) > 1)} {', '.join(missing)}")
            if not hypotheses[0].text:
                notes = (*notes, "the translation is empty")
            if best[0].stopped:
                notes = (*notes, f"the translation was stopped after {len(best[0].ids)} tokens")
            answers.append(Translation(source.tokens, hypotheses, notes, source.is_cut))
        return answers

    def _writer(self, source: Source) -> Callable[[Sequence[int]], str]:
        """Writes the ids of a translation of this sentence as the text that results are compared by."""
        bound = source.bound
        return self.target.decode if bound is None else lambda ids: self.terms.write(bound, ids).text

    def _correct(self, source: Source, candidates: Sequence[SearchResult]) -> Sequence[SearchResult]:
        """The candidates with all terms, or else those with all copies. Empty: there is none, but pieces help."""
        if source.bound is None:
            return candidates
        if source.bound.is_ambiguous:
            return []
        written = [self.terms.write(source.bound, one.ids) for one in candidates]
        pairs = list(zip(candidates, written, strict=True))
        whole = [one for one, text in pairs if text.correct and not text.missing]
        usable = whole or [one for one, text in pairs if text.correct]
        return usable if usable or source.bound.pieces else candidates

    def _in_pieces(self, sources: Sequence[Source], align: bool) -> Iterator[Translation]:
        """The translations of lines without stand-ins: piece by piece around the texts that would have them."""
        bound = [source.bound for source in sources if source.bound is not None]
        for one, translated in zip(bound, self._translated([one.pieces for one in bound], align), strict=True):
            of_pieces = chain.from_iterable(part.notes for part in translated)
            notes = (*of_pieces, f"translated in pieces around {shown(one.replaced)}: the model did not place it well")
            yield replace(self._join(one.pieces, translated), notes=tuple(dict.fromkeys(notes)))

    def _write(
        self, source: Source, found: SearchResult, forced: Forced | None, align: bool
    ) -> tuple[Hypothesis, Sequence[str]]:
        """A search result as text, and the terms that it lacks. forced: None if nothing needs it."""
        tokens = tuple(self.target.vocabulary.tokens[token] for token in found.tokens)
        detokenize, alignment = self.source.segmenter.tokenizer.detokenize, list[int]()
        if forced is not None:
            assert forced.attention_TS is not None
            alignment = aligned_tokens(forced.attention_TS)
        unknown = []  # each word as it is in the line
        if self.decoding.replace_unknown and alignment:
            places = [place for token, place in zip(found.ids, alignment, strict=True) if token == UNK]
            unknown = [detokenize([source.tokens[place]]) for place in places]
        text, missing = self.target.decode(found.ids, unknown), tuple[str, ...]()
        result = Hypothesis(text, tokens, found.score, *([()] * 3 if align else []))
        if forced is not None and forced.log_probabilities is not None:
            links = self._word_alignment(forced, source, tokens, self.target.decode(found.ids))
            scores = tuple(forced.log_probabilities)
            result = Hypothesis(text, tokens, found.score, tuple(alignment[: len(tokens)]), scores, links)
        if source.bound is not None:
            written = self.terms.write(source.bound, found.ids, unknown)
            words, missing = result.word_alignment, written.missing
            words = words and links_across(words, source.bound.parts, written.parts)  # as the user sees them
            result = replace(result, text=written.text, word_alignment=words)
        return result, missing


def _with_notes(piece: Piece, translation: Translation) -> Translation:
    """A translation with notes of the copies and the markup that it lacks, or has without need."""
    own, of_copies = translation.notes, list[str]()
    if all(span.term.is_copy for span in spans_of_terms(piece.line, piece.terms)):
        of_copies = notes_of_copies(piece.line, translation.text)
    if of_copies:
        twice = LACKS if piece.terms else WITHOUT  # a line with terms may lack other copies too
        own = tuple(note for note in (*own, *of_copies) if not note.startswith(twice))
    notes = (*own, *notes_of_markup(piece.line, translation.text))
    return translation if notes == translation.notes else replace(translation, notes=notes)
