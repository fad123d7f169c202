"""Remarks on what is unusual in prepared data, each with a remedy, for the report of `prepare`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from transformer_mt.config.languages import MISTAKEN, WITHOUT_SPACES, name_of, two_letters
from transformer_mt.corpora.base import WHOLE
from transformer_mt.corpora.tables import listed
from transformer_mt.data.doctor import DataReport, LanguageFigures, Outliers
from transformer_mt.data.languages import MOST
from transformer_mt.data.reading import DECODED, ENTITIES, LOWER, LOWER_TARGET, PIECES, QUOTED, TAGS, TOKENIZED
from transformer_mt.data.selection import DROPPED_LEAKS, DUPLICATE, OTHER, key_of
from transformer_mt.data.store import SIDES, SOURCE, TARGET
from transformer_mt.errors import number_of
from transformer_mt.text.cleaning import LOPSIDED
from transformer_mt.workflows.proposal.sizes import MOST_HELD_OUT

OUTLIERS = {  # by kind: what they are, and what was done with them
    "script": "without a letter of their language on one side: kept",
    "length ratio": "with very different lengths: dropped",
}
MANY_UNKNOWN = 0.02  # share of the tokens in validation
MANY_DROPPED = 0.1  # share of the pairs read
MANY_FOREIGN = 0.002  # share of the pairs checked with a sentence in another language
MANY_TOKENS = 3.0  # per word
USUAL_RATIO = 2.0  # of the tokens of two sides
MANY_HELD_OUT = 20_000  # pairs of validation or test
LONGEST_ALLOWED = 4_096  # data.max_length accepts no more
SHOWN = 3  # examples of outliers


class Remark(NamedTuple):
    """Something unusual in the data, what can be done about it, and where the first such pairs are."""

    text: str
    remedy: str = ""
    places: Sequence[str] = ()

    @property
    def lines(self) -> list[str]:
        """What follows the text."""
        shown = ", ".join(self.places[:SHOWN])
        more = ", ..." if len(self.places) > SHOWN else ""
        return [*([self.remedy] if self.remedy else []), *([f"See {shown}{more}"] if shown else [])]


def remarks(report: DataReport) -> Iterator[Remark]:
    """What is unusual in the data, the most serious first."""
    yield from _mistaken(report)
    for passed in report.passed:
        text = f"{passed.place}: {number_of(passed.rows, passed.what)} not read: {passed.reason}"
        yield Remark(text, passed.remedy, passed.first)
    for figures in report.foreign:
        yield from _foreign(figures, report.language)
    for code in report.unknown:
        if code not in MISTAKEN:
            yield Remark(f"whether sentences are {code} is not checked: this language cannot be recognised")
    for split, leaks in report.leaks.items():
        yield from _leaks(split, leaks, report.leaks_dropped)
    yield from _held_out(report)
    yield from _not_validated(report)
    yield from seen_by_parent(report)
    for split, pairs in report.repeated.items():
        yield from _repetitions(split, pairs)
    for overlap in report.overlaps:
        yield from _overlap(overlap)
    yield from _unused_corpora(report)
    yield from _drops(report)
    yield from _cuts(report)
    untold = {LOWER_TARGET, LOWER} if report.case[SOURCE] == "lower" else {LOWER_TARGET}
    yield from outlier_remarks({kind: one for kind, one in report.outliers.items() if kind not in untold})
    for side in SIDES:
        yield from _tokenizer(report, side)


def outlier_remarks(outliers: Mapping[str, Outliers]) -> Iterator[Remark]:
    """Remarks on unusual pairs, by kind."""
    for kind, outlier in outliers.items():
        if kind == DECODED:
            yield Remark(
                f"{number_of(outlier.pairs, 'pair')} with letters that were decoded wrongly, such as Ã¤ for ä: kept",
                "Convert the file again from its original, with the right encoding.",
                outlier.places,
            )
        elif kind == QUOTED:
            yield Remark(
                f'{number_of(outlier.pairs, "pair")} in quotes as in CSV files, such as "say ""yes""": kept',
                r'If a program wrote the file as CSV, set in its data.corpus:  kind: csv   delimiter: "\t"',
                outlier.places,
            )
        elif kind == ENTITIES:
            yield Remark(
                f"{number_of(outlier.pairs, 'pair')} with characters written as in HTML, such as &amp; for &: kept",
                "Set data.cleaning.entities: true, or the model learns to write them.",
                outlier.places,
            )
        elif kind == TAGS:
            yield Remark(
                f"{number_of(outlier.pairs, 'pair')} with tags of HTML, such as <b>: kept",
                "The model learns to write them, and may break them. Remove them if what you translate has none.",
                outlier.places,
            )
        elif kind == PIECES:
            yield Remark(
                f"{number_of(outlier.pairs, 'pair')} with words that another program has cut into pieces, such as"
                " foot@@ ball: kept",
                "Use the text as it was before: this program cuts words itself. Otherwise translations have these"
                " marks, and scores count pieces. To undo @@:  sed -E 's/@@( |$)//g' OLD > NEW   To undo ▁:"
                "  sed 's/ //g; s/▁/ /g; s/^ //' OLD > NEW",
                outlier.places,
            )
        elif kind == TOKENIZED:
            yield Remark(
                f"{number_of(outlier.pairs, 'pair')} with spaces before commas and full stops, as tokenizers write"
                " them: kept",
                "The model reads other text badly, and scores do not compare with those of plain text. To undo it, for"
                " a language such as de:  sacremoses -l de detokenize < OLD > NEW",
                outlier.places,
            )
        elif kind == LOWER:
            yield Remark(
                f"{number_of(outlier.pairs, 'pair')} without capital letters in the source: kept",
                "Capitals in what you translate are then unknown: tokenizer.case: lower (tokenizer.source.case, if"
                " translations have capitals) makes it lower case, too.",
                outlier.places,
            )
        else:
            yield Remark(f"{number_of(outlier.pairs, 'training pair')} {OUTLIERS[kind]}", "", outlier.places)


