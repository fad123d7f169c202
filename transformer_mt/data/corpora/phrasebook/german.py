"""German sentences: the finite verb second, the rest of the verb last, and the field between in its order.

The Vorfeld holds the subject, a fronted time or a question word; yes/no questions and requests leave it
empty. The past is the Perfekt (sein and haben as full verbs: war, hatte), the future werden.
"""

from __future__ import annotations

from transformer_mt.data.corpora.phrasebook.german_forms import (
    HABEN,
    HATTE,
    MODALS,
    SEIN,
    WAR,
    WERDEN,
    adjective_ending,
    decline,
    noun_phrase,
    person,
    present,
)
from transformer_mt.data.corpora.phrasebook.lexicon.entries import GermanVerb, Noun, Pronoun, Verb
from transformer_mt.data.corpora.phrasebook.meaning import Meaning, Participant, Phrase

_OPENERS = {"excuse": "Entschuldigung,", "sorry": "es tut mir leid, aber", "everyone": "meine Damen und Herren,"}
_WH = {"where": "wo", "when": "wann", "why": "warum"}


def realise(meaning: Meaning) -> str:
    """The sentence with capital and end mark."""
    words = [_OPENERS[meaning.opener]] if meaning.opener else []
    _SAY[meaning.kind](meaning, words)
    text = " ".join(word for word in words if word)
    return text[0].upper() + text[1:] + ("?" if meaning.question else ".")


def _finite(meaning: Meaning, verb: GermanVerb) -> tuple[str, str]:
    """The finite verb and what stands at the end of the sentence."""
    column = 1 if meaning.question == "who" else person(meaning.subject)
    infinitive = join_prefix(verb)
    if meaning.modality:
        return MODALS[meaning.modality][column], infinitive
    if meaning.tense == "future":
        return WERDEN[column], infinitive
    if meaning.tense == "past":
        return (SEIN if verb.sein else HABEN)[column], verb.participle
    return present(verb, column), verb.prefix.strip()


def join_prefix(verb: GermanVerb) -> str:
    """The infinitive in one piece: aufstehen, spazieren gehen."""
    return verb.prefix + verb.infinitive


def _action(meaning: Meaning, words: list[str]) -> None:
    verb = meaning.action
    if meaning.request:
        words.extend([verb.de.infinitive, "Sie", "bitte"])
        tail = verb.de.prefix.strip()
    else:
        finite, tail = _finite(meaning, verb.de)
        _open(meaning, words, finite, _question_word(meaning, verb))
    _middle(meaning, verb, words)
    words.append(tail)


def _open(meaning: Meaning, words: list[str], finite: str, question_word: str) -> None:
    """Vorfeld, finite verb, and the subject where it does not stand first."""
    subject = noun_phrase(meaning.subject)
    if meaning.question == "who":
        words.extend(["wer", finite])
    elif meaning.question:
        words.extend([question_word, finite, subject])
    elif meaning.fronted and meaning.time:
        words.extend([meaning.time.de, finite, subject])
    else:
        words.extend([subject, finite])


def _question_word(meaning: Meaning, verb: Verb) -> str:
    question = meaning.question
    if question in ("what", "whom"):
        return _asked_object(verb, question)
    if question == "many":
        assert isinstance(meaning.object, Phrase)
        return "wie viele " + _many(meaning.object)
    if question == "companion":
        return "mit wem"
    if question == "where" and verb.goal:
        return "wohin"
    return _WH.get(question, "")


def _asked_object(verb: Verb, question: str) -> str:
    """was, wen, wem, auf wen, worauf."""
    if verb.de_preposition:
        return f"{verb.de_preposition} wen" if question == "whom" else f"wor{verb.de_preposition}"
    if question == "what":
        return "was"
    return "wem" if verb.de_case == "dat" else "wen"


def _many(phrase: Phrase) -> str:
    """What "wie viele" asks for: rote Äpfel, Tassen Kaffee."""
    noun: Noun = phrase.noun
    if noun.container:
        return f"{noun.container.de.plural} {noun.de.singular}"
    if phrase.adjective:
        return phrase.adjective.de_stem + adjective_ending("bare", "pl", "acc", article=False) + " " + noun.de.plural
    return decline(noun.de, "acc", plural=True)


def _middle(meaning: Meaning, verb: Verb, words: list[str]) -> None:
    """The middle field: what is known stands early, what is new late; nicht before what it denies."""
    early, late, no_article = _object(meaning, verb)
    pronoun = isinstance(meaning.object, Pronoun) and not verb.de_preposition
    if pronoun:
        words.append(early)
    if meaning.time and not meaning.fronted:
        words.append(meaning.time.de)
    if meaning.frequency:
        words.append(meaning.frequency.de)
    if meaning.recipient:
        words.append(noun_phrase(meaning.recipient, "dat"))
    if not pronoun:
        words.append(early)
    if meaning.negative and not no_article:
        words.append("nicht")
    _circumstances(meaning, verb, words)
    words.append(late)


