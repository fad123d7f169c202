"""Korean particles, conjugation and counters against textbook forms."""

from __future__ import annotations

import pytest

from tests.data.phrasebook_words import ADJECTIVES, NOUNS, VERBS
from transformer_mt.phrasebook import hangul, korean, pools
from transformer_mt.phrasebook.conjugation import Ending, be, conjugate, finish
from transformer_mt.phrasebook.lexicon import adverbs
from transformer_mt.phrasebook.lexicon.beings import WE, YOU, I
from transformer_mt.phrasebook.meaning import PLURAL, Meaning, Phrase


def test_a_syllable_is_its_letters():
    assert hangul.split("한") == ("ㅎ", "ㅏ", "ㄴ")
    assert hangul.split("가") == ("ㄱ", "ㅏ", "")
    for code in range(0xAC00, 0xD7A4):
        assert hangul.join(*hangul.split(chr(code))) == chr(code)


@pytest.mark.parametrize(
    ("word", "marker", "expected"),
    [
        ("사과", "는", "사과는"),
        ("책", "는", "책은"),
        ("사과", "가", "사과가"),
        ("물", "가", "물이"),
        ("커피", "를", "커피를"),
        ("빵", "를", "빵을"),
        ("친구", "와", "친구와"),
        ("학생", "와", "학생과"),
        ("버스", "로", "버스로"),
        ("지하철", "로", "지하철로"),
        ("젓가락", "로", "젓가락으로"),
        ("학생", "에게", "학생에게"),
        ("집", "에서", "집에서"),
    ],
)
def test_particles_follow_vowel_or_consonant(word, marker, expected):
    assert hangul.particle(word, marker) == expected


# citation, class: 해요 present, past, formal present, future, honorific request
CONJUGATION = [
    ("가다", "", "가요 갔어요 갑니다 갈 가세요"),
    ("서다", "", "서요 섰어요 섭니다 설 서세요"),
    ("마시다", "", "마셔요 마셨어요 마십니다 마실 마시세요"),
    ("보다", "", "봐요 봤어요 봅니다 볼 보세요"),
    ("오다", "", "와요 왔어요 옵니다 올 오세요"),
    ("배우다", "", "배워요 배웠어요 배웁니다 배울 배우세요"),
    ("주다", "", "줘요 줬어요 줍니다 줄 주세요"),
    ("보내다", "", "보내요 보냈어요 보냅니다 보낼 보내세요"),
    ("켜다", "", "켜요 켰어요 켭니다 켤 켜세요"),
    ("뛰다", "", "뛰어요 뛰었어요 뜁니다 뛸 뛰세요"),
    ("쉬다", "", "쉬어요 쉬었어요 쉽니다 쉴 쉬세요"),
    ("되다", "", "돼요 됐어요 됩니다 될 되세요"),
    ("하다", "", "해요 했어요 합니다 할 하세요"),
    ("공부하다", "", "공부해요 공부했어요 공부합니다 공부할 공부하세요"),
    ("먹다", "", "먹어요 먹었어요 먹습니다 먹을 먹으세요"),
    ("받다", "", "받아요 받았어요 받습니다 받을 받으세요"),
    ("잡다", "", "잡아요 잡았어요 잡습니다 잡을 잡으세요"),
    ("씻다", "", "씻어요 씻었어요 씻습니다 씻을 씻으세요"),
    ("앉다", "", "앉아요 앉았어요 앉습니다 앉을 앉으세요"),
    ("있다", "", "있어요 있었어요 있습니다 있을 있으세요"),
    ("없다", "", "없어요 없었어요 없습니다 없을 없으세요"),
    ("굽다", "ㅂ", "구워요 구웠어요 굽습니다 구울 구우세요"),
    ("돕다", "ㅂ", "도와요 도왔어요 돕습니다 도울 도우세요"),
    ("춥다", "ㅂ", "추워요 추웠어요 춥습니다 추울 추우세요"),
    ("아름답다", "ㅂ", "아름다워요 아름다웠어요 아름답습니다 아름다울 아름다우세요"),
    ("듣다", "ㄷ", "들어요 들었어요 듣습니다 들을 들으세요"),
    ("걷다", "ㄷ", "걸어요 걸었어요 걷습니다 걸을 걸으세요"),
    ("짓다", "ㅅ", "지어요 지었어요 짓습니다 지을 지으세요"),
    ("낫다", "ㅅ", "나아요 나았어요 낫습니다 나을 나으세요"),
    ("부르다", "르", "불러요 불렀어요 부릅니다 부를 부르세요"),
    ("고르다", "르", "골라요 골랐어요 고릅니다 고를 고르세요"),
    ("모르다", "르", "몰라요 몰랐어요 모릅니다 모를 모르세요"),
    ("쓰다", "", "써요 썼어요 씁니다 쓸 쓰세요"),
    ("끄다", "", "꺼요 껐어요 끕니다 끌 끄세요"),
    ("바쁘다", "", "바빠요 바빴어요 바쁩니다 바쁠 바쁘세요"),
    ("예쁘다", "", "예뻐요 예뻤어요 예쁩니다 예쁠 예쁘세요"),
    ("모으다", "", "모아요 모았어요 모읍니다 모을 모으세요"),
    ("만들다", "", "만들어요 만들었어요 만듭니다 만들 만드세요"),
    ("놀다", "", "놀아요 놀았어요 놉니다 놀 노세요"),
    ("길다", "", "길어요 길었어요 깁니다 길 기세요"),
    ("빨갛다", "ㅎ", "빨개요 빨갰어요 빨갛습니다 빨갈 빨가세요"),
    ("하얗다", "ㅎ", "하얘요 하얬어요 하얗습니다 하얄 하야세요"),
    ("좋다", "", "좋아요 좋았어요 좋습니다 좋을 좋으세요"),
]


