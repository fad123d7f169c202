"""German sentences: the finite verb second, the rest of the verb last, and between them the middle field.

The position before the finite verb holds the subject, a fronted time or a question word; it is empty in yes/no
questions and requests. The past tense is the Perfekt (but war and hatte for the full verbs sein and haben), the
future is formed with werden.
"""

from __future__ import annotations

from transformer_mt.phrasebook.german_forms import HABEN, HATTE, MODALS, SEIN, WAR, WERDEN, decline, noun_phrase, person
from transformer_mt.phrasebook.lexicon.entries import GermanVerb, Pronoun, Verb
from transformer_mt.phrasebook.meaning import PLURAL, Meaning, Phrase

_OPENERS = {
    "": "",
    "excuse": "Entschuldigung,",
    "sorry": "es tut mir leid, aber",
    "everyone": "meine Damen und Herren,",
}
_WH = {"what": "was", "companion": "mit wem", "where": "wo", "when": "wann", "why": "warum"}


def realise(meaning: Meaning) -> str:
    """The sentence with a capital letter and final punctuation."""
    words = [_OPENERS[meaning.opener]]
    _SAY[meaning.kind](meaning, words)
    text = " ".join(filter(None, words))
    return text[0].upper() + text[1:] + ("?" if meaning.question else ".")


def _open(meaning: Meaning, finite: str, words: list[str]) -> None:
    """Question word, time or subject, then the finite verb, then the subject if it did not come first."""
    subject = noun_phrase(meaning.subject)
    if meaning.question and meaning.question != "who":
        words.extend([_question_word(meaning), finite, subject])
    elif meaning.time and meaning.fronted:
        words.extend([meaning.time.de, finite, subject])
    else:
        words.extend([subject, finite])


def _question_word(meaning: Meaning) -> str:
    """The word a question asks with: wo, wohin, was, worauf, wen, auf wen, wie viele rote Äpfel; "" for yes/no."""
    question, verb = meaning.question, meaning.verb
    if question == "many":
        assert isinstance(meaning.object, Phrase)
        noun = meaning.object.noun
        if noun.container:
            return f"wie viele {noun.container.de.plural} {noun.de.singular}"
        return "wie viele " + noun_phrase(Phrase(noun, adjective=meaning.object.adjective, count=PLURAL), "acc")
    if verb and question == "where" and verb.goal:
        return "wohin"
    if verb and question == "what" and verb.de_preposition:
        return f"wor{verb.de_preposition}"
    if verb and question == "whom":
        if verb.de_preposition:
            return f"{verb.de_preposition} wen"
        return "wem" if verb.de_case == "dat" else "wen"
    return _WH.get(question, "")


def _action(meaning: Meaning, words: list[str]) -> None:
    """A sentence with a full verb.

    In the middle field known parts come early and new parts late; nicht comes before the part it denies.
    """
    verb, time, place = meaning.action, meaning.time, meaning.place
    if meaning.request:
        words.extend([verb.de.infinitive, "Sie", "bitte"])
        last = verb.de.prefix.strip()
    else:
        finite, last = _finite(meaning, verb.de)
        _open(meaning, finite, words)
    early, late, denied = _object(meaning, verb)
    pronoun = isinstance(meaning.object, Pronoun)
    middle = (
        early if pronoun else "",
        time.de if time and not meaning.fronted else "",
        meaning.frequency.de if meaning.frequency else "",
        noun_phrase(meaning.recipient, "dat") if meaning.recipient else "",
        "" if pronoun else early,
        "nicht" if meaning.negative and not denied else "",
        "allein" if meaning.alone else "",
        "mit " + noun_phrase(meaning.companion, "dat") if meaning.companion else "",
        meaning.tool.de if meaning.tool else "",
        (place.de_goal if verb.goal else place.de) if place else "",
        meaning.manner.de if meaning.manner else "",
        late,
        last,
    )
    words.extend(middle)


