"""The true alignments of the phrasebook, held to links that people wrote down, and to its sentences."""

from __future__ import annotations

from random import Random

import pytest

from tests.data.phrasebook_words import ADJECTIVES, NOUNS, PLACES, SPOTS, TIMES, TOOLS, VERBS
from transformer_mt.phrasebook import english, generate, generate_aligned, german, korean
from transformer_mt.phrasebook.alignment import MARKS, links, marked
from transformer_mt.phrasebook.lexicon.beings import HE, NAMES, WE, YOU, I
from transformer_mt.phrasebook.meaning import Meaning, Phrase
from transformer_mt.phrasebook.sampling import Sampler

SAY = {"ko": korean.realise, "en": english.realise, "de": german.realise}
BREAD = Phrase(NOUNS["빵"], count=2)

CASES = {
    "fronted time": Meaning("action", I, "past", verb=VERBS["사다"], object=Phrase(NOUNS["빵"], count=0),
                            place=PLACES["시장"], time=TIMES["어제"], fronted=True),
    "adjective and container": Meaning("action", HE, "past", verb=VERBS["먹다"], object=BREAD,
                                       time=TIMES["지난주에"]),
    "separated verb": Meaning("action", Phrase(NOUNS["아버지"], "my"), "present", verb=VERBS["켜다"],
                              object=Phrase(NOUNS["램프"], "the", ADJECTIVES["빨갛다"])),
    "spot": Meaning("existence", Phrase(NOUNS["책"]), object=Phrase(NOUNS["책"]), spot=SPOTS["책상 위에"]),
    "name and tool": Meaning("action", Phrase(NAMES[0]), "future", verb=VERBS["가다"], place=PLACES["역"],
                             tool=TOOLS["버스로"], time=TIMES["세 시에"]),
    "two nouns": Meaning("action", WE, "past", verb=VERBS["사다"], object=Phrase(NOUNS["사과"]),
                         second=NOUNS["달걀"]),
    "negative request": Meaning("action", YOU, negative=True, request=True, verb=VERBS["읽다"],
                                object=Phrase(NOUNS["책"], "this")),
}  # fmt: skip

# Links of content words, written by hand.
TRUTH = {
    ("fronted time", "ko", "en"): "어제=Yesterday, 시장에서=market. 빵을=bread 샀어요.=bought",
    ("fronted time", "de", "en"): "Gestern=Yesterday, Brot=bread Markt=market. gekauft.=bought",
    ("adjective and container", "ko", "en"): "지난주에=last 지난주에=week. 빵=bread 조각을=slices 먹었어요.=ate",
    ("adjective and container", "de", "en"): "letzte=last Woche=week. Scheiben=slices Brot=bread gegessen.=ate",
    ("separated verb", "de", "en"): "Vater=father schaltet=turns ein.=turns rote=red Lampe=lamp.",
    ("separated verb", "ko", "de"): "아버지는=Vater 빨간=rote 램프를=Lampe 켜요.=schaltet 켜요.=ein.",
    ("spot", "ko", "en"): "책상=desk. 책이=book",
    ("spot", "en", "de"): "book=Buch. desk.=Schreibtisch",
    ("name and tool", "ko", "en"): "민수=Minsu 세=three 시에=o'clock. 버스로=bus 역에=station 갈=go",
    ("name and tool", "en", "de"): "Minsu=Minsu go=gehen. bus=Bus station=Bahnhof three=drei o'clock.=Uhr",
    ("two nouns", "ko", "de"): "사과와=Apfel 달걀을=Ei 샀어요.=gekauft.",
    ("negative request", "ko", "en"): "책을=book. 읽지=read",
    ("negative request", "de", "en"): "Lesen=read Buch=book.",
}


def linked(case: str, source: str, target: str) -> tuple[set[str], set[str]]:
    """The sure and the possible links of a sentence pair, as words."""
    meaning = CASES[case]
    ours, theirs = (SAY[language](meaning).split() for language in (source, target))
    sure, possible = links(SAY[source](marked(meaning)), SAY[target](marked(meaning)))
    found, others = ({f"{ours[i]}={theirs[j]}" for i, j in some} for some in (sure, possible))
    return found, others


@pytest.mark.parametrize(("case", "source", "target"), list(TRUTH))
def test_sure_links_are_those_that_people_draw(case: str, source: str, target: str) -> None:
    sure, possible = linked(case, source, target)
    assert sure == set(TRUTH[case, source, target].split())
    assert sure <= possible


def test_expressions_of_several_words_are_possible_links() -> None:
    sure, possible = linked("name and tool", "en", "de")
    assert {"at=um", "at=drei", "by=mit", "by=dem"} <= possible - sure


@pytest.mark.parametrize("language", ["ko", "en", "de"])
def test_marks_change_no_letter(language: str) -> None:
    sampler = Sampler(Random(3), polite_freely=True)
    for meaning in (sampler.draw() for _ in range(2_000)):
        plain = MARKS.sub("", SAY[language](marked(meaning)))
        assert plain[0].upper() + plain[1:] == SAY[language](meaning)


def test_aligned_pairs_are_the_corpus_and_every_word_exists() -> None:
    pairs = list(generate("de", "ko", "test", 300, 2))
    aligned = list(generate_aligned("de", "ko", "test", 300, 2))
    assert [(one.source, one.target) for one in aligned] == pairs
    for one in aligned:
        assert all(i < len(one.source.split()) and j < len(one.target.split()) for i, j in one.possible)
    assert sum(len(one.sure) for one in aligned) > 3 * len(aligned)
