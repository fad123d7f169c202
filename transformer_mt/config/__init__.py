"""The config of a run: its keys (`schema`), and reading it from YAML (`load`)."""
