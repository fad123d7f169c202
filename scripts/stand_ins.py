"""Stand-ins for packages that training and decoding import but do not need: torch and numpy are then enough for them.

    with stand_ins.installed():
        from transformer_mt.training.trainer import Trainer

Packages that can be imported stay as they are. Without pydantic, the sections of a config take their defaults and what
they are given, and nothing is checked: use it with values that are known to be valid.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

PACKAGES = ("pydantic", "pydantic_core", "yaml", "tqdm.auto", "tabulate", "safetensors.torch", "filelock")
_MISSING: Any = object()


@contextmanager
def installed() -> Iterator[None]:
    """Inside the block, every package can be imported. Afterwards only pydantic, which other sections may need."""
    put = []
    for package in PACKAGES:
        try:
            import_module(package)
        except ImportError:
            for name in (name for name in {package.partition(".")[0], package} if not sys.modules.get(name)):
                sys.modules[name] = _Pydantic(name) if name == "pydantic" else _StandIn(name)
                put.append(name)
    try:
        yield
    finally:
        for name in put:
            if name != "pydantic":  # PyTorch must not take the others for what they are not
                del sys.modules[name]


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


class _Everything(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __or__(cls, _: Any) -> Any:  # a union of types
        return cls

    __ror__ = __or__


class _Anything(metaclass=_Everything):
    """A class, function or decorator: it takes all arguments, has all attributes, and changes nothing."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        return function

    def __iter__(self) -> Iterator[Any]:
        return iter(())


class _StandIn(ModuleType):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything


class _Pydantic(_StandIn):
    BaseModel, Field, ConfigDict = BaseModel, staticmethod(field), dict
    create_model = staticmethod(lambda name, **_: type(name, (BaseModel,), {}))
