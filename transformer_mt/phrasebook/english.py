"""English sentences: articles, agreement, do-support and word order."""

from __future__ import annotations

from functools import lru_cache

from transformer_mt.phrasebook.alignment import MARKS
from transformer_mt.phrasebook.lexicon.beings import YOU
from transformer_mt.phrasebook.lexicon.entries import Pronoun
from transformer_mt.phrasebook.meaning import PLURAL, Meaning, Participant, Phrase

_ONE_TO_TWELVE = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NUMERALS = {**dict(enumerate(_ONE_TO_TWELVE, start=1)), 20: "twenty"}
_OPENERS = {"": "", "excuse": "excuse me,", "sorry": "I am sorry, but", "everyone": "ladies and gentlemen,"}
_WH = {"what": "what", "whom": "who", "companion": "who", "where": "where", "when": "when", "why": "why"}
_PLURAL_DETERMINERS = {"this": "these", "that": "those"}


def realise(meaning: Meaning) -> str:
    """The sentence with a capital letter and final punctuation."""
    words = [_OPENERS[meaning.opener]]
    if meaning.time and meaning.fronted:
        words.append(meaning.time.en + ",")
    _SAY[meaning.kind](meaning, words)
    if meaning.time and not meaning.fronted:
        words.append(meaning.time.en)
    text = " ".join(filter(None, words))
    return text[0].upper() + text[1:] + ("?" if meaning.question else ".")


def article(word: str) -> str:
    """The word with a or an before it."""
    letters = MARKS.sub("", word)
    an = letters[0] in "aeiou" and not letters.startswith(("uni", "use", "one"))
    return f"{'an' if an else 'a'} {word}"


@lru_cache(maxsize=1 << 15)
def noun_phrase(participant: Participant, object_form: bool = False, negative: bool = False) -> str:
    """A participant: a red apple, these students, two cups of coffee, me; negative: no red apple."""
    if isinstance(participant, Pronoun):
        return participant.en_object if object_form else participant.en
    noun, count, determiner = participant.noun, participant.count, participant.determiner
    if noun.name:
        return noun.en
    described = noun.en if count == 1 else noun.en_plural
    if participant.adjective:
        described = f"{participant.adjective.en} {described}"
    if negative:
        return f"no {described}"
    if noun.mass and count != PLURAL:
        assert noun.container is not None
        if count == 1:
            return f"{article(noun.container.en)} of {described}"
        return f"{NUMERALS[count]} {noun.container.en_plural} of {described}"
    if determiner == "bare" and count == 1:
        return article(described)
    words = [NUMERALS[count], described] if count > 1 else [described]
    if determiner != "bare":
        words.insert(0, _PLURAL_DETERMINERS.get(determiner, determiner) if participant.plural else determiner)
    return " ".join(words)


def be(subject: Participant, tense: str, negative: bool) -> str:
    """The present or past of be that agrees with the subject: am, isn't, were. `_be_sentence` builds the future."""
    if subject.plural or subject is YOU:
        form = "were" if tense == "past" else "are"
    elif tense == "past":
        form = "was"
    else:
        form = "am" if isinstance(subject, Pronoun) and subject.person == 1 else "is"
    if not negative:
        return form
    return "am not" if form == "am" else f"{form}n't"


def _finite(meaning: Meaning, base: str, third: str, past: str, ing: str) -> tuple[str, str]:
    """The auxiliary ("" if there is none) and the main verb, from the forms of a verb: see, sees, saw, seeing."""
    negative, tense = meaning.negative, meaning.tense
    if meaning.modality in ("can", "must"):
        return ("can't" if negative else meaning.modality), base
    if tense == "future":
        return ("won't" if negative else "will"), base
    if tense == "progressive":
        return be(meaning.subject, "present", negative), ing
    if meaning.modality == "want":
        base, third = f"want to {base}", f"wants to {base}"
    takes_s = be(meaning.subject, "present", negative=False) == "is"
    if negative or meaning.question not in ("", "who"):
        auxiliary = "did" if tense == "past" else "does" if takes_s else "do"
        return (f"{auxiliary}n't" if negative else auxiliary), base
    if tense == "past":
        return "", past
    return "", third if takes_s else base


