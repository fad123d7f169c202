"""Tokens and their ids. The only module that imports torchtext (0.6.0): its Vocab ranks the words.

Every vocabulary begins with the same four special tokens: padding, unknown, sentence start, sentence end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

PAD, UNK, BOS, EOS = 0, 1, 2, 3
MARKS = ("<pad>", "<unk>", "<s>", "</s>")
_SPACES = re.compile(r"\s+")


class Vocabulary:
    """A list of tokens; the id of a token is its index in the list. Other tokens have the id UNK.

    tags: the last tokens, which text never contains; the id of a tag comes from `tag_ids` only
    """

    def __init__(self, tokens: Sequence[str], tags: Sequence[str] = ()) -> None:
        """tokens: without the tags. Raises ValueError unless the four marks come first and all are different."""
        if tuple(tokens[: len(MARKS)]) != MARKS:
            raise ValueError(f"a vocabulary must begin with {', '.join(MARKS)}")
        self.tokens, self.tags = [*tokens, *tags], tuple(tags)
        # Without the marks: a sentence that contains the text "</s>" must not end there.
        self._ids = {token: index for index, token in enumerate(tokens) if index >= len(MARKS)}
        if len({*MARKS, *self._ids, *tags}) != len(self.tokens):
            twice = next(token for token, count in Counter(self.tokens).items() if count > 1)
            raise ValueError(f"token '{twice}' appears twice")

    @classmethod
    def count(cls, counts: Counter[str], min_frequency: int = 1, max_size: int | None = None) -> Vocabulary:
        """The vocabulary of a corpus: the marks, then words by frequency, equally frequent ones in alphabetical order.

        max_size: the most words, not counting the marks; None: no limit
        """
        from torchtext.vocab import Vocab

        # A mark that a corpus contains as text is not a word of the vocabulary.
        words = Counter({word: count for word, count in counts.items() if word not in MARKS})
        return cls(Vocab(words, max_size=max_size, min_freq=min_frequency, specials=list(MARKS)).itos)

    def __len__(self) -> int:
        return len(self.tokens)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and (self.tokens, self.tags) == (other.tokens, other.tags)

    __hash__ = None  # type: ignore[assignment]

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """The ids of tokens; UNK for tokens that are not in the list, or that look like a mark."""
        find = self._ids.get
        return [find(token, UNK) for token in tokens]

    @property
    def untagged(self) -> list[str]:
        """Its tokens without the tags."""
        return self.tokens[: len(self.tokens) - len(self.tags)]

    def tag_ids(self, tags: Sequence[str]) -> list[int]:
        """The ids of some of its tags."""
        first = len(self.tokens) - len(self.tags)
        return [first + self.tags.index(tag) for tag in tags]

    def decode(self, ids: Iterable[int]) -> list[str]:
        return [self.tokens[index] for index in ids]


def bleu_of_tokens(
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[Sequence[Sequence[str]]],
    max_n: int,
    weights: Sequence[float],
) -> float:
    """torchtext's `bleu_score` (0 to 1), which many tutorials report: corpus BLEU of these tokens, without smoothing.

    references: one or more for each hypothesis: all first ones, all second ones ...
    max_n: highest order of n-grams. weights: of the orders 1 to max_n.
    """
    from torchtext.data.metrics import bleu_score

    # torchtext splits its n-grams at spaces again, and spaCy has tokens of white space.
    left, *right = (
        [[_SPACES.sub("▁", token) for token in line] for line in side] for side in (hypotheses, *references)
    )
    by_sentence = [list(some) for some in zip(*right, strict=True)]
    return float(bleu_score(left, by_sentence, max_n=max_n, weights=list(weights)))
