"""The command line: one file per command. Heavy imports belong inside the command's function."""
