"""Adjectives with the nouns they fit, and adverbs of degree."""

from __future__ import annotations

from transformer_mt.phrasebook.lexicon.entries import Adjective, Adverbial

_GOODS = "personal clothes headwear furniture device vehicle toy bookish"
_BEAUTIFUL = "plant clothes headwear picture song building toy gift"


def _adjective(ko: str, en: str, de: str, classes: str, attributive: bool = True) -> Adjective:
    """An adjective. ko: "춥다:ㅂ" names the conjugation class; de: "teuer/teur" names the stem that takes endings."""
    citation, _, kind = ko.partition(":")
    german, _, stem = de.partition("/")
    return Adjective(citation, kind, en, german, stem or german, frozenset(classes.split()), attributive)


ADJECTIVES = (
    _adjective("크다", "big", "groß", "furniture personal farm wild fruit plant box building room picture toy vehicle"),
    _adjective("작다", "small", "klein", "furniture personal pet plant box building room picture toy dishes"),
    _adjective("새롭다:ㅂ", "new", "neu", _GOODS + " film song"),
    _adjective("비싸다", "expensive", "teuer/teur", _GOODS + " ticket"),
    _adjective("싸다", "cheap", "billig", _GOODS + " ticket"),
    _adjective("예쁘다", "pretty", "hübsch", _BEAUTIFUL + " 소녀 여자"),
    _adjective("아름답다:ㅂ", "beautiful", "schön", _BEAUTIFUL + " place-open art"),
    _adjective("좋다", "good", "gut", "readable film song device furniture profession weather"),
    _adjective("나쁘다", "bad", "schlecht", "film weather readable"),
    _adjective("무겁다:ㅂ", "heavy", "schwer", "furniture box personal 사전 돌 컴퓨터"),
    _adjective("가볍다:ㅂ", "light", "leicht", "furniture box personal clothes device"),
    _adjective("길다", "long", "lang", "다리 치마 원피스 코트 편지 이야기 영화 소설 칼 시 이메일"),
    _adjective("짧다", "short", "kurz", "치마 원피스 연필 편지 이야기 영화 노래 시 이메일 다리"),
    _adjective("넓다", "spacious", "geräumig", "room place-room"),
    _adjective("좁다", "narrow", "eng", "room 다리 침대 place-room"),
    _adjective("높다", "high", "hoch/hoh", "다리 책상 의자 식탁"),
    _adjective("낮다", "low", "niedrig", "다리 책상 의자 식탁 침대"),
    _adjective("빠르다:르", "fast", "schnell", "vehicle ride 말 개 토끼 컴퓨터 공"),
    _adjective("느리다", "slow", "langsam", "vehicle ride 컴퓨터 코끼리 소"),
    _adjective("뜨겁다:ㅂ", "hot", "heiß", "hot dish"),
    _adjective("차갑다:ㅂ", "cold", "kalt", "cold 커피 차 수프 밥"),
    _adjective("따뜻하다", "warm", "warm", "hot clothes 빵 밥 우유 weather room"),
    _adjective("덥다:ㅂ", "hot", "heiß", "weather", attributive=False),
    _adjective("춥다:ㅂ", "cold", "kalt", "weather", attributive=False),
    _adjective("시원하다", "cool", "kühl", "weather 맥주 주스"),
    _adjective("맵다:ㅂ", "spicy", "scharf", "김치 수프 고기 양파"),
    _adjective("달다", "sweet", "süß", "fruit baked sweets 주스 차 와인"),
    _adjective("짜다", "salty", "salzig", "수프 고기 치즈 김치 과자"),
    _adjective("시다", "sour", "sauer/saur", "fruit 김치 주스"),
    _adjective("쓰다", "bitter", "bitter", "커피 차 맥주 초콜릿"),
    _adjective("맛있다", "delicious", "lecker", "food drink"),
    _adjective("신선하다", "fresh", "frisch", "fruit vegetable 빵 우유 달걀 고기"),
    _adjective("재미있다", "interesting", "interessant", "readable film tale task"),
    _adjective("지루하다", "boring", "langweilig", "readable film tale"),
    _adjective("쉽다:ㅂ", "easy", "einfach", "task exam song language science"),
    _adjective("어렵다:ㅂ", "difficult", "schwierig", "task exam song language science 책 시"),
    _adjective("중요하다", "important", "wichtig", "task exam mail 책 열쇠"),
    _adjective("유명하다", "famous", "berühmt", "profession 소설 그림 노래 영화 시 place-public"),
    _adjective("친절하다", "kind", "freundlich", "profession close kin 남자 여자"),
    _adjective("바쁘다", "busy", "beschäftigt", "passing profession close kin name pronoun", attributive=False),
    _adjective("피곤하다", "tired", "müde", "passing person kin name pronoun"),
    _adjective("아프다", "sick", "krank", "passing young pet farm kin name pronoun 친구 동료"),
    _adjective("건강하다", "healthy", "gesund", "young pet farm kin name pronoun"),
    _adjective("행복하다", "happy", "glücklich", "passing person kin name pronoun"),
    _adjective("슬프다", "sad", "traurig", "young 남자 여자 친구 name pronoun 이야기 노래 영화"),
    _adjective("똑똑하다", "smart", "klug", "profession young pet kin name pronoun 원숭이"),
    _adjective("부지런하다", "diligent", "fleißig", "profession close name pronoun"),
    _adjective("게으르다:르", "lazy", "faul", "고양이 학생 소년 동료 남자 name pronoun"),
    _adjective("젊다", "young", "jung", "profession 남자 여자"),
    _adjective("조용하다", "quiet", "ruhig", "room young 이웃 place-public 노래"),
    _adjective("시끄럽다:ㅂ", "noisy", "laut", "young 개 이웃 거위 자동차 냉장고 place-public"),
    _adjective("깨끗하다", "clean", "sauber", "room clothes dishes cleaned vehicle place-public"),
    _adjective("더럽다:ㅂ", "dirty", "schmutzig", "room clothes dishes cleaned vehicle 돼지"),
    _adjective("귀엽다:ㅂ", "cute", "niedlich", "pet young 인형 원숭이 곰 돼지"),
    _adjective("용감하다", "brave", "mutig", "군인 경찰관 소년 소녀 사자 개 name pronoun"),
    _adjective("강하다", "strong", "stark", "wild 말 소 군인 남자"),
    _adjective("편하다", "comfortable", "bequem", "furniture clothes ride"),
    _adjective("위험하다", "dangerous", "gefährlich", "wild tool 다리"),
    _adjective("안전하다", "safe", "sicher", "vehicle ride 다리 place-public"),
    _adjective("이상하다", "strange", "seltsam", "tale film 그림 남자 여자 질문 편지"),
    _adjective("두껍다:ㅂ", "thick", "dick", "bookish 코트 스웨터 공책"),
    _adjective("얇다", "thin", "dünn", "bookish 셔츠 재킷 접시 공책"),
    _adjective("어둡다:ㅂ", "dark", "dunkel/dunkl", "room place-room"),
    _adjective("밝다", "bright", "hell", "room 램프 place-room"),
    _adjective("빨갛다:ㅎ", "red", "rot", "clothes headwear vehicle plant toy personal 사과"),
    _adjective("파랗다:ㅎ", "blue", "blau", "clothes headwear vehicle toy personal 새 접시"),
    _adjective("노랗다:ㅎ", "yellow", "gelb", "clothes headwear plant toy personal 새 나비 램프"),
    _adjective("하얗다:ㅎ", "white", "weiß", "clothes headwear pet vehicle plant furniture 양 말 나비"),
    _adjective("까맣다:ㅎ", "black", "schwarz", "clothes headwear pet vehicle personal furniture 말 소"),
)

DEGREES = (
    Adverbial("아주", "very", "sehr"),
    Adverbial("정말", "really", "wirklich"),
    Adverbial("너무", "too", "zu"),
)
