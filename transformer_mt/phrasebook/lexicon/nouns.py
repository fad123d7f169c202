"""Food, drinks, things, and what people read, hear or study. People and animals are in `beings`."""

from __future__ import annotations

from transformer_mt.phrasebook.lexicon.entries import Container, Noun, english_s, german_noun

_CUP = Container("잔", "cup", "cups", german_noun("die Tasse, Tassen"))
_GLASS = Container("잔", "glass", "glasses", german_noun("das Glas, Gläser"))
_BOTTLE = Container("병", "bottle", "bottles", german_noun("die Flasche, Flaschen"))
_SLICE = Container("조각", "slice", "slices", german_noun("die Scheibe, Scheiben"))
_BOWL = Container("그릇", "bowl", "bowls", german_noun("die Schüssel, Schüsseln"))


def thing(ko: str, en: str, de: str, classes: str, counter: str = "", plural: str = "") -> Noun:
    """A countable noun. Without a counter it occurs only in the singular."""
    return Noun(ko, en, plural or english_s(en), german_noun(de), frozenset(classes.split()), counter)


def mass(ko: str, en: str, de: str, classes: str, container: Container | None = None) -> Noun:
    """A mass noun. Only its container is counted (two cups of coffee)."""
    counter = container.ko if container else ""
    return Noun(ko, en, en, german_noun(de), frozenset(classes.split()), counter, container, mass=True)


FOOD = (
    thing("사과", "apple", "der Apfel, Äpfel", "food fruit", "개"),
    thing("배", "pear", "die Birne, Birnen", "food fruit", "개"),
    thing("바나나", "banana", "die Banane, Bananen", "food fruit", "개"),
    thing("오렌지", "orange", "die Orange, Orangen", "food fruit", "개"),
    thing("딸기", "strawberry", "die Erdbeere, Erdbeeren", "food fruit", "개"),
    thing("복숭아", "peach", "der Pfirsich, Pfirsiche", "food fruit", "개"),
    thing("수박", "watermelon", "die Wassermelone, Wassermelonen", "food fruit", "개"),
    thing("레몬", "lemon", "die Zitrone, Zitronen", "fruit", "개"),
    thing("달걀", "egg", "das Ei, Eier", "food cooked", "개"),
    thing("감자", "potato", "die Kartoffel, Kartoffeln", "food vegetable cooked", "개"),
    thing("토마토", "tomato", "die Tomate, Tomaten", "food vegetable", "개"),
    thing("당근", "carrot", "die Karotte, Karotten", "food vegetable", "개"),
    thing("양파", "onion", "die Zwiebel, Zwiebeln", "vegetable", "개"),
    thing("케이크", "cake", "der Kuchen, Kuchen", "food baked", "개"),
    thing("과자", "cookie", "der Keks, Kekse", "food baked", "개"),
    thing("샌드위치", "sandwich", "das Sandwich, Sandwiches", "food", "개"),
    mass("빵", "bread", "das Brot", "food baked", _SLICE),
    mass("밥", "rice", "der Reis", "food cooked dish", _BOWL),
    mass("수프", "soup", "die Suppe", "food cooked dish hot", _BOWL),
    mass("고기", "meat", "das Fleisch", "food cooked", _SLICE),
    mass("치즈", "cheese", "der Käse", "food", _SLICE),
    mass("김치", "kimchi", "das Kimchi", "food dish"),
    mass("초콜릿", "chocolate", "die Schokolade", "food sweets"),
    mass("아이스크림", "ice cream", "das Eis", "food sweets"),
    mass("설탕", "sugar", "der Zucker", "grocery"),
    mass("소금", "salt", "das Salz", "grocery"),
)

DRINKS = (
    mass("물", "water", "das Wasser", "drink cold", _GLASS),
    mass("우유", "milk", "die Milch", "drink cold", _GLASS),
    mass("주스", "juice", "der Saft", "drink cold", _GLASS),
    mass("맥주", "beer", "das Bier", "drink cold", _BOTTLE),
    mass("와인", "wine", "der Wein", "drink", _BOTTLE),
    mass("커피", "coffee", "der Kaffee", "drink hot", _CUP),
    mass("차", "tea", "der Tee", "drink hot", _CUP),
)

PAPER = (
    thing("책", "book", "das Buch, Bücher", "readable story gift bookish", "권"),
    thing("소설", "novel", "der Roman, Romane", "readable story bookish text", "권"),
    thing("잡지", "magazine", "die Zeitschrift, Zeitschriften", "readable bookish", "권"),
    thing("사전", "dictionary", "das Wörterbuch, Wörterbücher", "bookish gift", "권"),
    thing("공책", "notebook", "das Heft, Hefte", "stationery", "권"),
    thing("신문", "newspaper", "die Zeitung, Zeitungen", "readable"),
    thing("편지", "letter", "der Brief, Briefe", "readable text mail", "통"),
    thing("이메일", "e-mail", "die E-Mail, E-Mails", "readable text mail", "통"),
    thing("시", "poem", "das Gedicht, Gedichte", "readable text art", "편"),
    thing("엽서", "postcard", "die Postkarte, Postkarten", "mail picture", "장"),
    thing("사진", "photo", "das Foto, Fotos", "picture", "장"),
    thing("그림", "picture", "das Bild, Bilder", "picture art gift", "장"),
    thing("지도", "map", "die Landkarte, Landkarten", "picture", "장"),
    thing("표", "ticket", "die Fahrkarte, Fahrkarten", "ticket", "장"),
    thing("우표", "stamp", "die Briefmarke, Briefmarken", "collected", "장"),
)