def _finite(meaning: Meaning, verb: GermanVerb) -> tuple[str, str]:
    """The finite verb, and the part of the verb at the end of the sentence: an infinitive, participle or prefix."""
    column = person(meaning.subject)
    infinitive = verb.prefix + verb.infinitive
    if meaning.modality:
        return MODALS[meaning.modality][column], infinitive
    if meaning.tense == "future":
        return WERDEN[column], infinitive
    if meaning.tense == "past":
        return (SEIN if verb.sein else HABEN)[column], verb.participle
    return (verb.ich, verb.er, verb.infinitive)[column], verb.prefix.strip()


def _object(meaning: Meaning, verb: Verb) -> tuple[str, str, bool]:
    """The object as (early part, late part, whether kein already makes the sentence negative)."""
    target = meaning.object
    if target is None or meaning.question in ("what", "whom", "many"):
        return "", "", False
    bare = isinstance(target, Phrase) and target.indefinite
    denied = bare and meaning.negative and not verb.de_preposition
    text = noun_phrase(target, verb.de_case, denied)
    if meaning.second:
        assert isinstance(target, Phrase)
        second = Phrase(meaning.second, count=target.count, kind=target.kind)
        text = f"{text} und {noun_phrase(second, verb.de_case)}"
    if verb.de_preposition:
        return "", f"{verb.de_preposition} {text}", False
    return ("", text, denied) if bare else (text, "", False)


def _be_sentence(meaning: Meaning, words: list[str]) -> None:
    """A sentence with sein and a quality, a noun or a spot: ist sehr rot, ist Ärztin, ist auf dem Tisch."""
    finite = {"past": WAR, "future": WERDEN}.get(meaning.tense, SEIN)[person(meaning.subject)]
    _open(meaning, finite, words)
    if meaning.time and not meaning.fronted:
        words.append(meaning.time.de)
    nicht, rest = meaning.negative, ""
    if meaning.adjective:
        rest = f"{meaning.degree.de} {meaning.adjective.de}" if meaning.degree else meaning.adjective.de
    elif isinstance(meaning.object, Phrase):
        rest = _predicate_noun(meaning, meaning.object)
        nicht = nicht and not meaning.object.indefinite
    elif meaning.spot:
        rest = meaning.spot.de
    words.extend(["nicht" if nicht else "", rest, "sein" if meaning.tense == "future" else ""])


def _predicate_noun(meaning: Meaning, phrase: Phrase) -> str:
    """A noun after sein. A profession has no article (sie ist Ärztin), unless an adjective or kein comes before it."""
    subject = meaning.subject
    feminine = (subject.sex if isinstance(subject, Pronoun) else subject.noun.sex) == "f"
    if "profession" not in phrase.noun.classes or phrase.adjective or meaning.negative:
        return noun_phrase(phrase, "nom", meaning.negative and phrase.indefinite, feminine)
    noun = phrase.noun.feminine if feminine and phrase.noun.feminine else phrase.noun.de
    return decline(noun, "nom", phrase.plural)


def _existence(meaning: Meaning, words: list[str]) -> None:
    """Auf dem Tisch sind zwei Bücher; sind auf dem Tisch zwei Bücher; was ist auf dem Tisch."""
    assert meaning.spot is not None
    spot = meaning.spot.de
    time = meaning.time.de if meaning.time else ""
    plural = meaning.question == "many" or (meaning.object is not None and meaning.object.plural)
    finite = (WAR if meaning.tense == "past" else SEIN)[2 if plural else 1]
    words.extend([_question_word(meaning), finite, time, spot] if meaning.question else [spot, finite, time])
    if meaning.question not in ("what", "many"):
        assert meaning.object is not None
        words.append(noun_phrase(meaning.object, "nom", meaning.negative))


def _possession(meaning: Meaning, words: list[str]) -> None:
    """A sentence with haben; the question for a number names the object first."""
    assert meaning.object is not None
    finite = (HATTE if meaning.tense == "past" else HABEN)[person(meaning.subject)]
    _open(meaning, finite, words)
    if meaning.time and not meaning.fronted:
        words.append(meaning.time.de)
    if meaning.question != "many":
        words.append(noun_phrase(meaning.object, "acc", meaning.negative))


_SAY = {
    "action": _action,
    "quality": _be_sentence,
    "identity": _be_sentence,
    "existence": _existence,
    "location": _be_sentence,
    "possession": _possession,
}
