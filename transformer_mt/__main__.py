"""`python -m transformer_mt` is `tmt`."""

from transformer_mt.cli.main import run

if __name__ == "__main__":
    run()
