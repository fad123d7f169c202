"""People, animals, names and pronouns."""

from __future__ import annotations

from dataclasses import replace

from transformer_mt.phrasebook.lexicon.entries import GermanNoun, Noun, Pronoun, german_noun
from transformer_mt.phrasebook.lexicon.nouns import thing


def _person(ko: str, en: str, de: str, classes: str = "", plural: str = "", sex: str = "") -> Noun:
    return replace(thing(ko, en, de, f"person {classes}", "명", plural), sex=sex)


def _profession(ko: str, en: str, de: str, feminine: str) -> Noun:
    return replace(_person(ko, en, de, "profession"), feminine=german_noun(feminine))


def _kin(ko: str, en: str, de: str, sex: str, classes: str = "") -> Noun:
    counted = thing(ko, en, de, f"kin {classes}", "명" if classes else "")
    return replace(counted, sex=sex)


def _animal(ko: str, en: str, de: str, classes: str, plural: str = "") -> Noun:
    return thing(ko, en, de, f"animal {classes}", "마리", plural)


def _name(ko: str, name: str, sex: str) -> Noun:
    german = GermanNoun(name, sex, "", name)
    return Noun(f"{ko} 씨", name, "", german, frozenset({"name"}), sex=sex, name=True)


PROFESSIONS = (
    _profession("학생", "student", "der Student, Studenten, Studenten", "die Studentin, Studentinnen"),
    _profession("교사", "teacher", "der Lehrer, Lehrer", "die Lehrerin, Lehrerinnen"),
    _profession("의사", "doctor", "der Arzt, Ärzte", "die Ärztin, Ärztinnen"),
    _profession("간호사", "nurse", "der Krankenpfleger, Krankenpfleger", "die Krankenpflegerin, Krankenpflegerinnen"),
    _profession("경찰관", "police officer", "der Polizist, Polizisten, Polizisten", "die Polizistin, Polizistinnen"),
    _profession("요리사", "cook", "der Koch, Köche", "die Köchin, Köchinnen"),
    _profession("가수", "singer", "der Sänger, Sänger", "die Sängerin, Sängerinnen"),
    _profession("배우", "actor", "der Schauspieler, Schauspieler", "die Schauspielerin, Schauspielerinnen"),
    _profession("화가", "painter", "der Maler, Maler", "die Malerin, Malerinnen"),
    _profession("작가", "writer", "der Schriftsteller, Schriftsteller", "die Schriftstellerin, Schriftstellerinnen"),
    _profession("기자", "reporter", "der Reporter, Reporter", "die Reporterin, Reporterinnen"),
    _profession("변호사", "lawyer", "der Anwalt, Anwälte", "die Anwältin, Anwältinnen"),
    _profession("농부", "farmer", "der Bauer, Bauern, Bauern", "die Bäuerin, Bäuerinnen"),
    _profession("군인", "soldier", "der Soldat, Soldaten, Soldaten", "die Soldatin, Soldatinnen"),
    _profession(
        "과학자", "scientist", "der Wissenschaftler, Wissenschaftler", "die Wissenschaftlerin, Wissenschaftlerinnen"
    ),
    _profession("음악가", "musician", "der Musiker, Musiker", "die Musikerin, Musikerinnen"),
)

PEOPLE = (
    *PROFESSIONS,
    _person("친구", "friend", "der Freund, Freunde", "close"),
    _person("동료", "colleague", "der Kollege, Kollegen, Kollegen", "close"),
    _person("이웃", "neighbor", "der Nachbar, Nachbarn, Nachbarn", "close"),
    _person("관광객", "tourist", "der Tourist, Touristen, Touristen"),
    _person("아이", "child", "das Kind, Kinder", "young", plural="children"),
    _person("아기", "baby", "das Baby, Babys", "young"),
    _person("남자", "man", "der Mann, Männer", plural="men", sex="m"),
    _person("여자", "woman", "die Frau, Frauen", plural="women", sex="f"),
    _person("소년", "boy", "der Junge, Jungen, Jungen", "young", sex="m"),
    _person("소녀", "girl", "das Mädchen, Mädchen", "young", sex="f"),
)