def seen_by_parent(report: DataReport) -> Iterator[Remark]:
    """Sentences of validation and test sets that the parent was trained on."""
    if (parent := report.parent) is None:
        return
    if not parent.complete:
        unknown = f"what {parent.name} {'started from' if parent.known else 'was trained on'} is unknown"
        evaluated = ", ".join(split for split in report.splits if split != "train")
        yield Remark(
            f"{unknown}: sentences of {evaluated} may have been among it",
            "Another program or an older version of tmt made that model, or its trained_on.safetensors was removed.",
        )
    for split, seen in parent.seen.items():
        shares = sorted({f"{share:.0%}" for share in parent.checked.values() if share < 1})
        only = f" (of the {' and '.join(shares)} of all sentences that could be compared)" if shares else ""
        if any(seen.values()):
            both = f"{number_of(seen[SOURCE], 'source')} and {number_of(seen[TARGET], 'reference')} of {split}"
            yield Remark(
                f"{both}: {parent.name} was trained on the same sentences{only}: kept",
                f"They raise the score on {split}; new sentences show how good the model is.",
            )


def _mistaken(report: DataReport) -> Iterator[Remark]:
    """Codes of countries that are used as codes of languages."""
    places = [(f"data.{side}", code) for side, code in report.languages.items()]
    if report.directions:
        codes = dict.fromkeys(code for name in report.directions for code in name.split("-"))
        places = [("data.directions", code) for code in codes]
    for key, code in places:
        if meant := MISTAKEN.get(code):
            language = name_of(meant)
            yield Remark(
                f"{key} {'has' if report.directions else 'is'} {code}; the code of {language} is {meant}",
                f"Set {key}: {meant}. Cleaning, tokenizers and scores then know the language.",
            )


