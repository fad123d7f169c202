"""English sentences: articles, agreement, do-support, and adverbs in their places."""

from __future__ import annotations

from functools import lru_cache

from transformer_mt.data.corpora.phrasebook.lexicon.beings import YOU
from transformer_mt.data.corpora.phrasebook.lexicon.entries import Noun, Pronoun, Verb
from transformer_mt.data.corpora.phrasebook.meaning import PLURAL, Meaning, Participant, Phrase

NUMERALS = (
    "",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_OPENERS = {"excuse": "excuse me,", "sorry": "I am sorry, but", "everyone": "ladies and gentlemen,"}
_WH = {"what": "what", "whom": "who", "companion": "who", "where": "where", "when": "when", "why": "why"}
_PLURAL_DETERMINERS = {"this": "these", "that": "those"}


def numeral(count: int) -> str:
    return "twenty" if count == 20 else NUMERALS[count]


def article(word: str) -> str:
    """The word with a or an before it."""
    an = word[0] in "aeiou" and not word.startswith(("uni", "use", "one"))
    return f"{'an' if an else 'a'} {word}"


def realise(meaning: Meaning) -> str:
    """The sentence with capital and end mark."""
    words = [_OPENERS[meaning.opener]] if meaning.opener else []
    _SAY[meaning.kind](meaning, words)
    text = " ".join(words)
    return text[0].upper() + text[1:] + ("?" if meaning.question else ".")


@lru_cache(maxsize=1 << 15)
def noun_phrase(participant: Participant, object_form: bool = False) -> str:
    """A participant: a red apple, these students, two cups of coffee, me."""
    if isinstance(participant, Pronoun):
        return participant.en_object if object_form else participant.en
    noun, count = participant.noun, participant.count
    if noun.name:
        return noun.en
    described = _described(participant)
    if noun.mass:
        return _measured(participant, described)
    if count > 1:
        return f"{_determined(participant, numeral(count))} {described}".strip()
    if participant.determiner == "bare":
        return described if count == PLURAL else article(described)
    return f"{_determined(participant)} {described}"


def _described(phrase: Phrase) -> str:
    noun = phrase.noun.en_plural if phrase.count != 1 else phrase.noun.en
    return f"{phrase.adjective.en} {noun}" if phrase.adjective else noun


def _measured(phrase: Phrase, described: str) -> str:
    """A mass noun, with its container if it is counted."""
    if phrase.count == PLURAL:
        return f"{_determined(phrase)} {described}".strip()
    container = phrase.noun.container
    assert container is not None
    if phrase.count == 1:
        return f"{article(container.en)} of {described}"
    return f"{numeral(phrase.count)} {container.en_plural} of {described}"


def _determined(phrase: Phrase, number: str = "") -> str:
    """The determiner, agreeing in number, and the number."""
    determiner = "" if phrase.determiner == "bare" else phrase.determiner
    if phrase.plural:
        determiner = _PLURAL_DETERMINERS.get(determiner, determiner)
    return f"{determiner} {number}".strip()


def _is_plural(subject: Participant) -> bool:
    return subject.plural or subject is YOU


def _third(subject: Participant) -> bool:
    """Whether the verb takes -s."""
    return not _is_plural(subject) and not (isinstance(subject, Pronoun) and subject.person == 1)


def be(subject: Participant, tense: str, negative: bool) -> str:
    """The finite form of be: am, isn't, were, won't be is told apart by the caller."""
    if tense == "past":
        form = "were" if _is_plural(subject) else "was"
    else:
        form = "are" if _is_plural(subject) else "is" if _third(subject) else "am"
    if not negative:
        return form
    return "am not" if form == "am" else f"{form}n't"


def _finite(meaning: Meaning, verb: Verb, asking: bool) -> tuple[str, str]:
    """Auxiliary ("" when there is none) and the rest of the verb."""
    subject, negative = meaning.subject, meaning.negative
    if meaning.modality in ("can", "must"):
        return ("can't" if negative else meaning.modality), verb.en
    if meaning.tense == "future":
        return ("won't" if negative else "will"), verb.en
    if meaning.tense == "progressive":
        return be(subject, "present", negative), verb.en_ing
    third = _third(subject)
    base, finite = (
        (f"want to {verb.en}", f"wants to {verb.en}") if meaning.modality == "want" else (verb.en, verb.en_third)
    )
    if negative or asking:
        auxiliary = "did" if meaning.tense == "past" else "does" if third else "do"
        return auxiliary + ("n't" if negative else ""), base
    if meaning.tense == "past":
        return "", verb.en_past
    return "", finite if third else base


def _action(meaning: Meaning, words: list[str]) -> None:
    verb = meaning.action
    if meaning.request:
        words.append("please don't" if meaning.negative else "please")
        words.append(verb.en)
    else:
        _core(meaning, verb, words)
    _complements(meaning, verb, words)
    _circumstances(meaning, verb, words)


def _core(meaning: Meaning, verb: Verb, words: list[str]) -> None:
    """Everything up to the main verb."""
    question = meaning.question
    inverted = bool(question) and question != "who"
    auxiliary, main = _finite(meaning, verb, inverted)
    if meaning.fronted and meaning.time:
        words.append(meaning.time.en + ",")
    if question == "many":
        assert isinstance(meaning.object, Phrase)
        words.append(f"how many {_many(meaning.object)}")
    elif question in _WH:
        words.append(_WH[question])
    subject = "who" if question == "who" else noun_phrase(meaning.subject)
    words.extend([auxiliary, subject] if inverted else [subject, auxiliary] if auxiliary else [subject])
    if meaning.frequency:
        words.append(meaning.frequency.en)
    words.append(main)


def _many(phrase: Phrase) -> str:
    """What "how many" asks for: red apples, cups of coffee."""
    noun: Noun = phrase.noun
    if noun.container:
        return f"{noun.container.en_plural} of {noun.en}"
    return f"{phrase.adjective.en} {noun.en_plural}" if phrase.adjective else noun.en_plural


def _complements(meaning: Meaning, verb: Verb, words: list[str]) -> None:
    asked = meaning.question in ("what", "whom", "many")
    if verb.goal and meaning.place:
        words.append(meaning.place.en_goal)
    if meaning.object is not None and not asked:
        words.append(_object(meaning, verb))
    elif asked and verb.en_preposition:
        words.append(verb.en_preposition)
    if meaning.recipient:
        words.append("to " + noun_phrase(meaning.recipient, object_form=True))


def _object(meaning: Meaning, verb: Verb) -> str:
    assert meaning.object is not None
    text = noun_phrase(meaning.object, object_form=True)
    if meaning.second:
        assert isinstance(meaning.object, Phrase)
        text += " and " + noun_phrase(Phrase(meaning.second, count=meaning.object.count, kind=meaning.object.kind))
    return f"{verb.en_preposition} {text}" if verb.en_preposition else text


def _circumstances(meaning: Meaning, verb: Verb, words: list[str]) -> None:
    """Manner, company, tool, place and time, in this order."""
    if meaning.manner:
        words.append(meaning.manner.en)
    if meaning.alone:
        words.append("alone")
    if meaning.companion:
        words.append("with " + noun_phrase(meaning.companion, object_form=True))
    elif meaning.question == "companion":
        words.append("with")
    if meaning.tool:
        words.append(meaning.tool.en)
    if meaning.place and not verb.goal:
        words.append(meaning.place.en)
    if meaning.time and not meaning.fronted:
        words.append(meaning.time.en)


def _be_clause(meaning: Meaning, words: list[str], rest: str) -> None:
    """Subject, be and the rest, in the order of a statement or a question."""
    question = meaning.question
    if meaning.fronted and meaning.time:
        words.append(meaning.time.en + ",")
    subject = "who" if question == "who" else noun_phrase(meaning.subject)
    if meaning.tense == "future":
        auxiliary, rest = ("won't" if meaning.negative else "will"), f"be {rest}"
    else:
        auxiliary = be(meaning.subject, meaning.tense, meaning.negative)
    if question in _WH:
        words.append(_WH[question])
    inverted = bool(question) and question != "who"
    words.extend([auxiliary, subject] if inverted else [subject, auxiliary])
    words.append(rest)
    if meaning.time and not meaning.fronted:
        words.append(meaning.time.en)


def _quality(meaning: Meaning, words: list[str]) -> None:
    assert meaning.adjective is not None
    degree = meaning.degree.en + " " if meaning.degree else ""
    _be_clause(meaning, words, degree + meaning.adjective.en)


def _identity(meaning: Meaning, words: list[str]) -> None:
    if meaning.question == "what":
        words.extend(["what", be(meaning.subject, meaning.tense, negative=False), noun_phrase(meaning.subject)])
        return
    assert isinstance(meaning.object, Phrase)
    _be_clause(meaning, words, noun_phrase(meaning.object))


def _existence(meaning: Meaning, words: list[str]) -> None:
    assert meaning.spot is not None
    spot = meaning.spot.en
    if meaning.question == "what":
        words.extend(["what", "was" if meaning.tense == "past" else "is", spot])
    elif meaning.question == "many":
        assert isinstance(meaning.object, Phrase)
        verb = "were" if meaning.tense == "past" else "are"
        words.extend(["how many", _many(meaning.object), verb, "there", spot])
    else:
        _there_is(meaning, words, spot)
    if meaning.time:
        words.append(meaning.time.en)


def _there_is(meaning: Meaning, words: list[str], spot: str) -> None:
    """There is a book; there is no book; is there a book?"""
    phrase = meaning.object
    assert isinstance(phrase, Phrase)
    verb = be(phrase, meaning.tense, negative=False)
    thing = f"no {_described(phrase)}" if meaning.negative else noun_phrase(phrase)
    words.extend([verb, "there"] if meaning.question else ["there", verb])
    words.extend([thing, spot])


def _location(meaning: Meaning, words: list[str]) -> None:
    _be_clause(meaning, words, meaning.spot.en if meaning.spot else "")
    if meaning.question == "where":
        words.remove("")


def _possession(meaning: Meaning, words: list[str]) -> None:
    assert isinstance(meaning.object, Phrase)
    asking = bool(meaning.question)
    if meaning.fronted and meaning.time:
        words.append(meaning.time.en + ",")
    third, past = _third(meaning.subject), meaning.tense == "past"
    auxiliary = "did" if past else "does" if third else "do"
    thing = noun_phrase(meaning.object)
    if meaning.question == "many":
        words.extend(["how many", _many(meaning.object)])
        thing = ""
    subject = noun_phrase(meaning.subject)
    if asking or meaning.negative:
        auxiliary += "n't" if meaning.negative else ""
        words.extend([auxiliary, subject, "have"] if asking else [subject, auxiliary, "have"])
    else:
        words.extend([subject, "had" if past else "has" if third else "have"])
    if thing:
        words.append(thing)
    if meaning.time and not meaning.fronted:
        words.append(meaning.time.en)


_SAY = {
    "action": _action,
    "quality": _quality,
    "identity": _identity,
    "existence": _existence,
    "location": _location,
    "possession": _possession,
}
