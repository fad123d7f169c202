"""A stand-in for pydantic, so that the model and its training run where only torch and numpy are installed.

`install()` does nothing where pydantic can be imported. Elsewhere the sections of a config take their defaults and what
they are given; nothing is checked, so use it with values that are known to be valid.
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any

_MISSING: Any = object()


def install() -> None:
    try:
        import pydantic  # noqa: F401
    except ImportError:
        sys.modules["pydantic"] = _StandIn("pydantic")


class BaseModel:
    """A section: keyword arguments become attributes; fields that are not given have their defaults."""

    def __init__(self, **values: Any) -> None:
        fields = {name for cls in type(self).__mro__ for name in inspect.get_annotations(cls)}
        for name in fields:
            value = values.pop(name, getattr(type(self), name, _MISSING))
            if value is _MISSING:
                raise TypeError(f"{type(self).__name__} needs {name}")
            setattr(self, name, value)
        if values:
            raise TypeError(f"{type(self).__name__} has no {', '.join(values)}")


def field(default: Any = _MISSING, **_: Any) -> Any:
    return default


class Anything:
    """A validator, a tag or a decorator: takes all arguments and changes nothing."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        return function


class _StandIn(ModuleType):
    BaseModel, Field, ConfigDict = BaseModel, staticmethod(field), dict

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything
