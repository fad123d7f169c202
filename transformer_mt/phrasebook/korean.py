"""Korean sentences: the verb comes last, and every part before it carries its particle.

There are two levels of politeness: 해요, and 합니다 if the meaning is formal. A negative verb has 안 before it in
해요 and -지 않다 in 합니다; adjectives and 하다-verbs always take -지 않다.
"""

from __future__ import annotations

from functools import lru_cache

from transformer_mt.phrasebook.conjugation import Ending, be, conjugate, finish
from transformer_mt.phrasebook.hangul import particle
from transformer_mt.phrasebook.lexicon.beings import YOU
from transformer_mt.phrasebook.lexicon.entries import Pronoun, Verb
from transformer_mt.phrasebook.meaning import PLURAL, Meaning, Participant, Phrase

# native numerals in their form before a counter
_ONE_TO_TWELVE = ("한", "두", "세", "네", "다섯", "여섯", "일곱", "여덟", "아홉", "열", "열한", "열두")
NUMERALS = {**dict(enumerate(_ONE_TO_TWELVE, start=1)), 20: "스무"}
_OPENERS = {"": "", "excuse": "실례지만", "sorry": "죄송하지만", "everyone": "여러분,"}
_DETERMINERS = {"the": "그", "this": "이", "that": "저", "my": "제", "our": "우리", "his": "그의", "her": "그녀의"}
_WH = {"when": "언제", "why": "왜", "what": "무엇", "whom": "누구"}


def realise(meaning: Meaning) -> str:
    """The sentence with its final punctuation."""
    words = [_OPENERS[meaning.opener]]
    ending = Ending(meaning.tense, meaning.formal, bool(meaning.question))
    _SAY[meaning.kind](meaning, ending, words)
    return " ".join(filter(None, words)) + ("?" if meaning.question else ".")


def _open(meaning: Meaning, words: list[str]) -> None:
    """Subject and time, in either order, then 언제 or 왜.

    The subject takes 은/는 as a topic, 이/가 in a yes/no question and after a number. It keeps 은/는 if another part
    takes 이/가: (유나 씨는) 우산이 있어요, 우산이 필요해요.
    """
    subject, verb = meaning.subject, meaning.verb
    time = meaning.time.ko if meaning.time else ""
    if meaning.question == "who":
        first = "누가"
    elif subject is YOU or meaning.request:
        first = ""
    else:
        other = meaning.kind == "possession" or (verb is not None and verb.ko_marker == "가")
        counted = isinstance(subject, Phrase) and subject.count > 1 and subject.indefinite
        new = counted or (meaning.question == "yesno" and not other)
        first = _marked(subject, "가" if new else "는", meaning.formal)
    words.extend([time, first] if meaning.fronted else [first, time])
    if meaning.question in ("when", "why"):
        words.append(_WH[meaning.question])


def _action(meaning: Meaning, ending: Ending, words: list[str]) -> None:
    """A sentence with a full verb: all parts in their order, the verb last."""
    verb, formal = meaning.action, meaning.formal
    place = ""
    if meaning.place or meaning.question == "where":
        place = (meaning.place.ko if meaning.place else "어디") + verb.place_marker
    mode = meaning.modality
    if meaning.request:
        mode = "request"
    elif meaning.tense == "progressive":
        mode, ending = "progressive", Ending("present", formal, ending.question)
    _open(meaning, words)
    parts = (
        meaning.frequency.ko if meaning.frequency else "",
        "혼자" if meaning.alone else "",
        "누구와 함께" if meaning.question == "companion" else "",
        _marked(meaning.companion, "와", formal) + " 함께" if meaning.companion else "",
        "" if verb.goal else place,
        _marked(meaning.recipient, "에게", formal) if meaning.recipient else "",
        meaning.tool.ko if meaning.tool else "",
        place if verb.goal else "",
        _object(meaning, verb.ko_marker),
        meaning.manner.ko if meaning.manner else "",
        _verb_phrase(verb, mode, meaning.negative, ending),
    )
    words.extend(parts)


def _object(meaning: Meaning, marker: str) -> str:
    """The object with its particle: 무엇을, 누구를, 책을 몇 권, 사과와 배를, 이 책을; "" if there is none."""
    target = meaning.object
    if meaning.question in ("what", "whom"):
        return particle(_WH[meaning.question], marker)
    if isinstance(target, Phrase) and meaning.question == "many":
        return f"{particle(_named(target, meaning.formal), marker)} 몇 {target.noun.counter}"
    if isinstance(target, Phrase) and meaning.second:
        return f"{particle(target.noun.ko, '와')} {particle(meaning.second.ko, marker)}"
    return _marked(target, marker, meaning.formal) if target else ""


