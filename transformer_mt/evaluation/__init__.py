"""Scores of translations: lists of strings in, scores with signatures out. Models and data are unknown here."""
