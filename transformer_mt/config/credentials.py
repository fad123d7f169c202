"""A config may name addresses with a password or a signature. What is written and shown does not have them."""

from __future__ import annotations

from typing import Any

from transformer_mt.errors import without_credentials


def without_credentials_in(values: Any) -> Any:
    """The same plain values, with addresses as `without_credentials` writes them."""
    if isinstance(values, str):
        return without_credentials(values)
    if isinstance(values, dict):
        return {key: without_credentials_in(value) for key, value in values.items()}
    if isinstance(values, (list, tuple)):
        return [without_credentials_in(value) for value in values]
    return values
