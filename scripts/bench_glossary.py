"""Measures terms and copies on a real model: are they there, what do they do to quality, what do they cost.

    python scripts/bench_glossary.py --model runs/NAME --source test.de --reference test.en \
        --train-source train.de --train-target train.en

1. Oracle terms: words of the reference that the model does not write by itself, for words of the source that translate
   them (IBM model 1 on the training files). Share that appears, BLEU and chrF without and with them.
2. A glossary of --terms entries: frequent words of the source, each with a made-up translation of one to three words
   that the model does not write. Share that appears, lines that lose other words, time without and with it, lines
   without a hit.
3. --cases lines with addresses, e-mail addresses, placeholders and numbers between their words, some in brackets and
   quotation marks: copied exactly once, and no other number in the translation.

Seconds are those of the processor. With --threads above 1 they add up over the threads.
"""

from __future__ import annotations

import argparse
import random
import re
import string
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import torch
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from transformer_mt.decoding.glossary import Glossary
from transformer_mt.decoding.interpreter import Computing
from transformer_mt.decoding.terms import Term
from transformer_mt.decoding.translator import Translator
from transformer_mt.files.lines import lines_of

AROUND = ("X", "X", "X", "(X)", "[X]", '"X"', "„X“", "X,", "(X", "X/")  # what touches a copy
FORMS = ("{noun}", "{adjective} {noun}", "{adjective} {noun} {noun}")


def main() -> None:
    options = _arguments()
    torch.manual_seed(1)
    translator = Translator.load([options.model], computing=Computing("cpu", options.threads))
    sources, references = lines_of(options.source)[: options.lines], lines_of(options.reference)[: options.lines]
    plain, seconds = _timed(translator, sources)
    print(f"{len(sources):,} lines, without terms: {seconds:.1f} s, {_scores(plain, references)}", flush=True)
    lexicon = _lexicon(lines_of(options.train_source), lines_of(options.train_target), options.pairs)
    _oracle(translator, sources, references, plain, lexicon)
    _made_up(translator, sources, plain, seconds, options.terms)
    _copies(translator, sources, options.cases)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="run or model folder")
    parser.add_argument("--source", type=Path, required=True, help="test sentences, one per line")
    parser.add_argument("--reference", type=Path, required=True, help="their translations")
    parser.add_argument("--train-source", type=Path, required=True, help="sentences that the lexicon is learned from")
    parser.add_argument("--train-target", type=Path, required=True, help="their translations")
    parser.add_argument("--lines", type=int, default=1000, help="lines of the test files")
    parser.add_argument("--pairs", type=int, default=6000, help="training pairs that the lexicon is learned from")
    parser.add_argument("--terms", type=int, default=200, help="entries of the glossary")
    parser.add_argument("--cases", type=int, default=1000, help="lines with copies")
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def _timed(
    translator: Translator, lines: Sequence[str], terms: Sequence[Sequence[Term]] | None = None
) -> tuple[list[str], float]:
    start = time.process_time()  # of the processor, because other programs may be running
    texts = [answer.text for answer in translator.translate(lines, terms=terms)]
    return texts, time.process_time() - start


def _scores(texts: Sequence[str], references: Sequence[str]) -> str:
    bleu, chrf = BLEU(), CHRF()
    return (
        f"BLEU {bleu.corpus_score(texts, [references]).score:.2f}, "
        f"chrF {chrf.corpus_score(texts, [references]).score:.2f}"
    )


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def _lexicon(sources: Sequence[str], targets: Sequence[str], pairs: int) -> dict[str, list[str]]:
    """The translations of each source word with a probability of at least 0.1, best first (IBM model 1, 4 rounds)."""
    read = [
        (dict.fromkeys(_words(one)), dict.fromkeys(_words(other)))
        for one, other in zip(sources[:pairs], targets[:pairs], strict=False)
    ]
    table: dict[tuple[str, str], float] = defaultdict(lambda: 1.0)
    for _ in range(4):
        counts: dict[tuple[str, str], float] = defaultdict(float)
        totals: Counter[str] = Counter()
        for one, other in read:
            for target in other:
                total = sum(table[source, target] for source in one)
                for source in one:
                    counts[source, target] += table[source, target] / total
                    totals[source] += table[source, target] / total  # type: ignore[assignment]
        table = defaultdict(float, {pair: count / totals[pair[0]] for pair, count in counts.items()})
    found: dict[str, list[str]] = defaultdict(list)
    for (source, target), probability in sorted(table.items(), key=lambda item: -item[1]):
        if probability >= 0.1:
            found[source].append(target)
    return found


def _appears(term: Term, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(term.target)}(?!\w)", text, re.IGNORECASE) is not None


def _oracle(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    plain: Sequence[str],
    lexicon: dict[str, list[str]],
) -> None:
    terms: list[list[Term]] = []
    for source, reference, text in zip(sources, references, plain, strict=True):
        wanted, written = {*_words(reference)}, {word.lower() for word in _words(text)}
        some: list[Term] = []
        for word in dict.fromkeys(_words(source)):
            new = [one for one in lexicon.get(word, ()) if one in wanted and one.lower() not in written]
            new = [one for one in new if len(one) > 3 and one.islower() and one not in {term.target for term in some}]
            if new and len(some) < 2:
                some.append(Term(word, new[0]))
        terms.append(some)
    hits = [index for index, some in enumerate(terms) if some]
    texts, _ = _timed(translator, sources, terms)
    there = sum(_appears(term, texts[index]) for index in hits for term in terms[index])
    print(f"oracle: {there} of {sum(map(len, terms))} terms appear, in {len(hits)} lines")
    for name, some in (("without", plain), ("with", texts)):
        print(f"  these lines, {name}: {_scores([some[i] for i in hits], [references[i] for i in hits])}", flush=True)


