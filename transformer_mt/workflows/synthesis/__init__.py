"""The parts of `tmt synthesize`: its plan, the text to translate, translating in shards, filtering, estimates."""
