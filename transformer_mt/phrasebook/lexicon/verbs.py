"""Verbs that take an object, each with the nouns and places it fits."""

from __future__ import annotations

from typing import Any

from transformer_mt.phrasebook.lexicon.entries import (
    Verb,
    english_ing,
    english_past,
    english_s,
    german_verb,
)

HUMAN = "person kin name pronoun"
_EVENTS = ("past", "present", "future")


def verb(ko: str, en: str, de: str, objects: str = "", places: str = "", **frame: Any) -> Verb:
    """A verb from the notation of the tables.

    ko:     "사진을 찍다" has a fixed head, "돕다:ㅂ" a conjugation class
    en:     "buy bought" has an irregular past; "+" doubles the last letter before -ing (swim swam+); "_" is a space
    de:     see `german_verb`
    frame:  other fields of `Verb`; those in _LISTS are words in one string
    """
    phrase, _, kind = ko.partition(":")
    head, _, citation = phrase.rpartition(" ")
    if frame.get("generic") or frame.get("tenses") == "present":
        frame["together"] = False
    slots: dict[str, Any] = {name: tuple(value.split()) if name in _LISTS else value for name, value in frame.items()}
    forms = en.removesuffix("+").replace("_", "~").split(" ")
    base, past = forms[0], forms[1] if len(forms) > 1 else ""
    word, _, rest = base.partition("~")
    tail = f" {rest.replace('~', ' ')}" if rest else ""
    return Verb(
        citation,
        kind,
        head,
        word + tail,
        english_s(word) + tail,
        (past or english_past(word)) + tail,
        english_ing(word, doubled=en.endswith("+")) + tail,
        german_verb(de),
        objects=tuple(objects.split()),
        places=tuple(places.split()),
        **slots,
    )


_LISTS = frozenset({"subjects", "tools", "manners", "required", "tenses", "times"})

