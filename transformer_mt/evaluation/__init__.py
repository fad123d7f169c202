"""Judging translations: lists of strings in, scores with their signatures out. Knows no model, data or config."""
