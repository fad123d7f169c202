"""Strings only: cleaning, tokenizers, vocabularies, and the codec that joins them. Never files of a corpus."""