def _open(meaning: Meaning, auxiliary: str, words: list[str]) -> None:
    """Subject and auxiliary; in a question first the question word, then auxiliary and subject."""
    subject = noun_phrase(meaning.subject)
    if meaning.question in ("", "who"):
        words.extend([subject, auxiliary])
    else:
        asked = _how_many(meaning) if meaning.question == "many" else _WH.get(meaning.question, "")
        words.extend([asked, auxiliary, subject])


def _how_many(meaning: Meaning) -> str:
    """The question for a number: how many red apples, how many cups of coffee."""
    assert isinstance(meaning.object, Phrase)
    noun = meaning.object.noun
    if noun.container:
        return f"how many {noun.container.en_plural} of {noun.en}"
    return "how many " + noun_phrase(Phrase(noun, adjective=meaning.object.adjective, count=PLURAL))


def _action(meaning: Meaning, words: list[str]) -> None:
    """A sentence with a full verb: the clause up to the verb, then the other parts in their order."""
    verb, place = meaning.action, meaning.place
    if meaning.request:
        words.extend(["please don't" if meaning.negative else "please", verb.en])
    else:
        auxiliary, main = _finite(meaning, verb.en, verb.en_third, verb.en_past, verb.en_ing)
        _open(meaning, auxiliary, words)
        words.extend([meaning.frequency.en if meaning.frequency else "", main])
    asked = meaning.question in ("what", "whom", "many")
    target = "" if asked or meaning.object is None else noun_phrase(meaning.object, object_form=True)
    if target and meaning.second:
        assert isinstance(meaning.object, Phrase)
        second = Phrase(meaning.second, count=meaning.object.count, kind=meaning.object.kind)
        target = f"{target} and {noun_phrase(second)}"
    parts = (
        place.en_goal if place and verb.goal else "",
        verb.en_preposition if target or asked else "",
        target,
        "to " + noun_phrase(meaning.recipient, object_form=True) if meaning.recipient else "",
        meaning.manner.en if meaning.manner else "",
        "alone" if meaning.alone else "",
        "with" if meaning.companion or meaning.question == "companion" else "",
        noun_phrase(meaning.companion, object_form=True) if meaning.companion else "",
        meaning.tool.en if meaning.tool else "",
        place.en if place and not verb.goal else "",
    )
    words.extend(parts)


def _be_sentence(meaning: Meaning, words: list[str]) -> None:
    """A sentence with be and a quality, a noun or a spot: is very red, is a doctor, is on the desk."""
    rest = ""
    if meaning.adjective:
        rest = f"{meaning.degree.en} {meaning.adjective.en}" if meaning.degree else meaning.adjective.en
    elif meaning.object:
        rest = noun_phrase(meaning.object)
    elif meaning.spot:
        rest = meaning.spot.en
    if meaning.tense == "future":
        _open(meaning, "won't" if meaning.negative else "will", words)
        words.append("be")
    else:
        _open(meaning, be(meaning.subject, meaning.tense, meaning.negative), words)
    words.append(rest)


def _existence(meaning: Meaning, words: list[str]) -> None:
    """There is a book on the desk; there is no book; is there a book; what is on the desk."""
    assert meaning.spot is not None
    past = meaning.tense == "past"
    if meaning.question == "what":
        words.extend(["what", "was" if past else "is"])
    elif meaning.question == "many":
        words.extend([_how_many(meaning), "were" if past else "are", "there"])
    else:
        assert meaning.object is not None
        verb = be(meaning.object, meaning.tense, negative=False)
        words.extend([verb, "there"] if meaning.question else ["there", verb])
        words.append(noun_phrase(meaning.object, negative=meaning.negative))
    words.append(meaning.spot.en)


def _possession(meaning: Meaning, words: list[str]) -> None:
    """A sentence with have; the question for a number names the object first."""
    assert meaning.object is not None
    auxiliary, main = _finite(meaning, "have", "has", "had", "having")
    _open(meaning, auxiliary, words)
    words.append(main)
    if meaning.question != "many":
        words.append(noun_phrase(meaning.object))


_SAY = {
    "action": _action,
    "quality": _be_sentence,
    "identity": _be_sentence,
    "existence": _existence,
    "location": _be_sentence,
    "possession": _possession,
}
