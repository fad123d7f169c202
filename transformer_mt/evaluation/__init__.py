"""Scores of translations: lists of strings in, scores with signatures out. It knows no model, data or config."""
