"""The tokens of terms: which a translation must contain, and those of stand-ins for what no vocabulary can spell."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain, product

import regex

from transformer_mt.config.schema import Config
from transformer_mt.decoding.request import Constraint
from transformer_mt.decoding.terms import JOINING, Term
from transformer_mt.text.casing import capitalised
from transformer_mt.text.cleaning import clean_text
from transformer_mt.text.codec import Codec
from transformer_mt.text.vocabulary import MARKS, UNK

MOST_PIECES = 2  # of a copy that the model itself reads and writes; longer ones get a stand-in
UNKNOWN = "\U00017fff"  # the stand-in if there is no other word: a letter that no vocabulary knows
SPACE = "\u2581"  # SentencePiece and characters mark a space so
_DIGIT, _BYTE = regex.compile(r"\p{N}"), regex.compile(r"<0x(?!3\d)..>")


class TermTokens:
    """Makes constraints of texts, for the vocabularies of one model."""

    def __init__(self, config: Config, source: Codec, target: Codec) -> None:
        self.config, self.source, self.target = config, source, target
        self._tokens = target.vocabulary.tokens
        self._known: dict[tuple[str, bool], tuple[int, ...]] = {}  # what `_avoided` returned

    @cached_property
    def joining(self) -> tuple[int, ...]:
        """Ids that may not directly follow a term: as text they would continue its last word."""
        detokenize, tokens = self.target.segmenter.tokenizer.detokenize, self._tokens
        texts = [(index, detokenize(["a", token])) for index, token in enumerate(tokens) if index >= len(MARKS)]
        return tuple(index for index, text in texts if JOINING.match(text[1:2]))

    @cached_property
    def digits(self) -> tuple[int, ...]:
        """Ids of tokens with a digit. A model that reads a number as a stand-in likes to write others beside it."""
        tokens = enumerate(self._tokens[len(MARKS) :], start=len(MARKS))
        return tuple(index for index, token in tokens if _DIGIT.search(token) and not _BYTE.fullmatch(token))

    @cached_property
    def _stand_ins(self) -> list[tuple[str, Constraint]]:
        """Words that both vocabularies know: numbers, which languages share, then capitalised words, then letters."""
        numbers = map(str, (7, 9, 8, 6, 5, 4, 3, *range(12, 100)))
        names = sorted({word for token in self._tokens[len(MARKS) :] if (word := token.lstrip(SPACE)).isascii()})
        names = [word for word in names if word.istitle() and len(word) > 3]
        letters = ["".join(pair) for pair in product("qxzjkvwy", repeat=2)]
        found = []
        for word in chain(numbers, names, letters):
            constraint = self._constraint(word)
            known = UNK not in self.source.encode(word)
            if known and constraint is not None and len(constraint.patterns[0]) <= MOST_PIECES + constraint.lead:
                found.append((word, constraint._replace(guarded=True)))
        return found

    def stand_in(self, others: Sequence[str], used: set[int]) -> tuple[str, Constraint]:
        """A stand-in that is not in any other text of the line. used: ids of other constraints."""
        texts = " ".join(others).casefold()
        tokens = {token for text in others for token in self.target.encode(text)} | used
        for word, constraint in self._stand_ins:
            own = {token for token in constraint.patterns[0] if self._tokens[token] != SPACE}
            if word.casefold() not in texts and not own & tokens:
                return word, constraint._replace(avoided=self._avoided(word, constraint, whole=False))
        ids = self.target.vocabulary.encode(self.target.segmenter.tokenize(f"a {UNKNOWN}"))
        spaced = len(ids) > 1 and ids[-1] == UNK and self._tokens[ids[-2]] == SPACE
        return UNKNOWN, Constraint(((ids[-2], UNK) if spaced else (UNK,),), lead=int(spaced))

    def own(self, term: Term) -> Constraint | None:
        """The constraint by the term's own tokens; None if the vocabularies do not know it well."""
        forms = [term.target]
        if not term.is_copy and term.target[:1].islower():
            forms.append(capitalised(term.target, self.target.segmenter.language))  # as at the start of a sentence
        constraint = self._constraint(*forms)
        if constraint is None or not term.is_copy:
            return constraint
        if len(constraint.patterns[0]) - constraint.lead > MOST_PIECES or UNK in self.source.encode(term.source):
            return None
        return constraint._replace(avoided=self._avoided(term.target, constraint, whole=True))

    def _avoided(self, text: str, constraint: Constraint, whole: bool) -> tuple[int, ...]:
        """Ids of tokens that would write a text once more, such as `7.` for 7, and that its constraint does not need.

        whole: only tokens that have it as a word
        """
        if (text, whole) not in self._known:
            edge = r"(?<![\p{L}\p{N}])", r"(?![\p{L}\p{N}])"
            word = regex.compile(f"{edge[0]}{regex.escape(text)}{edge[1]}" if whole else regex.escape(text))
            own = {token for ids in constraint.patterns for token in ids}
            tokens = enumerate(self._tokens[len(MARKS) :], start=len(MARKS))
            self._known[text, whole] = tuple(
                index for index, token in tokens if text in token and index not in own and word.search(token)
            )
        return self._known[text, whole]

    def _constraint(self, *forms: str) -> Constraint | None:
        """The tokens of any of these texts inside a sentence; None if they need `<unk>` or have none."""
        tokenize, data = self.target.segmenter.tokenize, self.config.data
        patterns, lead, before = [], 0, len(tokenize("a"))
        for form in forms:
            text = clean_text(form, data.cleaning, data.one_direction.target)
            inside, alone = tokenize(f"a {text}")[before:], tokenize(text)
            if len(inside) > len(alone) and inside[len(inside) - len(alone) :] == alone:
                lead = len(inside) - len(alone)
            elif len(inside) > 1 and inside[0] == SPACE:
                lead = 1
            patterns.append(tuple(self.target.vocabulary.encode(inside)))
        if UNK in patterns[0] or len(patterns[0]) <= lead:
            return None
        return Constraint(tuple(dict.fromkeys(ids for ids in patterns if UNK not in ids)), lead=lead)
