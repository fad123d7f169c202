"""The words of the phrasebook: tables of nouns, verbs, adjectives, places and adverbs in three languages."""

from __future__ import annotations
