"""The configuration of a run: its schema (`schema`), and how it is read from YAML (`load`)."""
