"""Places where something happens, and spots where things are (on the desk)."""

from __future__ import annotations

from transformer_mt.phrasebook.lexicon.entries import (
    Adverbial,
    GermanNoun,
    Noun,
    Place,
    english_s,
    german_noun,
)

_DATIVE = {"m": "dem", "f": "der", "n": "dem"}
_ACCUSATIVE = {"m": "den", "f": "die", "n": "das"}
_CONTRACTED = {"in dem": "im", "an dem": "am", "in das": "ins", "an das": "ans", "zu dem": "zum", "zu der": "zur"}


def _german(preposition: str, noun: GermanNoun, goal: bool) -> str:
    """The phrase for a location (dative) or a goal (accusative, but zu takes the dative): im Park, in den Park."""
    accusative = goal and preposition != "zu"
    start = f"{preposition} {(_ACCUSATIVE if accusative else _DATIVE)[noun.gender]}"
    return f"{_CONTRACTED.get(start, start)} {noun.oblique if accusative else noun.singular}"


def _place(ko: str, en: str, de: str, prepositions: str, tags: str, adjectives: str = "") -> Place:
    """A place with a noun. prepositions: English location, German location, German goal ("at in in").

    adjectives: classes of adjectives that fit the noun, without the prefix "place-".
    """
    english, location, destination = prepositions.split()
    german = german_noun(de)
    classes = frozenset({"place", *(f"place-{word}" for word in adjectives.split())})
    noun = Noun(ko, en, english_s(en), german, classes)
    return Place(
        ko,
        f"{english} the {en}",
        f"to the {en}",
        _german(location, german, goal=False),
        _german(destination, german, goal=True),
        frozenset({"near", *tags.split()}),
        noun,
    )


def _idiom(ko: str, en: str, en_goal: str, de: str, de_goal: str, tags: str) -> Place:
    """A place with fixed phrases and no adjectives: at home, to school."""
    return Place(ko, en, en_goal, de, de_goal, frozenset(tags.split()))


def _city(ko: str, en: str, de: str) -> Place:
    return _idiom(ko, f"in {en}", f"to {en}", f"in {de}", f"nach {de}", "city meet")


PLACES = (
    _idiom("집", "at home", "home", "zu Hause", "nach Hause", "near home study eat rest base cook"),
    _idiom("학교", "at school", "to school", "in der Schule", "in die Schule", "near study sport work base"),
    _place("도서관", "library", "die Bibliothek, Bibliotheken", "at in in", "study meet quiet", "public room"),
    _place("교실", "classroom", "das Klassenzimmer, Klassenzimmer", "in in in", "study room", "room"),
    _place("대학교", "university", "die Universität, Universitäten", "at an an", "study work meet", "public"),
    _place("사무실", "office", "das Büro, Büros", "in in in", "work study room", "room"),
    _place("공장", "factory", "die Fabrik, Fabriken", "in in in", "work"),
    _place("은행", "bank", "die Bank, Banken", "at in zu", "work"),
    _place("우체국", "post office", "das Postamt, Postämter", "at in zu", "work"),
    _place("병원", "hospital", "das Krankenhaus, Krankenhäuser", "in in in", "work meet", "public"),
    _place("약국", "pharmacy", "die Apotheke, Apotheken", "at in zu", "work"),
    _place("식당", "restaurant", "das Restaurant, Restaurants", "at in in", "eat drink meet work", "public"),
    _place("카페", "café", "das Café, Cafés", "at in in", "drink meet study", "public"),
    _place("빵집", "bakery", "die Bäckerei, Bäckereien", "at in zu", "work bakes"),
    _place("시장", "market", "der Markt, Märkte", "at auf auf", "shop meet", "public"),
    _place("슈퍼마켓", "supermarket", "der Supermarkt, Supermärkte", "at in in", "shop work"),
    _place("백화점", "department store", "das Kaufhaus, Kaufhäuser", "at in in", "goods work meet", "public"),
    _place("서점", "bookstore", "die Buchhandlung, Buchhandlungen", "at in in", "books work meet", "public"),
    _place("공원", "park", "der Park, Parks", "in in in", "open eat rest sport meet", "open public"),
    _place("정원", "garden", "der Garten, Gärten", "in in in", "open rest eat home", "open"),
    _place("동물원", "zoo", "der Zoo, Zoos", "at in in", "animals meet", "public"),
    _place("해변", "beach", "der Strand, Strände", "at an an", "open rest water sport", "open public"),
    _place("호수", "lake", "der See, Seen", "at an an", "open rest water", "open"),
    _place("강", "river", "der Fluss, Flüsse", "at an an", "open water", "open"),
    _place("역", "station", "der Bahnhof, Bahnhöfe", "at an zu", "meet rail", "public"),
    _place("공항", "airport", "der Flughafen, Flughäfen", "at an zu", "meet", "public"),
    _place("호텔", "hotel", "das Hotel, Hotels", "at in in", "rest eat drink meet work base", "public"),
    _place("박물관", "museum", "das Museum, Museen", "at in in", "meet work quiet", "public"),
    _place("영화관", "cinema", "das Kino, Kinos", "at in in", "films meet", "public"),
    _place("극장", "theater", "das Theater, Theater", "at in in", "stage meet work", "public"),
    _place("경기장", "stadium", "das Stadion, Stadien", "at in in", "sport meet"),
    _place("체육관", "gym", "die Turnhalle, Turnhallen", "in in in", "sport"),
    _place("수영장", "swimming pool", "das Schwimmbad, Schwimmbäder", "at in in", "water", "public"),
    _place("부엌", "kitchen", "die Küche, Küchen", "in in in", "home cook room", "room"),
    _place("거실", "living room", "das Wohnzimmer, Wohnzimmer", "in in in", "home rest room", "room"),
    _place("침실", "bedroom", "das Schlafzimmer, Schlafzimmer", "in in in", "home sleep room", "room"),
    _place("마을", "village", "das Dorf, Dörfer", "in in in", "open live base", "open"),
    _city("서울", "Seoul", "Seoul"),
    _city("부산", "Busan", "Busan"),
    _city("베를린", "Berlin", "Berlin"),
    _city("뮌헨", "Munich", "München"),
    _city("런던", "London", "London"),
    _city("파리", "Paris", "Paris"),
)


