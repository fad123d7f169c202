"""What people see of a run: messages, tables, progress bars, plots. Knows neither models nor corpora."""