@lru_cache(maxsize=1 << 15)
def _marked(participant: Participant, marker: str, formal: bool) -> str:
    """A participant with its particle: 제가, 저희는, 빨간 사과 두 개를."""
    if isinstance(participant, Pronoun):
        if marker == "가" and not (formal and participant.plural and participant.person == 1):
            return participant.ko_subject
        return particle(participant.ko_formal if formal else participant.ko, marker)
    named, number = _named(participant, formal), _number(participant)
    if number:
        named = f"{named} {number}"
    elif participant.count == PLURAL and not participant.kind and not participant.noun.mass:
        named += "들"
    return particle(named, marker)


def _number(phrase: Phrase) -> str:
    """The number with its counter: 두 개, 한 잔; "" if the phrase says no number."""
    if phrase.count > 1 or (phrase.noun.mass and phrase.count == 1):
        return f"{NUMERALS[phrase.count]} {phrase.noun.counter}"
    return ""


def _named(phrase: Phrase, formal: bool) -> str:
    """Determiner, adjective and noun: 이 빨간 사과."""
    words = []
    if phrase.determiner == "our" and formal:
        words.append("저희")
    elif phrase.determiner != "bare":
        words.append(_DETERMINERS[phrase.determiner])
    if phrase.adjective:
        words.append(conjugate(phrase.adjective.ko, phrase.adjective.kind).adnominal)
    return " ".join([*words, phrase.noun.ko])


@lru_cache(maxsize=1 << 15)
def _verb_phrase(verb: Verb, mode: str, negative: bool, ending: Ending) -> str:
    """The verb at the end of a sentence, with its head. mode: request, progressive, want, can, must, or "" for none."""
    forms, stem = conjugate(verb.ko, verb.kind), verb.ko[:-1]
    if mode == "request" and negative:
        last = f"{stem}지 " + ("마십시오" if ending.formal else "마세요")
    elif mode == "request":
        last = forms.formal_request if ending.formal else forms.honorific
    elif mode in ("progressive", "want"):
        auxiliary = "있" if mode == "progressive" else "싶"
        finite = f"{auxiliary}지 " + finish("않다", "", ending) if negative else finish(f"{auxiliary}다", "", ending)
        last = f"{stem}고 {finite}"
    elif mode == "can":
        last = f"{forms.prospective} 수 " + finish("없다" if negative else "있다", "", ending)
    elif mode == "must":
        last = f"{forms.infinitive}야 " + finish("하다", "", ending)
    elif not negative:
        last = finish(verb.ko, verb.kind, ending)
    elif verb.opposite[0]:
        last = finish(*verb.opposite, ending)
    elif ending.formal or verb.ko.endswith("하다"):
        last = f"{stem}지 " + finish("않다", "", ending)
    else:
        last = "안 " + finish(verb.ko, verb.kind, ending)
    return f"{verb.ko_head} {last}" if verb.ko_head else last


def _quality(meaning: Meaning, ending: Ending, words: list[str]) -> None:
    """A sentence with an adjective at the end: 이 사과는 아주 커요, 크지 않아요."""
    adjective = meaning.adjective
    assert adjective is not None
    _open(meaning, words)
    if meaning.degree:
        words.append(meaning.degree.ko)
    if meaning.negative:
        words.append(f"{adjective.ko[:-1]}지 {finish('않다', '', ending)}")
    else:
        words.append(finish(adjective.ko, adjective.kind, ending))


def _identity(meaning: Meaning, ending: Ending, words: list[str]) -> None:
    """A sentence with 이다: 이것은 무엇이에요, 저는 의사가 아니에요."""
    _open(meaning, words)
    if meaning.question == "what":
        words.append(be(_WH["what"], ending, negative=False))
    else:
        assert isinstance(meaning.object, Phrase)
        words.append(be(_named(meaning.object, meaning.formal), ending, meaning.negative))


def _exist(meaning: Meaning, ending: Ending, words: list[str]) -> None:
    """A sentence with 있다 or 없다: existence (책상 위에 책이 두 권 있어요), location and possession.

    A thing that exists or belongs to somebody is the object of the meaning, and takes 이/가.
    """
    if meaning.kind == "existence":
        words.append(meaning.time.ko if meaning.time else "")
    else:
        _open(meaning, words)
    if meaning.question == "where":
        words.append("어디에")
    elif meaning.spot:
        words.append(meaning.spot.ko)
    thing = meaning.object
    if isinstance(thing, Phrase):
        words.append(particle(_named(thing, meaning.formal), "가"))
        words.append(f"몇 {thing.noun.counter}" if meaning.question == "many" else _number(thing))
    elif meaning.question == "what":
        words.append(particle(_WH["what"], "가"))
    words.append(finish("없다" if meaning.negative else "있다", "", ending))


_SAY = {
    "action": _action,
    "quality": _quality,
    "identity": _identity,
    "existence": _exist,
    "location": _exist,
    "possession": _exist,
}
