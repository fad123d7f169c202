"""Verbs without an object: activities of people and animals, and motion to a place."""

from __future__ import annotations

from typing import Any

from transformer_mt.phrasebook.lexicon.verbs import verb

_LIVING = "person kin name pronoun young pet"

INTRANSITIVE = (
    verb(
        "자다",
        "sleep slept",
        "schlafen schläft geschlafen",
        "",
        "sleep rest",
        manners="well",
        subjects=_LIVING,
        weight=4,
    ),
    verb("일하다", "work", "arbeiten arbeitet gearbeitet", "", "work", manners="hard", weight=5),
    verb("공부하다", "study", "lernen lernt gelernt", "", "study", manners="hard quiet", weight=5),
    verb("걷다:ㄷ", "walk", "laufen läuft gelaufen sein", "", "open", manners="slow quick", weight=3),
    verb(
        "뛰다", "run ran+", "rennen rennt gerannt sein", "", "open sport", manners="quick", subjects=_LIVING, weight=3
    ),
    verb("산책하다", "take_a_walk took", "spazieren_|gehen geht spazieren_gegangen sein", "", "open", weight=2),
    verb("수영하다", "swim swam+", "schwimmen schwimmt geschwommen sein", "", "water", manners="well slow", weight=3),
    verb("춤추다", "dance", "tanzen tanzt getanzt", "", "stage open home", manners="well slow", weight=2),
    verb("웃다", "laugh", "lachen lacht gelacht", "", "stage films home", manners="loud quiet", weight=2),
    verb("울다", "cry", "weinen weint geweint", "", "films home", manners="loud quiet", modal=False, weight=2),
    verb(
        "놀다",
        "play",
        "spielen spielt gespielt",
        "",
        "open home room",
        subjects="young pet name sibling",
        manners="quiet",
        weight=3,
    ),
    verb("운동하다", "exercise", "trainieren trainiert trainiert", "", "sport", manners="hard", weight=2),
    verb("쇼핑하다", "go_shopping went", "ein|kaufen kauft eingekauft", "", "shop goods city", weight=2),
    verb("낚시하다", "fish", "angeln angelt geangelt", "", "water", weight=2),
    verb(
        "사진을 찍다", "take_photos took", "fotografieren fotografiert fotografiert", "", "open animals city", weight=2
    ),
    verb(
        "일어나다",
        "get_up got+",
        "auf|stehen steht aufgestanden sein",
        "",
        "",
        manners="slow quick",
        times="day",
        together=False,
        weight=2,
    ),
    verb(
        "살다",
        "live",
        "wohnen wohnt gewohnt",
        "",
        "city live",
        place_marker="에",
        required="place",
        tenses="present past future",
        weight=3,
    ),
    verb(
        "도착하다",
        "arrive",
        "an|kommen kommt angekommen sein",
        "",
        "rail city",
        place_marker="에",
        required="place",
        tenses="past future",
        tools="vehicle",
        modal=False,
        times="day",
        weight=2,
    ),
    verb(
        "노래하다",
        "sing sang",
        "singen singt gesungen",
        "",
        "stage home open",
        manners="loud well quiet",
        main=False,
        weight=2,
    ),
)

_TO: dict[str, Any] = {"place_marker": "에", "goal": True, "required": "place"}
_BY: dict[str, Any] = {"place_marker": "에", "goal": True, "required": "place tool"}

# German has different verbs for going on foot (gehen), by vehicle (fahren) and by plane (fliegen)
MOTION = (
    verb("가다", "go went", "gehen geht gegangen sein", "", "near", weight=7, **_TO),
    verb("가다", "go went", "fahren fährt gefahren sein", "", "near", tools="vehicle local", weight=3, **_BY),
    verb("가다", "go went", "fahren fährt gefahren sein", "", "city", tools="vehicle rail", weight=2, **_BY),
    verb("가다", "go went", "fahren fährt gefahren sein", "", "city", main=False, weight=2, **_TO),
    verb("가다", "go went", "fliegen fliegt geflogen sein", "", "city", tools="plane", weight=1, **_BY),
    verb("오다", "come came", "kommen kommt gekommen sein", "", "near", tools="vehicle local", weight=3, **_TO),
    verb("오다", "come came", "kommen kommt gekommen sein", "", "city", tools="vehicle rail", weight=2, **_TO),
    verb(
        "돌아오다",
        "come_back came",
        "zurück|kommen kommt zurückgekommen sein",
        "",
        "city base",
        tools="vehicle",
        tenses="past future",
        weight=2,
        **_TO,
    ),
)