CLOTHES = (
    thing("코트", "coat", "der Mantel, Mäntel", "clothes", "벌"),
    thing("치마", "skirt", "der Rock, Röcke", "clothes", "벌"),
    thing("셔츠", "shirt", "das Hemd, Hemden", "clothes", "벌"),
    thing("스웨터", "sweater", "der Pullover, Pullover", "clothes", "벌"),
    thing("재킷", "jacket", "die Jacke, Jacken", "clothes", "벌"),
    thing("원피스", "dress", "das Kleid, Kleider", "clothes", "벌"),
    thing("모자", "hat", "der Hut, Hüte", "headwear gift", "개"),
)

THINGS = (
    thing("가방", "bag", "die Tasche, Taschen", "personal gift box", "개"),
    thing("지갑", "wallet", "der Geldbeutel, Geldbeutel", "personal gift", "개"),
    thing("우산", "umbrella", "der Regenschirm, Regenschirme", "personal", "개"),
    thing("열쇠", "key", "der Schlüssel, Schlüssel", "personal small", "개"),
    thing("반지", "ring", "der Ring, Ringe", "personal gift small", "개"),
    thing("시계", "clock", "die Uhr, Uhren", "device gift fragile", "개"),
    thing("연필", "pencil", "der Bleistift, Bleistifte", "stationery small", "자루"),
    thing("펜", "pen", "der Stift, Stifte", "stationery small", "자루"),
    thing("칼", "knife", "das Messer, Messer", "tool", "자루", plural="knives"),
    thing("의자", "chair", "der Stuhl, Stühle", "furniture", "개"),
    thing("책상", "desk", "der Schreibtisch, Schreibtische", "furniture", "개"),
    thing("식탁", "table", "der Tisch, Tische", "furniture", "개"),
    thing("침대", "bed", "das Bett, Betten", "furniture", "개"),
    thing("거울", "mirror", "der Spiegel, Spiegel", "cleaned fragile", "개"),
    thing("상자", "box", "die Kiste, Kisten", "box", "개"),
    thing("접시", "plate", "der Teller, Teller", "dishes fragile", "개"),
    thing("병", "bottle", "die Flasche, Flaschen", "dishes fragile", "개"),
    thing("꽃", "flower", "die Blume, Blumen", "plant gift", "송이"),
    thing("장미", "rose", "die Rose, Rosen", "plant gift", "송이"),
    thing("나무", "tree", "der Baum, Bäume", "plant", "그루"),
    thing("공", "ball", "der Ball, Bälle", "toy thrown", "개"),
    thing("돌", "stone", "der Stein, Steine", "thrown collected", "개"),
    thing("인형", "doll", "die Puppe, Puppen", "toy gift", "개"),
    thing("선물", "gift", "das Geschenk, Geschenke", "present", "개"),
    thing("동전", "coin", "die Münze, Münzen", "collected", "개"),
    thing("램프", "lamp", "die Lampe, Lampen", "switched device", "개"),
    thing("컴퓨터", "computer", "der Computer, Computer", "switched device", "대"),
    thing("텔레비전", "television", "der Fernseher, Fernseher", "switched device", "대"),
    thing("카메라", "camera", "die Kamera, Kameras", "device gift", "대"),
    thing("냉장고", "refrigerator", "der Kühlschrank, Kühlschränke", "device", "대"),
    thing("자동차", "car", "das Auto, Autos", "vehicle", "대"),
    thing("자전거", "bicycle", "das Fahrrad, Fahrräder", "vehicle", "대"),
    thing("버스", "bus", "der Bus, Busse", "ride", "대"),
    thing("택시", "taxi", "das Taxi, Taxis", "ride", "대"),
    thing("기차", "train", "der Zug, Züge", "ride rail", "대"),
    thing("문", "door", "die Tür, Türen", "opening cleaned", "개"),
    thing("창문", "window", "das Fenster, Fenster", "opening cleaned fragile", "개"),
    thing("방", "room", "das Zimmer, Zimmer", "room", "개"),
    thing("집", "house", "das Haus, Häuser", "building", "채"),
    thing("다리", "bridge", "die Brücke, Brücken", "building", "개"),
)

# if only one language has an article (play the piano, Klavier spielen), the article is part of the word
IDEAS = (
    thing("노래", "song", "das Lied, Lieder", "song story", "곡"),
    thing("영화", "movie", "der Film, Filme", "film story", "편"),
    thing("이야기", "story", "die Geschichte, Geschichten", "tale story", "개"),
    thing("질문", "question", "die Frage, Fragen", "task", "개"),
    thing("문제", "problem", "das Problem, Probleme", "task", "개"),
    thing("시험", "exam", "die Prüfung, Prüfungen", "exam", "개"),
    mass("음악", "music", "die Musik", "heard"),
    mass("한국어", "Korean", "das Koreanisch", "language"),
    mass("영어", "English", "das Englisch", "language"),
    mass("독일어", "German", "das Deutsch", "language"),
    mass("프랑스어", "French", "das Französisch", "language"),
    mass("수학", "mathematics", "die Mathematik", "science"),
    mass("화학", "chemistry", "die Chemie", "science"),
    mass("축구", "soccer", "der Fußball", "sport"),
    mass("농구", "basketball", "der Basketball", "sport"),
    mass("야구", "baseball", "der Baseball", "sport"),
    mass("배구", "volleyball", "der Volleyball", "sport"),
    mass("피아노", "the piano", "das Klavier", "keys"),
    mass("기타", "the guitar", "die Gitarre", "keys"),
    mass("테니스", "tennis", "das Tennis", "keys"),
    mass("날씨", "the weather", "das das Wetter", "weather"),
)
