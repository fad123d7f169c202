"""Telling people what happens: events as they come, pictures of what came. Knows neither models nor corpora."""
