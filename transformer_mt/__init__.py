"""transformer_mt: "Attention Is All You Need" written by hand, and a translator trained with it."""

__version__ = "0.1.0"
