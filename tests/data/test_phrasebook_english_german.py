"""English and German grammar of the phrasebook: known sentences for each rule."""

from __future__ import annotations

import pytest

from tests.data.phrasebook_words import ADJECTIVES, NOUNS, PLACES, SPOTS, TIMES, TOOLS, VERBS
from transformer_mt.phrasebook import english, german, german_forms, korean, pools
from transformer_mt.phrasebook.lexicon import beings, entries
from transformer_mt.phrasebook.lexicon.beings import HE, SHE, THEY, THIS, WE, WHO, YOU, I
from transformer_mt.phrasebook.meaning import PLURAL, Meaning, Phrase


def both(meaning: Meaning) -> tuple[str, str]:
    return english.realise(meaning), german.realise(meaning)


def act(subject, verb: str, **rest) -> Meaning:
    return Meaning("action", subject, verb=VERBS[verb], **rest)


@pytest.mark.parametrize(
    ("word", "expected"),
    [("apple", "an apple"), ("umbrella", "an umbrella"), ("university", "a university"), ("book", "a book"),
     ("e-mail", "an e-mail"), ("old hat", "an old hat")],
)  # fmt: skip
def test_a_or_an(word, expected):
    assert english.article(word) == expected


def test_regular_endings():
    assert [entries.english_s(word) for word in ("box", "strawberry", "key", "watch", "go")] == [
        "boxes",
        "strawberries",
        "keys",
        "watches",
        "goes",
    ]
    assert [entries.english_past(word) for word in ("cook", "dance", "study", "play")] == [
        "cooked",
        "danced",
        "studied",
        "played",
    ]
    assert [entries.english_ing("dance"), entries.english_ing("see"), entries.english_ing("swim", doubled=True)] == [
        "dancing",
        "seeing",
        "swimming",
    ]


def test_irregular_plurals():
    got = {noun.en: noun.en_plural for noun in pools.NOUNS}
    assert [got[word] for word in ("child", "man", "woman", "mouse", "goose", "sheep", "fish", "knife")] == [
        "children",
        "men",
        "women",
        "mice",
        "geese",
        "sheep",
        "fish",
        "knives",
    ]


@pytest.mark.parametrize(
    ("meaning", "en", "de"),
    [
        (act(I, "자다"), "I sleep.", "Ich schlafe."),
        (act(HE, "자다"), "He sleeps.", "Er schläft."),
        (act(THEY, "자다", tense="past"), "They slept.", "Sie haben geschlafen."),
        (act(SHE, "자다", tense="future"), "She will sleep.", "Sie wird schlafen."),
        (act(SHE, "자다", negative=True), "She doesn't sleep.", "Sie schläft nicht."),
        (act(YOU, "자다", tense="past", question="yesno"), "Did you sleep?", "Haben Sie geschlafen?"),
        (act(WHO, "자다", tense="past", question="who"), "Who slept?", "Wer hat geschlafen?"),
        (act(WE, "수영하다", tense="past"), "We swam.", "Wir sind geschwommen."),
        (act(HE, "수영하다", modality="want"), "He wants to swim.", "Er möchte schwimmen."),
        (act(I, "수영하다", modality="can", negative=True), "I can't swim.", "Ich kann nicht schwimmen."),
        (act(I, "수영하다", tense="progressive", negative=True), "I am not swimming.", "Ich schwimme nicht."),
        (act(HE, "일어나다", time=TIMES["매일"]), "He gets up every day.", "Er steht jeden Tag auf."),
        (act(HE, "일어나다", tense="past"), "He got up.", "Er ist aufgestanden."),
        (act(HE, "산책하다", tense="future"), "He will take a walk.", "Er wird spazieren gehen."),
        (act(YOU, "일어나다", request=True), "Please get up.", "Stehen Sie bitte auf."),
    ],
)  # fmt: skip
def test_verbs_agree_and_bracket_the_sentence(meaning, en, de):
    assert both(meaning) == (en, de)


