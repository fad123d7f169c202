"""The schema read as a book: which keys stand where, and the reference table of the README."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined


def keys_at(path: tuple[str | int, ...]) -> list[str]:
    """The keys a mapping at `path` may have; over all kinds where it is one of several kinds."""
    from transformer_mt.config.schema import Config

    places: list[type[BaseModel]] = [Config]
    for part in path:
        if isinstance(part, str):
            places = [model for place in places for model in _models(place.model_fields.get(part))]
    return list(dict.fromkeys(key for place in places for key in place.model_fields))


def reference_table() -> str:
    """Every key of the schema as Markdown: one table for each section, with type, default and sentence."""
    from transformer_mt.config.schema import Config

    return "\n".join(_tables(Config, "", "the top level"))


def _tables(model: type[BaseModel], prefix: str, title: str) -> Iterator[str]:
    yield f"#### {title}\n"
    yield "| key | type | default | meaning |\n| --- | --- | --- | --- |"
    deeper: list[tuple[type[BaseModel], str, str]] = []
    for name, field in model.model_fields.items():
        models = [found for found in _models(field) if found is not model]
        yield _row(name, field, bool(models))
        for found in models:
            kind = found.model_fields.get("kind")
            label = f" (kind: {get_args(kind.annotation)[0]})" if kind else ""
            deeper.append((found, f"{prefix}{name}.", f"`{prefix}{name}`{label}"))
    yield ""
    for found, path, heading in deeper:
        if heading.startswith(("`tokenizer.source", "`tokenizer.target")):
            continue  # the kinds of a side are those of `tokenizer`, told once
        yield from _tables(found, path, heading)


def _row(name: str, field: FieldInfo, is_section: bool) -> str:
    default = field.default
    if default is PydanticUndefined:
        shown = "required"
    elif isinstance(default, BaseModel):
        shown = "see below"
    else:
        shown = f"`{_plain(default)}`"
    kind = "section" if is_section else f"{_type_name(field.annotation)}{_range(field)}"
    return f"| `{name}` | {kind} | {shown} | {field.description or ''} |".replace("\n", " ")


def _plain(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, tuple):
        return "[" + ", ".join(_plain(item) for item in value) + "]"
    return str(value)


def _type_name(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _type_name(get_args(annotation)[0])
    if origin is Literal:
        return " \\| ".join(str(value) for value in get_args(annotation))
    if origin in (Union, types.UnionType):
        return " \\| ".join(dict.fromkeys(_type_name(part) for part in get_args(annotation)))
    if origin is tuple:
        parts = [part for part in get_args(annotation) if part is not Ellipsis]
        return "list of " + _type_name(parts[0])
    if origin is dict:
        return "mapping of " + _type_name(get_args(annotation)[1])
    names = {int: "int", float: "float", str: "text", bool: "bool", type(None): "null"}
    return names.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _range(field: FieldInfo) -> str:
    signs = {Ge: (">=", "ge"), Gt: (">", "gt"), Le: ("<=", "le"), Lt: ("<", "lt")}
    bounds = [
        f"{sign} {getattr(item, name)}"
        for item in _metadata(field)
        for kind, (sign, name) in signs.items()
        if type(item) is kind
    ]
    return f" ({', '.join(bounds)})" if bounds else ""


def _metadata(field: FieldInfo) -> Iterator[Any]:
    yield from field.metadata
    for part in [field.annotation, *get_args(field.annotation)]:
        for item in getattr(part, "__metadata__", ()):
            yield from item.metadata if isinstance(item, FieldInfo) else [item]


def _models(field: FieldInfo | Any) -> list[type[BaseModel]]:
    """The section classes inside a field's type, in the order they are written."""
    annotation = field.annotation if isinstance(field, FieldInfo) else field
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in typing.get_args(annotation) for model in _models(part)]
