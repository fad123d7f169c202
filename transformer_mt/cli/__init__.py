"""The command line: one short file a command, everything heavy imported inside the command."""