KIN = (
    _kin("어머니", "mother", "die Mutter, Mütter", "f"),
    _kin("아버지", "father", "der Vater, Väter", "m"),
    _kin("삼촌", "uncle", "der Onkel, Onkel", "m"),
    _kin("이모", "aunt", "die Tante, Tanten", "f"),
    _kin("남편", "husband", "der Ehemann, Ehemänner", "m"),
    _kin("아내", "wife", "die Ehefrau, Ehefrauen", "f"),
    _kin("남동생", "brother", "der Bruder, Brüder", "m", "sibling"),
    _kin("여동생", "sister", "die Schwester, Schwestern", "f", "sibling"),
    _kin("아들", "son", "der Sohn, Söhne", "m", "sibling"),
    _kin("딸", "daughter", "die Tochter, Töchter", "f", "sibling"),
)

ANIMALS = (
    _animal("개", "dog", "der Hund, Hunde", "pet"),
    _animal("고양이", "cat", "die Katze, Katzen", "pet"),
    _animal("토끼", "rabbit", "der Hase, Hasen, Hasen", "pet"),
    _animal("새", "bird", "der Vogel, Vögel", "pet small"),
    _animal("말", "horse", "das Pferd, Pferde", "farm"),
    _animal("소", "cow", "die Kuh, Kühe", "farm"),
    _animal("돼지", "pig", "das Schwein, Schweine", "farm"),
    _animal("닭", "chicken", "das Huhn, Hühner", "farm"),
    _animal("양", "sheep", "das Schaf, Schafe", "farm", plural="sheep"),
    _animal("거위", "goose", "die Gans, Gänse", "farm", plural="geese"),
    _animal("곰", "bear", "der Bär, Bären, Bären", "wild"),
    _animal("사자", "lion", "der Löwe, Löwen, Löwen", "wild"),
    _animal("호랑이", "tiger", "der Tiger, Tiger", "wild"),
    _animal("원숭이", "monkey", "der Affe, Affen, Affen", "wild"),
    _animal("코끼리", "elephant", "der Elefant, Elefanten, Elefanten", "wild"),
    _animal("쥐", "mouse", "die Maus, Mäuse", "small", plural="mice"),
    _animal("물고기", "fish", "der Fisch, Fische", "small", plural="fish"),
    _animal("나비", "butterfly", "der Schmetterling, Schmetterlinge", "small"),
)

NAMES = (
    _name("민수", "Minsu", "m"),
    _name("지훈", "Jihun", "m"),
    _name("토마스", "Thomas", "m"),
    _name("다니엘", "Daniel", "m"),
    _name("수진", "Sujin", "f"),
    _name("유나", "Yuna", "f"),
    _name("안나", "Anna", "f"),
    _name("율리아", "Julia", "f"),
)

I = Pronoun("저", "제가", "저", "I", "me", ("ich", "mich", "mir"), 1, False, "m")  # noqa: E741
WE = Pronoun("우리", "우리가", "저희", "we", "us", ("wir", "uns", "uns"), 1, True, "m")
# Korean omits "you"
YOU = Pronoun("", "", "", "you", "you", ("Sie", "Sie", "Ihnen"), 2, True)
HE = Pronoun("그", "그가", "그", "he", "him", ("er", "ihn", "ihm"), 3, False, "m")
SHE = Pronoun("그녀", "그녀가", "그녀", "she", "her", ("sie", "sie", "ihr"), 3, False, "f")
THEY = Pronoun("그들", "그들이", "그들", "they", "them", ("sie", "sie", "ihnen"), 3, True, "m")
WHO = Pronoun("누구", "누가", "누구", "who", "who", ("wer", "wen", "wem"), 3, False)
THIS = Pronoun("이것", "이것이", "이것", "this", "this", ("das hier", "das hier", "dem hier"), 3, False)
THAT = Pronoun("저것", "저것이", "저것", "that", "that", ("das dort", "das dort", "dem dort"), 3, False)
