"""Strings only: cleaning, tokenizers, vocabularies, and the codec that combines them. It reads no corpus files."""
