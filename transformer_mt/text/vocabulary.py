"""Tokens and their ids. The only module that knows torchtext, whose Vocab (0.6.0) counts and ranks words.

Four marks stand first in every vocabulary, at the same ids: padding, unknown, sentence start, sentence end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

PAD, UNK, BOS, EOS = 0, 1, 2, 3
MARKS = ("<pad>", "<unk>", "<s>", "</s>")


class Vocabulary:
    """A list of tokens; a token's id is its place in it. Tokens that are not listed have the id UNK."""

    def __init__(self, tokens: Sequence[str]) -> None:
        """Raises ValueError unless the four marks come first and all tokens differ."""
        if tuple(tokens[: len(MARKS)]) != MARKS:
            raise ValueError(f"a vocabulary begins with {', '.join(MARKS)}")
        self.tokens = list(tokens)
        # Marks are missing here: a sentence that spells out "</s>" must not end early.
        self._ids = {token: index for index, token in enumerate(self.tokens) if index >= len(MARKS)}
        if len({*MARKS, *self._ids}) != len(self.tokens):
            twice = next(token for token, count in Counter(self.tokens).items() if count > 1)
            raise ValueError(f"token '{twice}' stands twice")

    @classmethod
    def count(cls, counts: Counter[str], min_frequency: int = 1, max_size: int | None = None) -> Vocabulary:
        """The words of a corpus by frequency, equal ones alphabetically. max_size leaves the marks out."""
        from torchtext.vocab import Vocab

        # A corpus that spells out a mark must not gain power over the model.
        words = Counter({word: count for word, count in counts.items() if word not in MARKS})
        return cls(Vocab(words, max_size=max_size, min_freq=min_frequency, specials=list(MARKS)).itos)

    def __len__(self) -> int:
        return len(self.tokens)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.tokens == other.tokens

    __hash__ = None  # type: ignore[assignment]

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Ids of words; a word that is spelt like a mark is UNK like any other that is not listed."""
        find = self._ids.get
        return [find(token, UNK) for token in tokens]

    def decode(self, ids: Iterable[int]) -> list[str]:
        return [self.tokens[index] for index in ids]


def bleu_of_tokens(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]], max_n: int, weights: Sequence[float]
) -> float:
    """torchtext's `bleu_score` between 0 and 1: the figure that tutorials and repositories report.

    Corpus BLEU over given tokens, without smoothing; one reference a sentence.
    """
    from torchtext.data.metrics import bleu_score

    return float(
        bleu_score(list(hypotheses), [[reference] for reference in references], max_n=max_n, weights=list(weights))
    )