def test_the_german_verb_stays_second():
    bread = Phrase(NOUNS["빵"], count=PLURAL)
    meaning = act(I, "사다", tense="past", object=bread, time=TIMES["어제"], fronted=True, place=PLACES["시장"])
    assert both(meaning) == (
        "Yesterday, I bought bread at the market.",
        "Gestern habe ich auf dem Markt Brot gekauft.",
    )
    assert korean.realise(meaning) == "어제 저는 시장에서 빵을 샀어요."


def test_cases_of_articles_and_pronouns():
    student = Phrase(NOUNS["학생"], "the")
    assert german.realise(act(student, "만나다", object=HE)) == "Der Student trifft ihn."
    assert german.realise(act(HE, "만나다", object=student)) == "Er trifft den Studenten."
    assert german.realise(act(I, "돕다", object=SHE)) == "Ich helfe ihr."
    assert german.realise(act(I, "돕다", object=Phrase(NOUNS["아이"], "the", count=PLURAL))) == "Ich helfe den Kindern."
    assert german.realise(act(I, "기다리다", object=Phrase(NOUNS["삼촌"], "my"))) == "Ich warte auf meinen Onkel."
    gift = act(I, "주다", tense="past", object=Phrase(NOUNS["공"]), recipient=Phrase(NOUNS["딸"], "my"))
    assert both(gift) == ("I gave a ball to my daughter.", "Ich habe meiner Tochter einen Ball gegeben.")


@pytest.mark.parametrize(
    ("determiner", "noun", "count", "case", "expected"),
    [
        ("bare", "사과", 1, "nom", "ein roter Apfel"),
        ("bare", "사과", 1, "acc", "einen roten Apfel"),
        ("bare", "사과", 1, "dat", "einem roten Apfel"),
        ("bare", "가방", 1, "acc", "eine rote Tasche"),
        ("bare", "자동차", 1, "nom", "ein rotes Auto"),
        ("the", "자동차", 1, "nom", "das rote Auto"),
        ("the", "사과", 1, "acc", "den roten Apfel"),
        ("this", "가방", 1, "dat", "dieser roten Tasche"),
        ("my", "자동차", 1, "acc", "mein rotes Auto"),
        ("our", "사과", 1, "acc", "unseren roten Apfel"),
        ("bare", "사과", 2, "acc", "zwei rote Äpfel"),
        ("bare", "사과", 3, "dat", "drei roten Äpfeln"),
        ("that", "사과", 1, "nom", "der rote Apfel dort"),
        ("the", "자동차", 2, "nom", "die zwei roten Autos"),
    ],
)
def test_german_adjective_endings(determiner, noun, count, case, expected):
    phrase = Phrase(NOUNS[noun], determiner, ADJECTIVES["빨갛다"], count)
    assert german_forms.noun_phrase(phrase, case) == expected


def test_strong_endings_and_changing_stems():
    milk = Phrase(NOUNS["우유"], adjective=ADJECTIVES["따뜻하다"], count=PLURAL)
    assert german_forms.noun_phrase(milk, "acc") == "warme Milch"
    dear = Phrase(NOUNS["반지"], adjective=ADJECTIVES["비싸다"])
    assert german_forms.noun_phrase(dear, "acc") == "einen teuren Ring"
    high = Phrase(NOUNS["다리"], adjective=ADJECTIVES["높다"])
    assert german_forms.noun_phrase(high, "nom") == "eine hohe Brücke"


def test_nicht_and_kein():
    apple, the_apple = Phrase(NOUNS["사과"]), Phrase(NOUNS["사과"], "the")
    assert both(act(I, "먹다", tense="past", negative=True, object=apple)) == (
        "I didn't eat an apple.",
        "Ich habe keinen Apfel gegessen.",
    )
    assert both(act(I, "먹다", tense="past", negative=True, object=the_apple, place=PLACES["공원"])) == (
        "I didn't eat the apple in the park.",
        "Ich habe den Apfel nicht im Park gegessen.",
    )
    likes = act(I, "좋아하다", negative=True, object=Phrase(NOUNS["사과"], count=PLURAL, kind=True))
    assert both(likes) == ("I don't like apples.", "Ich mag keine Äpfel.")
    mine = Meaning("identity", THIS, negative=True, object=Phrase(NOUNS["책"], "my"))
    assert both(mine) == ("This isn't my book.", "Das hier ist nicht mein Buch.")


