"""How often training sees the pairs of each corpus and direction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from transformer_mt.config.schema import Config
from transformer_mt.data.selection import Selection


def weights_of(config: Config, selection: Selection) -> list[float]:
    """How often training sees each pair of a stream."""
    streams, counts = selection.streams, selection.counts("train")
    parts = [(pairs, stream.weight) for stream, pairs in zip(streams, counts, strict=True)]
    groups = None if config.data.directions is None else [str(stream.origin.direction) for stream in streams]
    return weighted(parts, config.data.temperature, groups)


def weighted(
    parts: Sequence[tuple[int, float]], temperature: float | None, groups: Sequence[str] | None = None
) -> list[float]:
    """The weight of each corpus, by a temperature T if there is one.

    Corpora of n pairs are then seen in proportion to n^(1/T), and an epoch has as many pairs as all together
    (Arivazhagan et al. 2019, "Massively Multilingual Neural Machine Translation in the Wild", section 5).

    groups: the direction of each part: n is then what training sees of a direction by the weights of its corpora
    """
    if temperature is None:
        return [weight for _, weight in parts]
    names = [str(number) for number in range(len(parts))] if groups is None else groups
    own = [1.0 if groups is None else weight for _, weight in parts]
    totals: defaultdict[str, float] = defaultdict(float)
    for name, (pairs, _), weight in zip(names, parts, own, strict=True):
        totals[name] += pairs * weight
    shares = {name: total ** (1 / temperature) for name, total in totals.items()}
    scale = sum(totals.values()) / sum(shares.values())
    return [
        weight * scale * shares[name] / totals[name] if totals[name] else 1.0
        for name, weight in zip(names, own, strict=True)
    ]
