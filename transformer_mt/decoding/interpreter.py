"""Translates lines of text with any search engine: clean, tokenise, search, write as text.

This file knows text, ids and `DecodingConfig`. A subclass decides which engine searches, and where. The caller reads
files, prints and shows progress. Memory does not grow with the number of lines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, repeat

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.schema import Config
from transformer_mt.decoding.request import Request, SearchResult
from transformer_mt.decoding.searches.base import make_search
from transformer_mt.decoding.terms import BoundLine, Term, TermReader
from transformer_mt.errors import TmtError
from transformer_mt.text.cleaning import clean_text
from transformer_mt.text.codec import Codec
from transformer_mt.text.vocabulary import EOS, MARKS, UNK

CHUNK = 2048  # lines that are read, sorted by length and translated together


@dataclass(frozen=True)
class Hypothesis:
    """One translation.

    score:     log-probability with the penalties of the search, in nats; with minimum Bayes risk, the similarity
    alignment: for each token the index of its source token; None unless requested
    """

    text: str
    tokens: tuple[str, ...]
    score: float
    alignment: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Translation:
    """The result for one line.

    n_best: at least one hypothesis, best first, with different texts
    notes:  what a user must know: unknown words, a source that was cut, a translation that was stopped
    is_cut: whether the source was too long, so that its end was not read
    """

    source_tokens: tuple[str, ...]
    n_best: tuple[Hypothesis, ...]
    notes: tuple[str, ...] = ()
    is_cut: bool = False

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
class _Source:
    """A line as tokens and ids, ready for the search. prefix: ids that its translation must begin with."""

    tokens: tuple[str, ...]
    ids: tuple[int, ...]
    prefix: tuple[int, ...]
    notes: tuple[str, ...]
    is_cut: bool
    bound: BoundLine | None = None  # its terms


_MOST_SHOWN, _LONGEST_SHOWN = 5, 40  # unknown words in a note, and characters of a word


def _note_of_unknown(words: Sequence[str]) -> str:
    """The number of unknown words and the first few, cut if long, without characters that control a terminal."""
    first = []
    for word in words[:_MOST_SHOWN]:
        word = word if len(word) <= _LONGEST_SHOWN else f"{word[: _LONGEST_SHOWN - 1]}…"
        first.append("".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in word))
    shown, more = ", ".join(dict.fromkeys(first)), ", ..." if len(words) > _MOST_SHOWN else ""
    return f"{len(words)} unknown word{'' if len(words) == 1 else 's'}: {shown}{more}"


def _without_search(source: _Source) -> Translation:
    """The translation of white space, or of a line of terms alone."""
    text = source.bound.answer or "" if source.bound is not None else ""
    return Translation((), (Hypothesis(text, (), 0.0, ()),))


@dataclass(frozen=True)
class Computing:
    """Where and how an engine computes.

    device:  auto, cpu, cuda or mps
    threads: CPU threads; None: one for each core
    seed:    of random samples
    scored:  False lets greedy search skip the scores, which are then 0; this saves a tenth of its time
    """

    device: str = "auto"
    threads: int | None = None
    seed: int = 1
    scored: bool = True

    def __post_init__(self) -> None:
        """Raises TmtError if `threads` is below 1."""
        if self.threads is not None and self.threads < 1:
            raise TmtError(f"threads must be 1 or more, not {self.threads}", remedy="For example:  --threads 2")


class Interpreter(ABC):
    """Text to text: codecs of both sides and search settings, around an engine that a subclass provides."""

    def __init__(self, config: Config, source: Codec, target: Codec, decoding: DecodingConfig | None = None) -> None:
        """decoding: how to search; None: the `decoding` section of the config."""
        self.config = config
        self.decoding = decoding or config.decoding
        self.search = make_search(self.decoding)
        self.source = source
        self.target = target
        self.max_length = config.data.max_length  # most tokens of a source, end token included

    @abstractmethod
    def _search(self, requests: Sequence[Request]) -> list[list[SearchResult]]:
        """What `decoding` finds for each request, best first; samples in any order."""

    @abstractmethod
    def _align(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[int]]:
        """For each target id, the index of the source token it comes from."""

    def translate(
        self,
        lines: str | Iterable[str],
        prefixes: Iterable[str] | None = None,
        chunk_size: int = CHUNK,
        align: bool = False,
        *,
        terms: Iterable[Sequence[Term]] | None = None,
    ) -> Iterator[Translation]:
        """One translation for each line, in order. A line of white space has an empty translation.

        lines:      an iterable of lines, or a single line as str
        prefixes:   for each line, the text that its translation must begin with
        chunk_size: number of lines that are read before the first translation is returned
        align:      whether hypotheses have an alignment to source tokens
        terms:      for each line, in order, what its translation must contain
        Raises TmtError if a prefix is too long, or if a term is not in its line.
        """
        iterator = iter([lines] if isinstance(lines, str) else lines)
        starts = iter(prefixes) if prefixes is not None else repeat("")
        needed = iter(terms) if terms is not None else repeat(())
        while chunk := list(islice(iterator, chunk_size)):
            given, required = list(islice(starts, len(chunk))), list(islice(needed, len(chunk)))
            sources = [self._read(*one) for one in zip(chunk, given, required, strict=True)]
            answers = iter(self._answer([source for source in sources if source.tokens], align))
            yield from (next(answers) if source.tokens else _without_search(source) for source in sources)

    @cached_property
    def terms(self) -> TermReader:
        """Raises TmtError if the search or the engine does not support terms."""
        if not self.search.constrained_rows:
            raise TmtError("terms need a beam search", remedy="Remove --sample or --mbr, or use --mbr with --beam 5.")
        return TermReader(self.config, self.source, self.target)

    def _read(self, line: str, prefix: str, terms: Sequence[Term] = ()) -> _Source:
        """Clean a line, split it into tokens and look up their ids; note what is lost."""
        bound = self.terms.read(line, terms) if terms else None
        if bound is not None:
            if bound.answer is not None:
                return _Source((), (), (), (), False, bound)
            line = bound.line
        data, most, notes = self.config.data, self.max_length - 1, []
        tokens: list[str] = []
        if line.strip():
            tokens = self.source.segmenter.tokenize(clean_text(line, data.cleaning, data.source))
        if is_cut := len(tokens) > most:
            notes.append(f"cut to {most} of {len(tokens)} tokens (the model's longest sentence)")
            tokens = tokens[:most]
        ids = self.source.vocabulary.encode(tokens)
        unknown = [token for token, index in zip(tokens, ids, strict=True) if index == UNK]
        if unknown:
            detokenize = self.source.segmenter.tokenizer.detokenize  # keeps the case of the word
            notes.append(_note_of_unknown([detokenize([token]) for token in unknown]))
        start = self._prefix_ids(prefix)
        if UNK in start:
            notes.append(f"the prefix has tokens that the model does not know; it writes {MARKS[UNK]} for them")
        return _Source(tuple(tokens), (*ids, EOS), start, tuple(notes), is_cut, bound)

    def _prefix_ids(self, prefix: str) -> tuple[int, ...]:
        if not prefix.strip():
            return ()
        data = self.config.data
        ids = self.target.encode(clean_text(prefix, data.cleaning, data.target))[:-1]
        if len(ids) > self.max_length - 2:
            raise TmtError(
                f"the prefix has {len(ids)} tokens; the model writes at most {self.max_length}",
                remedy="Shorten the prefix.",
            )
        return tuple(ids)

    def _request(self, source: _Source) -> Request:
        if source.bound is None:
            return Request(source.ids, source.prefix)
        return Request(source.ids, source.prefix, source.bound.constraints, self.terms.joining)

    def _answer(self, sources: Sequence[_Source], align: bool) -> list[Translation]:
        """Search, choose among the results, align those that need it, and write them as text."""
        found = self._search([self._request(source) for source in sources])
        chosen = [self.search.choose(candidates, self.target.decode) for candidates in found]
        pairs = [(source, one) for source, best in zip(sources, chosen, strict=True) for one in best]
        replaces = self.decoding.replace_unknown
        needed = [index for index, (_, one) in enumerate(pairs) if one.ids and (align or (replaces and UNK in one.ids))]
        rows = self._align([pairs[index][0].ids for index in needed], [pairs[index][1].ids for index in needed])
        aligned = dict(zip(needed, rows, strict=True))
        detokenize, written = self.source.segmenter.tokenizer.detokenize, []
        lacking: list[list[str]] = []  # for each hypothesis, the terms that could not be placed
        for index, (source, one) in enumerate(pairs):
            alignment = aligned.get(index, [])
            places = [place for token, place in zip(one.ids, alignment, strict=False) if replaces and token == UNK]
            unknown = [detokenize([source.tokens[place]]) for place in places]  # each word as it is in the line
            tokens = tuple(self.target.vocabulary.tokens[token] for token in one.tokens)
            text, missing = self.target.decode(one.ids, unknown), list[str]()
            if source.bound is not None:
                text, missing = self.terms.write(source.bound, one.ids, unknown)
            lacking.append(missing)
            written.append(Hypothesis(text, tokens, one.score, tuple(alignment[: len(tokens)]) if align else None))
        hypotheses, missed = iter(written), iter(lacking)
        answers = []
        for source, best in zip(sources, chosen, strict=True):
            notes = source.notes
            missing, *_ = islice(missed, len(best))
            if missing:
                notes = (*notes, f"without the term{'s' * (len(missing) > 1)} {', '.join(missing)}")
            if best[0].stopped:
                notes = (*notes, f"the translation was stopped after {len(best[0].ids)} tokens")
            answers.append(Translation(source.tokens, tuple(islice(hypotheses, len(best))), notes, source.is_cut))
        return answers
