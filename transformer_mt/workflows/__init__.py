"""The program as functions: what each command does, for Python. `import transformer_mt` offers the most used ones.

Each module is one piece of work with its report. Nothing here parses arguments or prints results; progress goes to
stderr, or into a notebook.
"""
