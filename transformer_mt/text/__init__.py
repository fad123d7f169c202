"""Strings: cleaning, tokenizers, vocabularies, and the codec that combines them. No corpus files are read here."""
