"""The schema read as a book: which keys stand where, and the reference tables of the README."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

Models = tuple[type[BaseModel], ...]


def keys_at(path: Sequence[str | int], values: Any = None) -> list[str]:
    """The keys that the mapping at `path` may have.

    values: the config as it was written; where it names a `kind`, the keys of that kind, else those of all kinds.
    """
    from transformer_mt.config.schema import Config

    places: Models = (Config,)
    for part in path:
        values = _inside(values, part)
        if isinstance(part, str):
            places = tuple(model for place in places for model in _models(place.model_fields.get(part)))
            places = _of_kind(places, values)
        else:
            places = _of_kind(places, values)
    return list(dict.fromkeys(key for place in places for key in place.model_fields))


def _inside(values: Any, part: str | int) -> Any:
    if isinstance(values, Mapping):
        return values.get(part)
    return values[part] if isinstance(values, list) and isinstance(part, int) and part < len(values) else None


def _of_kind(models: Models, values: Any) -> Models:
    named = values.get("kind") if isinstance(values, Mapping) else None
    return tuple(model for model in models if _kind(model) == named) or models


def reference_table() -> str:
    """Every key of the schema as Markdown: a table for each section, told once wherever it may stand."""
    from transformer_mt.config.schema import Config

    places: dict[Models, list[str]] = {}
    _collect((Config,), "", places)
    return "\n".join(line for models, paths in places.items() for line in _table(models, paths))


def _collect(models: Models, path: str, places: dict[Models, list[str]]) -> None:
    """Note under which paths each group of models stands, in the order of the schema."""
    paths = next((paths for known, paths in places.items() if set(models) <= set(known)), None)
    if paths is not None:
        if set(places) >= {models} and path not in paths:
            paths.append(path)
        return  # told already, and so are its insides
    places[models] = [path]
    for model in models:
        for name, field in model.model_fields.items():
            inside = _models(field)
            if inside:
                _collect(inside, f"{path}.{name}" if path else name, places)


@dataclass(frozen=True)
class _Row:
    key: str
    type: str
    default: str
    range: str
    meaning: str


def _table(models: Models, paths: Sequence[str]) -> Iterator[str]:
    """One section; where it comes in several kinds, a column says which kinds have the key."""
    rows: dict[_Row, list[str]] = {}
    for model in models:
        for name, field in model.model_fields.items():
            if name != "kind":
                rows.setdefault(_row(name, field), []).append(_kind(model) or "apart")
    kinds = [kind for kind in map(_kind, models) if kind]
    yield f"#### {', '.join(f'`{path}`' for path in paths) if paths != [''] else 'Top level'}\n"
    if kinds:
        yield f"`kind` (required): {', '.join(f'`{kind}`' for kind in kinds)}.\n"
    columns = ["key", *(["kind"] if kinds else []), "type", "default", "range", "meaning"]
    yield f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}"
    for row, having in rows.items():
        kind = [", ".join(having) if len(having) < len(kinds) else "all"] if kinds else []
        yield f"| {' | '.join([f'`{row.key}`', *kind, row.type, row.default, row.range, row.meaning])} |"
    yield ""


def _row(name: str, field: FieldInfo) -> _Row:
    section = _models(field)
    if field.default is PydanticUndefined:
        default = "required"
    elif isinstance(field.default, BaseModel):
        default = ""
    else:
        default = f"`{_plain(field.default)}`"
    kind = _type_name(field.annotation)
    return _Row(
        name,
        kind,
        default,
        "" if section else _range(field),
        (field.description or "").replace("|", "\\|").replace("<", "&lt;"),
    )


def _plain(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, tuple):
        return "[" + ", ".join(_plain(item) for item in value) + "]"
    return str(value)


_NAMES = {int: "int", float: "float", str: "text", bool: "bool", type(None): "null"}


def _type_name(annotation: Any) -> str:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type_name(parts[0])
    if origin is Literal:
        return " \\| ".join(f"`{value}`" for value in parts)
    if origin in (Union, types.UnionType):
        return " \\| ".join(dict.fromkeys(_type_name(part) for part in parts))
    if origin is tuple:
        return "list of " + _type_name(parts[0])
    if origin is dict:
        return "mapping of " + _type_name(parts[1])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "section"
    return _NAMES.get(annotation, str(annotation))


def _range(field: FieldInfo) -> str:
    signs = {Ge: (">=", "ge"), Gt: (">", "gt"), Le: ("<=", "le"), Lt: ("<", "lt"), MinLen: ("length >=", "min_length")}
    bounds = [
        f"{sign} {getattr(item, name)}"
        for item in [*field.metadata, *_metadata(field.annotation)]
        for kind, (sign, name) in signs.items()
        if type(item) is kind
    ]
    return ", ".join(dict.fromkeys(bounds))


def _metadata(annotation: Any) -> Iterator[Any]:
    """What is written beside a type, at any depth."""
    for item in getattr(annotation, "__metadata__", ()):
        yield from item.metadata if isinstance(item, FieldInfo) else [item]
    if get_origin(annotation) is not Literal:
        for part in get_args(annotation):
            yield from _metadata(part)


def _models(field: FieldInfo | Any) -> Models:
    """The section classes inside a field's type, in the order they are written."""
    annotation = field.annotation if isinstance(field, FieldInfo) else field
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return (annotation,)
    return tuple(dict.fromkeys(model for part in get_args(annotation) for model in _models(part)))


def _kind(model: type[BaseModel]) -> str | None:
    field = model.model_fields.get("kind")
    return get_args(field.annotation)[0] if field else None
