"""Korean sentences: the verb comes last, and every part before it wears its particle.

Two levels of politeness: 해요 and, when a meaning is formal, 합니다. Negation is 안 before a verb in the first
and -지 않다 in the second; adjectives and 하다-verbs always take -지 않다.
"""

from __future__ import annotations

from functools import lru_cache

from transformer_mt.data.corpora.phrasebook.conjugation import Ending, be, conjugate, finish
from transformer_mt.data.corpora.phrasebook.hangul import particle
from transformer_mt.data.corpora.phrasebook.lexicon.beings import YOU
from transformer_mt.data.corpora.phrasebook.lexicon.entries import Noun, Pronoun, Verb
from transformer_mt.data.corpora.phrasebook.meaning import PLURAL, Meaning, Participant, Phrase

NUMERALS = ("", "한", "두", "세", "네", "다섯", "여섯", "일곱", "여덟", "아홉", "열", "열한", "열두")
_TWENTY = "스무"
_OPENERS = {"excuse": "실례지만", "sorry": "죄송하지만", "everyone": "여러분,"}
_DETERMINERS = {"the": "그", "this": "이", "that": "저", "my": "제", "our": "우리", "his": "그의", "her": "그녀의"}


def numeral(count: int) -> str:
    """The native numeral as it stands before a counter: 두, 세, 스무."""
    return _TWENTY if count == 20 else NUMERALS[count]


def realise(meaning: Meaning) -> str:
    """The sentence with its end mark."""
    words = [_OPENERS[meaning.opener]] if meaning.opener else []
    _SAY[meaning.kind](meaning, words)
    return " ".join(words) + ("?" if meaning.question else ".")


def _action(meaning: Meaning, words: list[str]) -> None:
    verb = meaning.action
    _open(meaning, words)
    if meaning.frequency:
        words.append(meaning.frequency.ko)
    _companion(meaning, words)
    if meaning.place and not verb.goal:
        words.append(meaning.place.ko + verb.place_marker)
    elif meaning.question == "where" and not verb.goal:
        words.append("어디" + verb.place_marker)
    if meaning.recipient:
        words.append(_marked(meaning.recipient, "에게", meaning.formal))
    if meaning.tool:
        words.append(meaning.tool.ko)
    if verb.goal:
        words.append((meaning.place.ko if meaning.place else "어디") + verb.place_marker)
    _object(meaning, words)
    if meaning.manner:
        words.append(meaning.manner.ko)
    words.append(_predicate(meaning, verb))


def _open(meaning: Meaning, words: list[str]) -> None:
    """Subject and time, in either order, then 언제 or 왜."""
    if meaning.time and meaning.fronted:
        words.append(meaning.time.ko)
    _subject(meaning, words)
    if meaning.time and not meaning.fronted:
        words.append(meaning.time.ko)
    if meaning.question in ("when", "why"):
        words.append("언제" if meaning.question == "when" else "왜")


def _subject(meaning: Meaning, words: list[str]) -> None:
    """은/는 for the topic of a statement or a wh-question, 이/가 in yes/no questions and after a number."""
    subject = meaning.subject
    if meaning.question == "who":
        words.append("누가")
    elif subject is not YOU and not meaning.request:
        asked = meaning.question == "yesno" and not _has_own_subject(meaning)
        new = asked or (isinstance(subject, Phrase) and subject.count > 1 and subject.indefinite)
        words.append(_marked(subject, "가" if new else "는", meaning.formal))


def _has_own_subject(meaning: Meaning) -> bool:
    """Whether another part wears 이/가: (유나 씨는) 우산이 있어요, 우산이 필요해요."""
    return meaning.kind == "possession" or (meaning.verb is not None and meaning.verb.ko_marker == "가")


def _companion(meaning: Meaning, words: list[str]) -> None:
    if meaning.alone:
        words.append("혼자")
    elif meaning.question == "companion":
        words.append("누구와 함께")
    elif meaning.companion:
        words.append(_marked(meaning.companion, "와", meaning.formal) + " 함께")


def _object(meaning: Meaning, words: list[str]) -> None:
    marker = meaning.action.ko_marker
    if meaning.question == "what":
        words.append(particle("무엇", marker))
    elif meaning.question == "whom":
        words.append(particle("누구", marker))
    elif meaning.object is None:
        return
    elif meaning.question == "many":
        assert isinstance(meaning.object, Phrase)
        words.append(f"{particle(_named(meaning.object, meaning.formal), marker)} 몇 {meaning.object.noun.counter}")
    elif meaning.second:
        assert isinstance(meaning.object, Phrase)
        words.append(f"{particle(meaning.object.noun.ko, '와')} {particle(meaning.second.ko, marker)}")
    else:
        words.append(_marked(meaning.object, marker, meaning.formal))


@lru_cache(maxsize=1 << 15)
def _marked(participant: Participant, marker: str, formal: bool) -> str:
    """A participant with its particle: 제가, 저희는, 빨간 사과 두 개를."""
    if isinstance(participant, Pronoun):
        if marker == "가" and not (formal and participant.plural and participant.person == 1):
            return participant.ko_subject
        return particle(participant.ko_formal if formal else participant.ko, marker)
    return particle(_counted(participant, formal), marker)