def _made_up(
    translator: Translator, sources: Sequence[str], plain: Sequence[str], seconds: float, n_terms: int
) -> None:
    """Made-up translations are real words of the translations, in combinations that no translation has."""
    draw, written = random.Random(1), Counter(word for text in plain for word in _words(text) if word.islower())
    known = [word for word, count in written.most_common(400) if len(word) > 3 and count > 1]
    frequent = Counter(word for line in sources for word in {*_words(line)} if len(word) > 2 and not word.isdigit())
    entries: dict[str, str] = {}
    for word, _ in frequent.most_common():
        phrase = FORMS[len(entries) % len(FORMS)].replace("{adjective}", "X").replace("{noun}", "X")
        target = re.sub("X", lambda _: draw.choice(known), phrase)
        lines = [index for index, line in enumerate(sources) if word in _words(line)]
        if len(lines) <= len(sources) // 50 and not any(target in plain[index] for index in lines):
            entries[word] = target
        if len(entries) == n_terms:
            break
    glossary = Glossary(entries)
    found = [[term for term in glossary.terms(line) if term.source != term.target] for line in sources]
    texts, taken = _timed(translator, sources, found)
    hits = [index for index, some in enumerate(found) if some]
    there = {term: 0 for some in found for term in some}
    for index in hits:
        for term in found[index]:
            there[term] += _appears(term, texts[index])
    placed, wanted = sum(there.values()), sum(map(len, found))
    same = sum(plain[i] == texts[i] for i in range(len(texts)) if not found[i])
    print(f"glossary of {len(entries)} terms: {sum(map(bool, there.values()))} of {len(there)} that occur appear")
    short = 0
    for index in hits:
        n_words = sum(len(_words(term.target)) for term in found[index])
        beside, own = len(_words(texts[index])) - n_words, len(_words(plain[index])) - len(found[index])
        short += beside < 0.6 * own
    print(f"  {short} of {len(hits)} lines have fewer than 60 % of the words beside the terms of a line without them")
    print(f"  {placed} of {wanted} occurrences, in {len(hits)} lines; {taken:.1f} s instead of {seconds:.1f} s")
    print(f"  lines without a hit that are equal: {same} of {len(texts) - len(hits)}", flush=True)
    _, alone = _timed(translator, [sources[i] for i in hits])
    _, bound = _timed(translator, [sources[i] for i in hits], [found[i] for i in hits])
    print(f"  the lines with a hit alone: {bound:.1f} s instead of {alone:.1f} s", flush=True)


def _copies(translator: Translator, sources: Sequence[str], cases: int) -> None:
    draw, lines, expected = random.Random(2), [], []
    for number in range(cases):
        words = sources[number % len(sources)].split(" ")
        copies: list[str] = []
        for _ in range(draw.randint(1, 3)):
            copy = _copy(draw)
            if not any(copy in other or other in copy for other in [*copies, *words]):
                words.insert(draw.randrange(len(words)), draw.choice(AROUND).replace("X", copy))
                copies.append(copy)
        lines.append(" ".join(words))
        expected.append(copies)
    glossary = Glossary({})  # copies only
    texts, seconds = _timed(translator, lines, [glossary.terms(line) for line in lines])
    whole = r"(?<![\w/]){}(?!\w)"
    right = [
        all(len(re.findall(whole.format(re.escape(copy)), text)) == 1 and text.count(copy) == 1 for copy in copies)
        for text, copies in zip(texts, expected, strict=True)
    ]
    _, free = _timed(translator, lines)
    total = sum(map(len, expected))
    print(f"copies: {sum(right)} of {cases} lines have each of their copies exactly once ({total} copies)")
    others = sum(
        bool(_numbers(text, copies)) and not _numbers(line, copies)
        for line, text, copies in zip(lines, texts, expected, strict=True)
    )
    print(f"  {others} lines have another number, which their source has not")
    print(f"  {seconds:.1f} s instead of {free:.1f} s")
    for line, text, copies, good in zip(lines, texts, expected, right, strict=True):
        if not good:
            print(f"  wrong: {copies} in: {text} | {line}")


def _numbers(text: str, copies: Sequence[str]) -> list[str]:
    """The numbers outside the copies."""
    for copy in sorted(copies, key=len, reverse=True):
        text = text.replace(copy, " ")
    return re.findall(r"\d+", text)


def _copy(draw: random.Random) -> str:
    name = "".join(draw.choices(string.ascii_lowercase, k=draw.randint(3, 8)))
    number = draw.randint(11, 9999)
    return draw.choice(
        [
            f"https://www.{name}.example/{name}?id={number}&x=%20",
            f"{name}.{name}{number}@{name}.example",
            f"{{{name}}}",
            f"%({name})s",
            f"{number}",
            f"{number},{draw.randint(10, 99)}",
            f"{draw.randint(10, 23)}:{draw.randint(10, 59)}",
        ]
    )


if __name__ == "__main__":
    main()