def test_measures_and_coordination():
    coffee = act(HE, "마시다", tense="past", object=Phrase(NOUNS["커피"], count=2))
    assert both(coffee) == ("He drank two cups of coffee.", "Er hat zwei Tassen Kaffee getrunken.")
    one = act(HE, "마시다", tense="past", object=Phrase(NOUNS["물"], count=1))
    assert both(one) == ("He drank a glass of water.", "Er hat ein Glas Wasser getrunken.")
    fruit = act(HE, "먹다", tense="past", object=Phrase(NOUNS["사과"]), second=NOUNS["바나나"])
    assert both(fruit) == ("He ate an apple and a banana.", "Er hat einen Apfel und eine Banane gegessen.")
    assert korean.realise(fruit) == "그는 사과와 바나나를 먹었어요."


@pytest.mark.parametrize(
    ("question", "object_", "en", "de", "ko"),
    [
        ("what", None, "What did you buy?", "Was haben Sie gekauft?", "무엇을 샀어요?"),
        ("where", "책", "Where did you buy a book?", "Wo haben Sie ein Buch gekauft?", "어디에서 책을 샀어요?"),
        ("when", "책", "When did you buy a book?", "Wann haben Sie ein Buch gekauft?", "언제 책을 샀어요?"),
        ("why", "책", "Why did you buy a book?", "Warum haben Sie ein Buch gekauft?", "왜 책을 샀어요?"),
        ("many", "책", "How many books did you buy?", "Wie viele Bücher haben Sie gekauft?", "책을 몇 권 샀어요?"),
    ],
)
def test_questions(question, object_, en, de, ko):
    bought = Phrase(NOUNS[object_]) if object_ else None
    meaning = act(YOU, "사다", tense="past", question=question, object=bought)
    assert (*both(meaning), korean.realise(meaning)) == (en, de, ko)


def test_women_have_their_own_word_in_german():
    doctor = NOUNS["의사"]
    assert both(Meaning("identity", SHE, object=Phrase(doctor))) == ("She is a doctor.", "Sie ist Ärztin.")
    singer = Phrase(NOUNS["가수"], adjective=ADJECTIVES["유명하다"])
    julia = Phrase(next(name for name in beings.NAMES if name.en == "Julia"))
    assert both(Meaning("identity", julia, object=singer)) == (
        "Julia is a famous singer.",
        "Julia ist eine berühmte Sängerin.",
    )


def test_there_is_and_to_have():
    books = Phrase(NOUNS["책"], count=2)
    there = Meaning("existence", books, object=books, spot=SPOTS["책상 위에"])
    assert both(there) == ("There are two books on the desk.", "Auf dem Schreibtisch sind zwei Bücher.")
    assert korean.realise(there) == "책상 위에 책이 두 권 있어요."
    cat = Phrase(NOUNS["고양이"])
    lacks = Meaning("possession", SHE, negative=True, object=cat)
    assert (*both(lacks), korean.realise(lacks)) == (
        "She doesn't have a cat.",
        "Sie hat keine Katze.",
        "그녀는 고양이가 없어요.",
    )


def test_on_foot_by_bus_and_home():
    walk, ride = pools.VERBS[-8], pools.VERBS[-7]
    assert (walk.de.infinitive, ride.de.infinitive) == ("gehen", "fahren")
    home = PLACES["집"]
    assert both(Meaning("action", I, "past", verb=walk, place=home)) == ("I went home.", "Ich bin nach Hause gegangen.")
    assert both(Meaning("action", I, "past", verb=ride, place=PLACES["역"], tool=TOOLS["버스로"])) == (
        "I went to the station by bus.",
        "Ich bin mit dem Bus zum Bahnhof gefahren.",
    )