def _foreign(figures: LanguageFigures, rule: str) -> Iterator[Remark]:
    """Sentences of a file in another language."""
    if rule == "report" and figures.wrong <= MANY_FOREIGN * figures.checked:
        return
    sides = (
        f"{side} {', '.join(f'{count:,} {code}' for code, count in figures.others[side].items())}"
        for side in SIDES
        if figures.others[side]
    )
    outcome = "dropped from training" if rule == "drop" else "kept"
    remedy = "" if rule == "drop" else "data.cleaning.language: drop drops such pairs from training."
    if figures.wrong > MOST * figures.checked:
        remedy = "Check the columns of this file, data.source and data.target."
    yield Remark(
        f"{figures.file}: {figures.wrong:,} of {number_of(figures.checked, 'pair')} checked with a sentence in another"
        f" language ({'; '.join(sides)}): {outcome}",
        remedy,
        figures.places,
    )


def _leaks(split: str, leaks: Mapping[str, int], rule: str) -> Iterator[Remark]:
    remedy = f"They raise the score on {split}; data.cleaning.leaks: pair drops them." if rule == "off" else ""
    if leaks["pair"]:
        outcome = "kept" if rule == "off" else "dropped"
        yield Remark(f"{number_of(leaks['pair'], 'training pair')} also in {split}: {outcome}", remedy)
    yield from _half_leaks(split, leaks, rule)
    if leaks.get(OTHER):
        what = f"{number_of(leaks[OTHER], 'training sentence')} also in {split} of another direction"
        yield Remark(f"{what}: {'kept' if rule == 'off' else 'their pairs are dropped'}", remedy)


def _not_validated(report: DataReport) -> Iterator[Remark]:
    """Directions without validation pairs."""
    if names := [name for name, figures in report.directions.items() if not figures.pairs["validation"]]:
        yield Remark(
            f"no validation pairs for {', '.join(names)}: the loss and the mean BLEU do not count them",
            "Give one of their corpora a validation split.",
        )


def _held_out(report: DataReport) -> Iterator[Remark]:
    """Many pairs of validation and test that are a share of a corpus: the default takes a fifth of it."""
    if max(report.by_share.values(), default=0) > MANY_HELD_OUT:
        counts = " and ".join(f"{pairs:,} pairs for {split}" for split, pairs in report.by_share.items())
        keys = "{" + ", ".join(f"{split}: {MOST_HELD_OUT}" for split in report.by_share) + "}"
        yield Remark(
            f"{counts} are a share of the corpus: training does not learn from them, and validation takes long",
            f"A thousand pairs are enough to compare models. Set in data.corpus:  split: {keys}",
        )


def _half_leaks(split: str, leaks: Mapping[str, int], rule: str) -> Iterator[Remark]:
    """Training pairs that have only one side in common with another split."""
    for kind, what in (
        ("source", f"with a source of {split} and another translation"),
        ("target", f"with a translation of {split} and another source"),
    ):
        others = leaks.get(kind, 0) - leaks["pair"]
        if others > 0:
            is_dropped = kind in DROPPED_LEAKS[rule]
            wanted = "either" if rule in ("source", "target") else kind
            remedy = "" if is_dropped else f"data.cleaning.leaks: {wanted} drops them too."
            outcome = "dropped" if is_dropped else "kept"
            yield Remark(f"{number_of(others, 'training pair')} {what}: {outcome}", remedy)


def _repetitions(split: str, pairs: int) -> Iterator[Remark]:
    if pairs:
        yield Remark(
            f"{number_of(pairs, 'pair')} of {split} equal to an earlier one: kept, as test sets are not changed",
            "Each copy counts in the scores, and makes their ± too small. Remove them, unless the set is published.",
        )