def _spot(ko: str, en: str, de: str, noun: str, tag: str) -> Adverbial:
    """A spot: 책상 위에, on the desk, auf dem Schreibtisch. tag: keys of SPOT_CONTENTS."""
    german = german_noun(noun)
    return Adverbial(ko, en, _german(de, german, goal=False), tag=tag)


SPOTS = (
    _spot("책상 위에", "on the desk", "auf", "der Schreibtisch", "top"),
    _spot("책상 아래에", "under the desk", "unter", "der Schreibtisch", "under"),
    _spot("식탁 위에", "on the table", "auf", "der Tisch", "top meal"),
    _spot("식탁 아래에", "under the table", "unter", "der Tisch", "under"),
    _spot("의자 위에", "on the chair", "auf", "der Stuhl", "top"),
    _spot("의자 아래에", "under the chair", "unter", "der Stuhl", "under"),
    _spot("침대 위에", "on the bed", "auf", "das Bett", "top"),
    _spot("침대 옆에", "next to the bed", "neben", "das Bett", "beside"),
    _spot("가방 안에", "in the bag", "in", "die Tasche", "inside"),
    _spot("상자 안에", "in the box", "in", "die Kiste", "inside"),
    _spot("냉장고 안에", "in the refrigerator", "in", "der Kühlschrank", "meal"),
    _spot("문 앞에", "in front of the door", "vor", "die Tür", "outside"),
    _spot("문 뒤에", "behind the door", "hinter", "die Tür", "under"),
    _spot("집 앞에", "in front of the house", "vor", "das Haus", "outside"),
    _spot("집 뒤에", "behind the house", "hinter", "das Haus", "outside"),
    _spot("나무 아래에", "under the tree", "unter", "der Baum", "outside"),
    _spot("창문 옆에", "next to the window", "neben", "das Fenster", "beside"),
)

# classes and Korean names of the things that may be at a spot, by its tag
SPOT_CONTENTS = {
    "top": "bookish picture stationery personal mail 신문 인형 고양이 컴퓨터",
    "meal": "fruit 빵 우유 물 주스 케이크 달걀 치즈 고기 설탕 소금",
    "under": "personal 상자 공 고양이 개 쥐 인형",
    "inside": "bookish stationery 사진 지갑 열쇠 반지 우산 카메라 동전 편지 사과 오렌지",
    "beside": "furniture 상자 거울 램프 꽃 가방 기타",
    "outside": "vehicle person pet farm 나무 꽃 상자",
}
