"""Word alignments and scores of a model, held to a truth: which layer aligns best, and does the score find wrong pairs?

    python scripts/measure_alignment.py runs/quickstart
    python scripts/measure_alignment.py runs/multi30k-de-en --split test_2016_flickr

The phrasebook's grammar knows which content words belong together, so for its languages the alignment error rate (Och
and Ney 2003) is printed for each decoder layer, at the step that writes a token and at the step that reads it, for one
link per target word and for mutual links. A link is judged if one of its words is a content word. Then true pairs are
compared with the same sources beside shuffled targets: the area under the ROC curve for several scores.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

import transformer_mt as tmt
from transformer_mt.data.prepared import Prepared, prepared_folder
from transformer_mt.decoding.attention_maps import attention_maps
from transformer_mt.decoding.forced import Link, Weights, aligned_words, word_weights
from transformer_mt.decoding.translator import Translator
from transformer_mt.evaluation.alignment import AlignmentError, touching
from transformer_mt.evaluation.separation import area_under_curve
from transformer_mt.phrasebook import generate_aligned
from transformer_mt.phrasebook.alignment import AlignedPair
from transformer_mt.text.vocabulary import BOS, EOS
from transformer_mt.text.words import words_of_tokens

SEED = 5  # of the phrasebook and of the shuffle; training uses 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--split", help="split of the model's data to shuffle; default: sentences of the phrasebook")
    parser.add_argument("--pairs", type=int, default=1000)
    arguments = parser.parse_args()
    translator = tmt.load(arguments.model, device="cpu")
    assert isinstance(translator, Translator)
    data = translator.config.data
    if arguments.split is None:
        drawn = list(generate_aligned(data.source, data.target, "test", arguments.pairs, SEED))
        compare_layers(translator, drawn)
        sources, targets = [pair.source for pair in drawn], [pair.target for pair in drawn]
    else:
        sources, targets = Prepared.open(prepared_folder(translator.config)).raw(arguments.split)
    separate(translator, sources[: arguments.pairs], targets[: arguments.pairs])


def compare_layers(translator: Translator, pairs: Sequence[AlignedPair]) -> None:
    """Print the error rates of each layer."""
    n_layers = len(translator.models[0].decoder.layers)
    kinds = ("mutual", "each target word")
    errors = {
        (layer, step, kind): AlignmentError()
        for layer in range(n_layers)
        for step in ("writes", "reads")
        for kind in kinds
    }
    used = AlignmentError()
    for pair in pairs:
        links = translator.score(pair.source, pair.target, align=True).word_alignment or ()
        count(used, links, pair)
        for layer, (weights_TS, of_source, of_target) in enumerate(read(translator, pair)):
            for step, rows_TS in (("writes", weights_TS[:-1]), ("reads", weights_TS[1:])):
                count(errors[layer, step, "mutual"], aligned_words(rows_TS, of_source, of_target), pair)
                weights_YX = word_weights(rows_TS, of_source, of_target)
                chosen = [(int(row.argmax()), y) for y, row in enumerate(weights_YX) if row.sum() > 0]
                count(errors[layer, step, "each target word"], chosen, pair)
    print(f"{len(pairs)} sentences of the phrasebook, {used.sure} sure links")
    for (layer, step, kind), error in errors.items():
        print(f"layer {layer + 1} of {n_layers}, step that {step:6} the token, {kind:16} {figures(error)}")
    print(f"{'tmt score --alignment':56} {figures(used)}")


def count(error: AlignmentError, links: Sequence[Link], pair: AlignedPair) -> None:
    error.add(touching(set(links), pair.sure), pair.sure, pair.possible)


def figures(error: AlignmentError) -> str:
    return f"AER {error.rate:6.1%}  precision {error.precision:6.1%}  recall {error.recall:6.1%}"


def read(translator: Translator, pair: AlignedPair) -> Iterator[tuple[Weights, list[int | None], list[int | None]]]:
    """For each layer the attention [T + 1, S], and the words of the tokens. Row t writes token t and reads t - 1."""
    tokens = [
        codec.segmenter.tokenize(line)
        for codec, line in ((translator.source, pair.source), (translator.target, pair.target))
    ]
    of_source = words_of_tokens(tokens[0], pair.source, translator.source.segmenter)
    of_target = words_of_tokens(tokens[1], pair.target, translator.target.segmenter)
    source = torch.tensor([[*translator.source.vocabulary.encode(tokens[0]), EOS]])
    target = torch.tensor([[BOS, *translator.target.vocabulary.encode(tokens[1])]])
    with torch.inference_mode(), attention_maps(translator.models[0]) as maps:
        translator.models[0](source, target)
    for path, weights in maps.items():
        if path.endswith("cross_attention"):
            yield np.asarray(weights[0].mean(dim=0)), of_source, of_target


def separate(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> None:
    """Print how well scores tell true pairs from shuffled ones."""
    places = list(range(len(targets)))
    random.Random(SEED).shuffle(places)
    strangers = [targets[place] for place in places]
    wrong = [n for n, place in enumerate(places) if strangers[n] != targets[n]]
    true, shuffled = (list(translator.score(sources, side, gain=True)) for side in (targets, strangers))
    print(f"{len(true)} pairs, and {len(wrong)} with the same sources and shuffled targets; area under the curve:")
    scores = {
        "sum of log-probabilities": lambda one: one.log_probability,
        "mean per token": lambda one: one.mean,
        "sum / length penalty 0.6": lambda one: one.log_probability / ((5 + len(one.tokens)) / 6) ** 0.6,
        "gain per token": lambda one: one.gain,
        "lowest token": lambda one: min(one.token_scores),
    }
    for name, of in scores.items():
        print(f"  {name:26} {area_under_curve(list(map(of, true)), [of(shuffled[n]) for n in wrong]):.4f}")
    gains = sorted(one.gain or 0.0 for one in true)
    for share in (99, 95):
        least = gains[len(gains) * (100 - share) // 100]
        kept = sum((one.gain or 0.0) >= least for one in shuffled) / len(shuffled)
        print(f"  gain of at least {least:.2f}: {share} % of the true pairs, {kept:.1%} of the shuffled ones")


if __name__ == "__main__":
    main()
