"""Words of the phrasebook by their Korean form, for the tests that build sentences."""

from __future__ import annotations

from transformer_mt.phrasebook import pools
from transformer_mt.phrasebook.lexicon import adverbs, places

NOUNS = {noun.ko: noun for noun in pools.NOUNS}
VERBS = {verb.ko: verb for verb in reversed(pools.VERBS)}
ADJECTIVES = {adjective.ko: adjective for fitted in pools.ADJECTIVES.values() for adjective in fitted}
PLACES = {place.ko: place for place in places.PLACES}
TIMES = {time.ko: time for time in adverbs.TIMES}
TOOLS = {tool.ko: tool for tool in adverbs.TOOLS}
SPOTS = {spot.ko: spot for spot in places.SPOTS}