def _overlap(overlap: Mapping[str, Any]) -> Iterator[Remark]:
    split, other = overlap["splits"]
    if overlap["source"]:
        same = f"{overlap['pair']:,} with the same translation: kept"
        yield Remark(
            f"{number_of(overlap['source'], 'source sentence')} of {other} also in {split}, {same}",
            f"A model selected on {split} has an advantage there." if split == "validation" else "",
        )


def _unused_corpora(report: DataReport) -> Iterator[Remark]:
    """Corpora of which no pair is used for training."""
    for one in report.corpora:
        if not one.train:
            rules = ", ".join(f"'{rule}' drops {count:,}" for rule, count in one.dropped.items())
            keys = [f"weight {one.weight:g}"] if one.weight != 1 else []
            keys += [f"tag {one.tag}"] if one.tag is not None else []
            effect = f"; without effect: {', '.join(keys)}" if keys else ""
            yield Remark(
                f"corpus {one.number} ({one.name}) gives no training pairs: of {one.read:,}, {rules}{effect}",
                "If another corpus has the same pairs, remove this one, or name it first: the first of equal pairs is"
                " kept."
                if DUPLICATE in one.dropped
                else "",
            )


def _drops(report: DataReport) -> Iterator[Remark]:
    for split, row in report.pairs.items():
        for rule, count in row.dropped.items():
            if count > MANY_DROPPED * row.read:
                name = "the corpus" if split == WHOLE else split
                first = [f"{pair.place} ({listed((pair.source, pair.target))})" for pair in report.drops.get(rule, ())]
                remedy = f"If that is not intended, check {key_of(rule)}."
                if rule == LOPSIDED and (ratio := _usual_ratio(report)) > USUAL_RATIO:
                    remedy += f" In validation, one side has {ratio:.1f} times the tokens of the other."
                yield Remark(f"'{rule}' drops {count / row.read:.0%} of {name}", remedy, first)


def _usual_ratio(report: DataReport) -> float:
    """How many tokens one side usually has for one of the other: many, if only its tokens are characters."""
    shorter, longer = sorted(max(1.0, report.splits["validation"].side(side).mean) for side in SIDES)
    return longer / shorter


def _cuts(report: DataReport) -> Iterator[Remark]:
    for name, split in report.splits.items():
        if split.cut:
            longest = max(split.side(side).longest for side in SIDES)
            yield Remark(
                f"{number_of(split.cut, 'pair')} of {name} cut at {report.max_length:,} tokens",
                f"data.max_length: {longest + 1} keeps all of them whole." if longest < LONGEST_ALLOWED else "",
            )


def _tokenizer(report: DataReport, side: str) -> Iterator[Remark]:
    language, figures = report.language_of(side), report.splits["validation"].side(side)
    if figures.unknown_rate > MANY_UNKNOWN:
        words = "Lower min_frequency, or use kind: sentencepiece, which splits rare words."
        pieces = "byte_fallback: true spells them in bytes; character_coverage: 1.0 keeps every letter of training."
        own = words if report.counts_words[side] else pieces
        yield Remark(
            f"{figures.unknown_rate:.1%} of the {language} tokens in validation are unknown",
            own if report.parent is None else "tokenizer.extend adds tokens of this corpus, if the parent has no tags.",
        )
    has_words = two_letters(report.languages[side]) not in WITHOUT_SPACES and not report.counts_words[side]
    if figures.tokens_per_word > MANY_TOKENS and has_words:
        yield Remark(
            f"words of the {language} text take {figures.tokens_per_word:.1f} tokens on average",
            "A larger vocab_size makes sentences shorter, and training and translation faster."
            if report.parent is None
            else "",
        )
    if side == TARGET and report.case[side] == "lower" and LOWER_TARGET not in report.outliers:
        yield Remark(
            "translations are in lower case",
            "With case: keep or case: true they have upper case again, as references usually do.",
        )
    elif side == TARGET and not report.lossless[side]:
        yield Remark(f"the {language} tokenizer loses spaces or case", "Translations restore them as far as possible.")