def _object(meaning: Meaning, verb: Verb) -> tuple[str, str, bool]:
    """The object as an early word or as a late one, and whether kein has denied the sentence."""
    target = meaning.object
    if target is None or meaning.question in ("what", "whom", "many"):
        return "", "", False
    bare = isinstance(target, Phrase) and target.indefinite
    denied = bare and meaning.negative and not verb.de_preposition
    text = noun_phrase(target, verb.de_case, denied)
    if meaning.second:
        text += " und " + _second(target, meaning.second, verb)
    if verb.de_preposition:
        return "", f"{verb.de_preposition} {text}", False
    return ("", text, denied) if bare else (text, "", False)


def _second(first: Participant, noun: Noun, verb: Verb) -> str:
    assert isinstance(first, Phrase)
    return noun_phrase(Phrase(noun, count=first.count, kind=first.kind), verb.de_case)


def _circumstances(meaning: Meaning, verb: Verb, words: list[str]) -> None:
    """Company, tool, place and manner, in this order."""
    if meaning.alone:
        words.append("allein")
    if meaning.companion:
        words.append("mit " + noun_phrase(meaning.companion, "dat"))
    if meaning.tool:
        words.append(meaning.tool.de)
    if meaning.place:
        words.append(meaning.place.de_goal if verb.goal else meaning.place.de)
    if meaning.manner:
        words.append(meaning.manner.de)


def _be_clause(meaning: Meaning, words: list[str], rest: str, nicht: bool) -> None:
    """A sentence with sein."""
    column = 1 if meaning.question == "who" else person(meaning.subject)
    tenses = {"past": WAR, "future": WERDEN}
    finite = tenses.get(meaning.tense, SEIN)[column]
    _open(meaning, words, finite, _WH.get(meaning.question, ""))
    if meaning.time and not meaning.fronted:
        words.append(meaning.time.de)
    words.append("nicht" if nicht else "")
    words.append(rest)
    words.append("sein" if meaning.tense == "future" else "")


def _quality(meaning: Meaning, words: list[str]) -> None:
    assert meaning.adjective is not None
    degree = meaning.degree.de + " " if meaning.degree else ""
    _be_clause(meaning, words, degree + meaning.adjective.de, meaning.negative)


def _identity(meaning: Meaning, words: list[str]) -> None:
    if meaning.question == "what":
        words.extend(["was", "war" if meaning.tense == "past" else "ist", noun_phrase(meaning.subject)])
        return
    owned = isinstance(meaning.object, Phrase) and not meaning.object.indefinite
    _be_clause(meaning, words, _predicate_noun(meaning), nicht=meaning.negative and owned)


def _predicate_noun(meaning: Meaning) -> str:
    """A profession has no article (sie ist Ärztin), unless an adjective or kein comes before it."""
    phrase = meaning.object
    assert isinstance(phrase, Phrase)
    feminine = _sex(meaning.subject) == "f"
    if "profession" not in phrase.noun.classes or phrase.adjective or meaning.negative:
        return noun_phrase(phrase, "nom", meaning.negative and phrase.indefinite, feminine)
    noun = phrase.noun.feminine if feminine and phrase.noun.feminine else phrase.noun.de
    return decline(noun, "nom", phrase.plural)


def _sex(subject: Participant) -> str:
    return subject.sex if isinstance(subject, Pronoun) else subject.noun.sex


def _existence(meaning: Meaning, words: list[str]) -> None:
    """Auf dem Tisch sind zwei Bücher."""
    assert meaning.spot is not None
    spot, time = meaning.spot.de, meaning.time.de if meaning.time else ""
    plural = isinstance(meaning.object, Phrase) and (meaning.object.plural or meaning.question == "many")
    finite = (WAR if meaning.tense == "past" else SEIN)[2 if plural and meaning.question != "what" else 1]
    if meaning.question == "what":
        words.extend(["was", finite, time, spot])
        return
    assert isinstance(meaning.object, Phrase)
    if meaning.question == "many":
        words.extend(["wie viele", _many(meaning.object), finite, time, spot])
        return
    thing = noun_phrase(meaning.object, "nom", meaning.negative)
    words.extend([finite, time, spot, thing] if meaning.question else [spot, finite, time, thing])


def _location(meaning: Meaning, words: list[str]) -> None:
    _be_clause(meaning, words, meaning.spot.de if meaning.spot else "", meaning.negative)


def _possession(meaning: Meaning, words: list[str]) -> None:
    assert isinstance(meaning.object, Phrase)
    finite = (HATTE if meaning.tense == "past" else HABEN)[person(meaning.subject)]
    many = "wie viele " + _many(meaning.object) if meaning.question == "many" else ""
    _open(meaning, words, finite, many)
    if meaning.time and not meaning.fronted:
        words.append(meaning.time.de)
    if not many:
        words.append(noun_phrase(meaning.object, "acc", meaning.negative))


_SAY = {
    "action": _action,
    "quality": _quality,
    "identity": _identity,
    "existence": _existence,
    "location": _location,
    "possession": _possession,
}