@pytest.mark.parametrize(("citation", "kind", "expected"), CONJUGATION, ids=[row[0] for row in CONJUGATION])
def test_conjugation(citation, kind, expected):
    forms = conjugate(citation, kind)
    got = [
        finish(citation, kind, Ending("present", False, False)),
        finish(citation, kind, Ending("past", False, False)),
        finish(citation, kind, Ending("present", True, False)),
        forms.prospective,
        forms.honorific,
    ]
    assert " ".join(got) == expected


@pytest.mark.parametrize(
    ("citation", "kind", "expected"),
    [
        ("크다", "", "큰"),
        ("좋다", "", "좋은"),
        ("길다", "", "긴"),
        ("춥다", "ㅂ", "추운"),
        ("빠르다", "르", "빠른"),
        ("파랗다", "ㅎ", "파란"),
        ("까맣다", "ㅎ", "까만"),
        ("재미있다", "", "재미있는"),
        ("조용하다", "", "조용한"),
    ],
)
def test_adjectives_before_nouns(citation, kind, expected):
    assert conjugate(citation, kind).adnominal == expected


def test_endings_of_tense_politeness_and_question():
    assert finish("가다", "", Ending("future", False, False)) == "갈 거예요"
    assert finish("가다", "", Ending("future", True, False)) == "갈 겁니다"
    assert finish("가다", "", Ending("future", True, True)) == "갈 겁니까"
    assert finish("가다", "", Ending("past", True, True)) == "갔습니까"
    assert finish("가다", "", Ending("present", True, True)) == "갑니까"
    assert conjugate("가다").formal_request == "가십시오"
    assert conjugate("읽다").formal_request == "읽으십시오"


def test_the_copula():
    polite, past = Ending("present", False, False), Ending("past", False, False)
    formal = Ending("past", True, False)
    assert [be("의사", polite, False), be("학생", polite, False)] == ["의사예요", "학생이에요"]
    assert [be("의사", past, False), be("학생", past, False)] == ["의사였어요", "학생이었어요"]
    assert [be("의사", formal, False), be("학생", formal, False)] == ["의사였습니다", "학생이었습니다"]
    assert [be("의사", polite, True), be("학생", polite, True)] == ["의사가 아니에요", "학생이 아니에요"]
    assert be("학생", Ending("present", True, True), False) == "학생입니까"


@pytest.mark.parametrize(
    ("noun", "count", "expected"),
    [
        ("사과", 3, "저는 사과 세 개를 봤어요."),
        ("고양이", 2, "저는 고양이 두 마리를 봤어요."),
        ("책", 20, "저는 책 스무 권을 봤어요."),
        ("학생", 4, "저는 학생 네 명을 봤어요."),
        ("커피", 1, "저는 커피 한 잔을 봤어요."),
        ("사진", 11, "저는 사진 열한 장을 봤어요."),
        ("자동차", 5, "저는 자동차 다섯 대를 봤어요."),
        ("맥주", 2, "저는 맥주 두 병을 봤어요."),
        ("학생", PLURAL, "저는 학생들을 봤어요."),
    ],
)
def test_counters(noun, count, expected):
    seen = Phrase(NOUNS[noun], count=count)
    assert korean.realise(Meaning("action", I, "past", verb=VERBS["보다"], object=seen)) == expected


def test_negation_depends_on_politeness_and_verb():
    def say(verb: str, formal: bool) -> str:
        return korean.realise(Meaning("action", WE, negative=True, verb=VERBS[verb], formal=formal))

    assert say("걷다", False) == "우리는 안 걸어요."
    assert say("걷다", True) == "저희는 걷지 않습니다."
    assert say("공부하다", False) == "우리는 공부하지 않아요."
    known = Phrase(NOUNS["학생"], "the")
    assert (
        korean.realise(Meaning("action", I, negative=True, verb=VERBS["알다"], object=known))
        == "저는 그 학생을 몰라요."
    )


def test_modality_progressive_and_requests():
    read, book = VERBS["읽다"], Phrase(NOUNS["책"], "this")
    base = {"verb": read, "object": book}
    assert korean.realise(Meaning("action", I, modality="want", **base)) == "저는 이 책을 읽고 싶어요."
    assert korean.realise(Meaning("action", I, modality="must", **base)) == "저는 이 책을 읽어야 해요."
    assert korean.realise(Meaning("action", I, modality="can", negative=True, **base)) == "저는 이 책을 읽을 수 없어요."
    now = Meaning("action", I, "progressive", time=adverbs.NOW, **base)
    assert korean.realise(now) == "저는 지금 이 책을 읽고 있어요."
    assert korean.realise(Meaning("action", YOU, request=True, **base)) == "이 책을 읽으세요."
    assert korean.realise(Meaning("action", YOU, request=True, negative=True, formal=True, **base)) == (
        "이 책을 읽지 마십시오."
    )


def test_every_stem_of_the_lexicon_conjugates_to_hangul():
    words = [(verb.ko, verb.kind) for verb in pools.VERBS] + [(a.ko, a.kind) for a in ADJECTIVES.values()]
    for citation, kind in words:
        forms = conjugate(citation, kind)
        for form in (forms.infinitive, forms.past, forms.formal, forms.prospective, forms.honorific, forms.adnominal):
            assert all("가" <= letter <= "힣" for letter in form), (citation, form)