TRANSITIVE = (
    verb("먹다", "eat ate", "essen isst gegessen", "food", "eat", tools="eating", manners="quick slow", weight=4),
    verb("마시다", "drink drank", "trinken trinkt getrunken", "drink", "drink eat", manners="quick slow", weight=4),
    verb("읽다", "read read", "lesen liest gelesen", "readable", "study rest", manners="slow quiet loud", weight=4),
    verb("쓰다", "write wrote", "schreiben schreibt geschrieben", "text", "study rest", tools="writing", weight=3),
    verb("사다", "buy bought", "kaufen kauft gekauft", "food drink grocery", "shop", weight=3),
    verb("사다", "buy bought", "kaufen kauft gekauft", "clothes headwear personal toy device", "goods", weight=3),
    verb("사다", "buy bought", "kaufen kauft gekauft", "bookish stationery", "books", weight=2),
    verb("팔다", "sell sold", "verkaufen verkauft verkauft", "fruit vegetable 꽃", "shop", generic=True),
    verb("팔다", "sell sold", "verkaufen verkauft verkauft", "clothes device toy 모자 가방", "goods", generic=True),
    verb("보다", "watch", "sehen sieht gesehen", "film", "films home", main=False, weight=3),
    verb("보다", "see saw", "sehen sieht gesehen", "wild farm pet", "animals", tenses="past future", weight=3),
    verb("보다", "see saw", "sehen sieht gesehen", "person close", "meet", tenses="past", weight=1),
    verb("만들다", "make made", "machen macht gemacht", "케이크 샌드위치 수프 주스 치즈 과자", "cook"),
    verb(
        "만들다", "make made", "machen macht gemacht", "furniture toy 상자 반지 선물", tenses="past future progressive"
    ),
    verb("요리하다", "cook", "kochen kocht gekocht", "cooked", "cook eat", manners="quick well"),
    verb("굽다:ㅂ", "bake", "backen backt gebacken", "baked", "bakes cook"),
    verb("씻다", "wash", "waschen wäscht gewaschen", "fruit vegetable dishes", "cook", manners="careful quick"),
    verb("닦다", "clean", "putzen putzt geputzt", "cleaned vehicle 식탁", tools="wiping", manners="careful quick"),
    verb("청소하다", "tidy", "auf|räumen räumt aufgeräumt", "room 집", manners="quick"),
    verb(
        "자르다:르",
        "cut cut+",
        "schneiden schneidet geschnitten",
        "빵 고기 치즈 케이크 양파 수박 감자",
        "cook",
        tools="cutting",
    ),
    verb(
        "듣다:ㄷ", "listen_to", "hören hört gehört", "heard song 이야기", "home study rest", manners="quiet", weight=3
    ),
    verb("부르다:르", "sing sang", "singen singt gesungen", "song", "stage home open", manners="loud well quiet"),
    verb("배우다", "learn", "lernen lernt gelernt", "language science", "study", manners="hard", weight=3),
    verb("가르치다", "teach taught", "unterrichten unterrichtet unterrichtet", "language science", "study"),
    verb("치다", "play", "spielen spielt gespielt", "keys", "home sport", manners="well", main=False),
    verb("하다", "play", "spielen spielt gespielt", "sport", "sport", manners="well", main=False, weight=3),
    verb("만나다", "meet met", "treffen trifft getroffen", HUMAN, "meet", weight=5),
    verb("기다리다", "wait_for", "warten wartet gewartet", HUMAN, "meet", de_preposition="auf", weight=3),
    verb(
        "기다리다", "wait_for", "warten wartet gewartet", "ride mail", "rail home", de_preposition="auf", together=False
    ),
    verb("돕다:ㅂ", "help", "helfen hilft geholfen", HUMAN, "work home", de_case="dat", weight=4),
    verb("사랑하다", "love", "lieben liebt geliebt", "kin", tenses="present", modal=False, weight=1),
    verb("초대하다", "invite", "ein|laden lädt eingeladen", HUMAN, tenses="past future", weight=2),
    verb("방문하다", "visit", "besuchen besucht besucht", "kin name close", weight=2),
    verb("전화하다", "call", "an|rufen ruft angerufen", HUMAN, ko_marker="에게", weight=3, together=False),
    verb(
        "믿다",
        "believe",
        "glauben glaubt geglaubt",
        HUMAN,
        de_case="dat",
        tenses="past present",
        modal=False,
        together=False,
    ),
    verb(
        "이해하다", "understand understood", "verstehen versteht verstanden", "task tale 시", tenses=" ".join(_EVENTS)
    ),
    verb(
        "알다",
        "know knew",
        "kennen kennt gekannt",
        "person name song 이야기",
        opposite=("모르다", "르"),
        tenses="present",
        modal=False,
    ),
    verb(
        "좋아하다",
        "like",
        "mögen mag gemocht",
        "food drink pet plant heard sport grocery 영화",
        generic=True,
        tenses="present",
        modal=False,
        weight=4,
    ),
    verb(
        "싫어하다",
        "hate",
        "hassen hasst gehasst",
        "food drink wild small 시험",
        generic=True,
        tenses="present",
        modal=False,
    ),
    verb(
        "필요하다",
        "need",
        "brauchen braucht gebraucht",
        "personal clothes stationery ticket furniture grocery",
        ko_marker="가",
        tenses="present past future",
        modal=False,
        together=False,
        weight=3,
    ),
    verb("찾다", "look_for", "suchen sucht gesucht", "personal 표 신문 사진 사전 모자", "home study", weight=3),
    verb(
        "잃어버리다",
        "lose lost",
        "verlieren verliert verloren",
        "personal 표 모자 사진",
        "meet",
        tenses="past",
        modal=False,
        together=False,
    ),
    verb(
        "열다",
        "open",
        "öffnen öffnet geöffnet",
        "opening 상자 선물 병 가방",
        manners="careful slow quiet",
        together=False,
        weight=3,
    ),
    verb(
        "닫다",
        "close",
        "schließen schließt geschlossen",
        "opening 상자 가방",
        manners="careful quiet",
        together=False,
        weight=3,
    ),
    verb("켜다", "turn_on", "ein|schalten schaltet eingeschaltet", "switched", together=False, weight=3),
    verb("끄다", "turn_off", "aus|schalten schaltet ausgeschaltet", "switched", together=False, weight=3),
    verb("고치다", "repair", "reparieren repariert repariert", "vehicle device 의자 침대 다리 문", manners="quick"),
    verb(
        "그리다", "draw drew", "zeichnen zeichnet gezeichnet", "wild pet plant 지도 집", "study open", tools="writing"
    ),
    verb("입다", "wear wore", "tragen trägt getragen", "clothes", together=False, weight=3),
    verb("고르다:르", "choose chose", "aus|suchen sucht ausgesucht", "clothes gift film", "goods", manners="careful"),
    verb(
        "모으다",
        "collect",
        "sammeln sammelt gesammelt",
        "collected 인형 그림",
        generic=True,
        tenses="present",
        modal=False,
    ),
    verb("빌리다", "borrow", "aus|leihen leiht ausgeliehen", "bookish", "quiet", weight=2),
    verb(
        "준비하다", "prepare", "vor|bereiten bereitet vorbereitet", "선물 수프 샌드위치 시험 고기 밥", manners="careful"
    ),
    verb(
        "보내다",
        "send sent",
        "schicken schickt geschickt",
        "mail picture 선물",
        recipient=True,
        weight=4,
        together=False,
    ),
    verb(
        "주다",
        "give gave",
        "geben gibt gegeben",
        "gift fruit 선물 물 우산 열쇠 표",
        recipient=True,
        required="recipient",
        together=False,
        weight=5,
    ),
    verb(
        "보여주다",
        "show",
        "zeigen zeigt gezeigt",
        "picture ticket gift 편지",
        recipient=True,
        required="recipient",
        together=False,
        weight=4,
    ),
    verb(
        "설명하다",
        "explain",
        "erklären erklärt erklärt",
        "task 그림 시 영화",
        recipient=True,
        manners="slow well",
        together=False,
        weight=2,
    ),
    verb(
        "받다",
        "receive",
        "bekommen bekommt bekommen",
        "mail gift 선물",
        tenses="past future",
        modal=False,
        together=False,
    ),
    verb("타다", "take took", "nehmen nimmt genommen", "ride", weight=2),
    verb(
        "운전하다",
        "drive drove",
        "fahren fährt gefahren",
        "버스 택시 자동차",
        manners="slow careful quick well",
        weight=2,
    ),
    verb("잡다", "catch caught", "fangen fängt gefangen", "small 공", "open", weight=2),
    verb("던지다", "throw threw", "werfen wirft geworfen", "thrown", "open sport", weight=1),
    verb(
        "짓다:ㅅ",
        "build built",
        "bauen baut gebaut",
        "building",
        "live city",
        tenses="past future progressive",
        times="long",
    ),
    verb("심다", "plant", "pflanzen pflanzt gepflanzt", "plant 감자 양파 토마토", "open"),
    verb("번역하다", "translate", "übersetzen übersetzt übersetzt", "text story 신문", "study", manners="careful well"),
    verb("사용하다", "use", "benutzen benutzt benutzt", "컴퓨터 카메라 사전 우산 칼 펜 공책 지도", "study"),
    verb("연습하다", "practice", "üben übt geübt", "keys song", "home stage", manners="hard"),
    verb(
        "키우다",
        "raise",
        "züchten züchtet gezüchtet",
        "farm 장미 개 토끼",
        "live",
        generic=True,
        tenses="present",
        modal=False,
        together=False,
    ),
)
