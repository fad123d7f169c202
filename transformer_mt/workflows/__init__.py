"""The commands as Python functions; `import transformer_mt` has the most used ones.

A workflow returns a report. It does not parse arguments or print results; progress and notes go to stderr, or into a
notebook.
"""
