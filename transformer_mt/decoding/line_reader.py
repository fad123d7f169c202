"""Lines of text on their way in: sentences, clean text, tokens and ids, for one model and one direction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from typing_extensions import Self

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.direction import Direction
from transformer_mt.config.schema import Config
from transformer_mt.decoding.choosing import direction_for
from transformer_mt.decoding.copying import uncut
from transformer_mt.decoding.given import checked_text
from transformer_mt.decoding.glossary import Glossary
from transformer_mt.decoding.request import Request
from transformer_mt.decoding.searches.base import make_search
from transformer_mt.decoding.term_reader import Piece, TermReader
from transformer_mt.decoding.term_tokens import UNKNOWN
from transformer_mt.decoding.terms import LineTerms, Span, spans_of_terms
from transformer_mt.decoding.translation import Source, Target, note_of_unknown
from transformer_mt.errors import TmtError, number_of
from transformer_mt.text.cleaning import clean_text
from transformer_mt.text.codec import Codec
from transformer_mt.text.sentences import sentences
from transformer_mt.text.vocabulary import EOS, MARKS, UNK

MANY_TERMS = 3  # in a sentence; from here on, a note says that their order may be wrong


class LineReader:
    """Reads lines with the codecs of a model.

    constrains:   whether the engine supports terms
    folders:      of the models
    fingerprint:  sha256 of the weights of the model, also of one that was exported; None: unknown, or an ensemble
    quantization: of an export; None: unknown, or none
    """

    folders: Sequence[Path]
    fingerprint: str | None = None
    quantization: str | None = None
    constrains: ClassVar[bool] = False

    def __init__(self, config: Config, source: Codec, target: Codec, decoding: DecodingConfig | None = None) -> None:
        """decoding: how to search; None: the `decoding` section of the config."""
        if missing := [tag for tag in config.data.tags if tag not in source.tags]:
            remedy = "Copy the whole model folder again, or export it again."
            raise TmtError(f"the source vocabulary lacks the tag {missing[0]}", place="tags.txt", remedy=remedy)
        only, *others = config.data.all_directions
        self.config = config if others else config.towards(only)
        self.decoding = decoding or config.decoding
        self.search = make_search(self.decoding)
        self.source = source
        self.target = target
        self.max_length = config.data.max_length  # most tokens of a source, end token included

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.config.data.direction}, {', '.join(map(str, self.folders))})"

    def towards(self, to: str | None = None, source: str | None = None, zero_shot: bool = False) -> Self:
        """The same loaded model for one of its directions.

        to, source: ISO codes; what is None must follow from the directions of the model
        zero_shot:  whether it may be a direction that the model was not trained for
        Raises TmtError if it is not clear which direction is meant, or if the model does not have it.
        """
        data = self.config.data
        if to is None and source is not None and data.directions is not None:
            to = data.target  # a chosen one stays
        if data.source is not None and (to, source) == (data.target, data.source):
            return self
        return self.turned(direction_for(data, to, source, zero_shot))

    def _chosen(self, to: str | None, source: str | None, zero_shot: bool) -> Self:
        """`towards` for one call: this model itself if the call names no language and its direction is known."""
        is_known = self.config.data.source is not None
        return self if is_known and (to, source) == (None, None) else self.towards(to, source, zero_shot)

    def turned(self, direction: Direction) -> Self:
        """The same loaded model for a direction, which is not checked."""
        other = copy(self)
        other.config = self.config.towards(direction)
        vars(other).pop("terms", None)  # they are read as text of the languages
        return other

    def with_search(self, decoding: DecodingConfig) -> Self:
        """The same loaded model with other search settings. Raises TmtError if the engine does not support them."""
        other = copy(self)
        other.decoding, other.search = decoding, make_search(decoding)
        vars(other).pop("terms", None)  # whether there are terms depends on the search
        return other

    @property
    def _tags(self) -> tuple[int, ...]:
        """The ids before each source."""
        _ = self.direction  # raises if it is not clear
        return tuple(self.source.vocabulary.tag_ids(self.config.data.request_tags))

    @property
    def direction(self) -> Direction:
        """The only direction, or the chosen one. Raises TmtError if there are several and none is chosen."""
        data = self.config.data
        return data.one_direction if data.source is not None else direction_for(data, None, None)

    def sentences(self, line: str, prefix: str = "", terms: LineTerms = ()) -> list[str]:
        """The parts of a line that are translated one by one. Joined, they are the line.

        prefix: the beginning of the translation; if it has several sentences, it belongs to the same number of the line
        terms:  of the line; none is cut
        """
        direction, spans = self.direction, spans_of_terms(checked_text(line), terms)
        found = sentences(line, direction.source, [*((span.start, span.end) for span in spans), *uncut(line)])
        n_first = len(sentences(prefix.strip(), direction.target))
        return ["".join(found[:n_first]), *found[n_first:]]

    def _parts(self, line: str, prefix: str, terms: LineTerms) -> Iterator[Piece]:
        """The sentences of a line, each with its prefix and its terms."""
        spans, start = spans_of_terms(line, terms), 0
        for text in self.sentences(line, prefix, terms):
            end = start + len(text)
            own = [Span(place - start, term) for place, term in spans if start <= place < end]
            yield Piece(text, "" if start else prefix, own)
            start = end

    def glossary(self, terms: Glossary | Mapping[str, str] | str | Path) -> Glossary:
        """A glossary that fits this model: if its tokenizer ignores the case of the source, so does the glossary.

        terms: a glossary, entries, or the path of a file
        Raises TmtError if it is malformed, or if the search or the engine does not support terms.
        """
        _ = self.terms  # raises if there can be none
        return Glossary.of(terms, self.config.source_tokenizer.case == "lower")

    @property
    def binds(self) -> bool:
        """Whether the search and the engine support terms."""
        return self.constrains and bool(self.search.constrained_rows)

    @cached_property
    def terms(self) -> TermReader:
        """Raises TmtError if the search or the engine does not support terms."""
        if not self.constrains:
            raise TmtError(
                "this engine does not support terms", remedy="Use the engine tmt with the folder of the run or model."
            )
        if not self.search.constrained_rows:
            raise TmtError("terms need a beam search", remedy="Use a beam (--beam 5, in Python beam=5), no samples.")
        return TermReader(self.config, self.source, self.target, self.max_length)

    def _read(self, line: str, prefix: str, terms: LineTerms = ()) -> Source:
        """Clean a line, split it into tokens and look up their ids; note what is lost."""
        spans = spans_of_terms(line, terms)
        bound = self.terms.read(line, spans, prefix) if spans else None
        if bound is not None:
            if bound.answer is not None:
                return Source(line, (), (), (), (), False, bound)
            line, prefix = bound.line, bound.prefix
        data, tags, notes = self.config.data, self._tags, []
        most = self.max_length - 1 - len(tags)
        tokens: list[str] = []
        if line.strip():
            tokens = self.source.segmenter.tokenize(clean_text(line, data.cleaning, data.one_direction.source))
            if not tokens:
                notes.append("the model reads nothing of this line")
        if is_cut := len(tokens) > most:
            notes.append(f"cut to {most} of {len(tokens)} tokens (the model's longest sentence)")
            tokens = tokens[:most]
        ids = self.source.vocabulary.encode(tokens)
        unknown = [token for token, index in zip(tokens, ids, strict=True) if index == UNK and UNKNOWN not in token]
        if unknown:
            detokenize = self.source.segmenter.tokenizer.detokenize  # keeps the case of the word
            words = [detokenize([token]) for token in unknown]
            notes.append(note_of_unknown(words if bound is None else [bound.restored(word) for word in words]))
        if sum(not span.term.is_copy for span in spans) >= MANY_TERMS:
            notes.append(f"{MANY_TERMS} terms or more in a sentence: check that they are in the right places")
        start = self._prefix_ids(prefix)
        if UNK in start and UNKNOWN not in prefix:
            notes.append(f"the prefix has tokens that the model does not know; it writes {MARKS[UNK]} for them")
        return Source(line, tuple(tokens), (*tags, *ids, EOS), start, tuple(notes), is_cut, bound)

    def _prefix_ids(self, prefix: str) -> tuple[int, ...]:
        if not prefix.strip():
            return ()
        data = self.config.data
        ids = self.target.encode(clean_text(prefix, data.cleaning, data.one_direction.target))[:-1]
        if len(ids) > self.max_length - 2:
            raise TmtError(
                f"the prefix has {len(ids)} tokens; the model writes at most {self.max_length}",
                remedy="Shorten the prefix.",
            )
        return tuple(ids)

    def _read_target(self, line: str) -> Target:
        """Clean a given translation, split it into tokens and look up their ids; note what is lost."""
        data, most, notes = self.config.data, self.max_length - 1, []
        tokens = self.target.segmenter.tokenize(clean_text(line, data.cleaning, data.one_direction.target))
        if not tokens:
            notes.append("the target is empty")
        if is_cut := len(tokens) > most:
            notes.append(f"the target was cut to {most} of {len(tokens)} tokens (the model's longest sentence)")
            tokens = tokens[:most]
        ids = self.target.vocabulary.encode(tokens)
        if unknown := ids.count(UNK):
            notes.append(f"the target has {number_of(unknown, 'unknown token')}")
        return Target(line, tuple(tokens), (*ids, EOS), tuple(notes), is_cut)

    def _request(self, source: Source) -> Request:
        bound = (source.bound.constraints, self.terms.tokens.joining) if source.bound is not None else ((), ())
        return Request(source.ids, source.prefix, *bound, every=source.bound is not None)