def _counted(phrase: Phrase, formal: bool) -> str:
    if phrase.count == PLURAL and not phrase.kind and not phrase.noun.mass:
        return _named(phrase, formal) + "들"
    if phrase.count > 1 or (phrase.noun.mass and phrase.count == 1):
        return f"{_named(phrase, formal)} {numeral(phrase.count)} {phrase.noun.counter}"
    return _named(phrase, formal)


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


def _predicate(meaning: Meaning, verb: Verb) -> str:
    ending = Ending(
        "present" if meaning.tense == "progressive" else meaning.tense, meaning.formal, bool(meaning.question)
    )
    mode = "request" if meaning.request else "progressive" if meaning.tense == "progressive" else meaning.modality
    return _verb_phrase(verb, mode, meaning.negative, ending)


@lru_cache(maxsize=1 << 15)
def _verb_phrase(verb: Verb, mode: str, negative: bool, ending: Ending) -> str:
    head = verb.ko_head + " " if verb.ko_head else ""
    if not mode and negative:
        return _negated(verb, head, ending)
    forms = conjugate(verb.ko, verb.kind)
    if mode == "request":
        return head + _request(verb, negative, ending.formal)
    if mode == "progressive":
        return (
            head
            + f"{forms.stem}고 "
            + ("있지 " + finish("않다", "", ending) if negative else finish("있다", "", ending))
        )
    if mode == "want":
        return (
            head
            + f"{forms.stem}고 "
            + ("싶지 " + finish("않다", "", ending) if negative else finish("싶다", "", ending))
        )
    if mode == "can":
        return head + f"{forms.prospective} 수 " + finish("없다" if negative else "있다", "", ending)
    if mode == "must":
        return head + f"{forms.infinitive}야 " + finish("하다", "", ending)
    return head + finish(verb.ko, verb.kind, ending)


def _negated(verb: Verb, head: str, ending: Ending) -> str:
    if verb.opposite[0]:
        return head + finish(*verb.opposite, ending)
    if ending.formal or verb.ko.endswith("하다"):
        return f"{head}{verb.ko[:-1]}지 {finish('않다', '', ending)}"
    return f"{head}안 {finish(verb.ko, verb.kind, ending)}"


def _request(verb: Verb, negative: bool, formal: bool) -> str:
    if negative:
        return f"{verb.ko[:-1]}지 " + ("마십시오" if formal else "마세요")
    forms = conjugate(verb.ko, verb.kind)
    return forms.formal_request if formal else forms.honorific


def _quality(meaning: Meaning, words: list[str]) -> None:
    adjective = meaning.adjective
    assert adjective is not None
    _open(meaning, words)
    if meaning.degree:
        words.append(meaning.degree.ko)
    ending = Ending(meaning.tense, meaning.formal, bool(meaning.question))
    if meaning.negative:
        words.append(f"{adjective.ko[:-1]}지 {finish('않다', '', ending)}")
    else:
        words.append(finish(adjective.ko, adjective.kind, ending))


def _identity(meaning: Meaning, words: list[str]) -> None:
    _open(meaning, words)
    ending = Ending(meaning.tense, meaning.formal, bool(meaning.question))
    if meaning.question == "what":
        words.append(be("무엇", ending, negative=False))
        return
    assert isinstance(meaning.object, Phrase)
    words.append(be(_named(meaning.object, meaning.formal), ending, meaning.negative))


def _existence(meaning: Meaning, words: list[str]) -> None:
    """책상 위에 책이 두 권 있어요: the thing is the object of the meaning, whatever the grammar calls it."""
    assert meaning.spot is not None
    if meaning.time:
        words.append(meaning.time.ko)
    words.append(meaning.spot.ko)
    _have(meaning, words)


def _location(meaning: Meaning, words: list[str]) -> None:
    _open(meaning, words)
    words.append("어디에" if meaning.question == "where" else meaning.spot.ko if meaning.spot else "")
    words.append(_exist(meaning))


def _possession(meaning: Meaning, words: list[str]) -> None:
    _open(meaning, words)
    _have(meaning, words)


def _have(meaning: Meaning, words: list[str]) -> None:
    """What there is, with 이/가, its number after it, and 있다 or 없다."""
    if meaning.question == "what":
        words.append("무엇이")
    else:
        assert isinstance(meaning.object, Phrase)
        words.append(particle(_named(meaning.object, meaning.formal), "가"))
        words.extend(_number(meaning.object, meaning.question == "many"))
    words.append(_exist(meaning))


def _number(phrase: Phrase, asked: bool) -> list[str]:
    noun: Noun = phrase.noun
    if asked:
        return ["몇", noun.counter]
    counted = phrase.count > 1 or (noun.mass and phrase.count == 1)
    return [numeral(phrase.count), noun.counter] if counted else []


def _exist(meaning: Meaning) -> str:
    ending = Ending(meaning.tense, meaning.formal, bool(meaning.question))
    return finish("없다" if meaning.negative else "있다", "", ending)


_SAY = {
    "action": _action,
    "quality": _quality,
    "identity": _identity,
    "existence": _existence,
    "location": _location,
    "possession": _possession,
}
