"""The schema as documentation: keys of each section, the tables of the reference, the JSON schema for editors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

Schema = dict[str, Any]  # a JSON schema, or a part of one
TITLE = "transformer_mt config"


@cache
def json_schema() -> Schema:
    """The JSON schema of a config, with which editors complete and check keys."""
    from transformer_mt.config.schema import Config

    schema = Config.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": TITLE}


def keys_at(path: Sequence[str | int], values: Any = None) -> list[str]:
    """The keys that the section at `path` may have.

    values: the config as written; if the section has a `kind` there, only the keys of that kind.
    """
    places = [json_schema()]
    for part in path:
        if isinstance(values, Mapping):
            values = values.get(part)
        else:
            within = isinstance(values, list) and isinstance(part, int) and part < len(values)
            values = values[part] if within else None
        if isinstance(part, str):
            places = [one for place in places for one in _sections(place["properties"].get(part, {}))]
        named = values.get("kind") if isinstance(values, Mapping) else None
        places = [place for place in places if _kind(place) == named] or places
    return list(dict.fromkeys(key for place in places for key in place["properties"]))


def reference_table() -> str:
    """All keys as Markdown: one table per section, even if the section can be in several places."""
    places: dict[str, tuple[list[Schema], list[str]]] = {}
    _collect([json_schema()], "", places)
    return "\n".join(line for sections, paths in places.values() for line in _table(sections, paths))


def _collect(sections: list[Schema], path: str, places: dict[str, tuple[list[Schema], list[str]]]) -> None:
    """Record the paths of each group of sections (the kinds of one key), in the order of the schema."""
    for known, paths in places.values():
        if all(section in known for section in sections):
            if len(sections) == len(known) and path not in paths:
                paths.append(path)
            return  # the sections inside are known, too
    places[path] = sections, [path]
    for section in sections:
        for name, field in section["properties"].items():
            if inside := _sections(field):
                _collect(inside, f"{path}.{name}" if path else name, places)


def _table(sections: Sequence[Schema], paths: Sequence[str]) -> Iterator[str]:
    """One section; if it has several kinds, a column lists the kinds that have the key."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for section in sections:
        for row in _rows(section):
            rows.setdefault(row, []).append(_kind(section) or "without kind")
    kinds = [kind for kind in map(_kind, sections) if kind]
    yield f"#### {', '.join(f'`{path}`' for path in paths) if paths != [''] else 'Top level'}\n"
    if kinds:
        yield f"`kind` (required): {', '.join(f'`{kind}`' for kind in kinds)}.\n"
    columns = ["key", *(["kind"] if kinds else []), "type", "default", "range", "meaning"]
    yield f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}"
    for (key, *cells), owners in rows.items():
        kind = [", ".join(owners) if len(owners) < len(kinds) else "all"] if kinds else []
        yield f"| {' | '.join([f'`{key}`', *kind, *cells])} |"
    yield ""


def _rows(section: Schema) -> Iterator[tuple[str, ...]]:
    """Key, type, default, range and meaning of each key except `kind`."""
    for name, field in section["properties"].items():
        if name == "kind":
            continue
        default = "" if isinstance(field.get("default"), dict) else f"`{_plain(field.get('default'))}`"
        if name in section.get("required", ()):
            default = "required"
        has_range = not _sections(field) or "default" in field
        limits = ", ".join(dict.fromkeys(_bounds(field))) if has_range else ""
        meaning = field.get("description", "").replace("|", "\\|").replace("<", "&lt;")
        yield name, _type_of(field), default, limits, meaning


def _plain(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return "[" + ", ".join(map(_plain, value)) + "]" if isinstance(value, list) else str(value)


_OR = " \\| "
_TYPES = {"integer": "int", "number": "float", "string": "text", "boolean": "bool", "null": "null"}


def _type_of(field: Schema) -> str:
    if "$ref" in field:
        return "section"
    if "enum" in field or "const" in field:
        return _OR.join(f"`{_plain(value)}`" for value in field.get("enum", [field.get("const")]))
    if parts := field.get("anyOf") or field.get("oneOf"):
        return _OR.join(dict.fromkeys(one for part in parts for one in _type_of(part).split(_OR)))
    if field["type"] == "array":
        return "list of " + _type_of(field.get("items") or field["prefixItems"][0])
    if field["type"] == "object":
        return "mapping of " + _type_of(field["additionalProperties"])
    return _TYPES[field["type"]]


_SIGNS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}


def _bounds(field: Schema) -> Iterator[str]:
    """The limits of a value and of the values inside it."""
    for name, sign in _SIGNS.items():
        if name in field:
            yield f"{sign} {field[name]}"
    length = field.get("minItems") or field.get("minLength")
    if length and "prefixItems" not in field:
        yield f"length >= {length}"
    inside = [field.get("items"), field.get("additionalProperties"), *field.get("prefixItems", ())]
    for part in [*field.get("anyOf", ()), *field.get("oneOf", ()), *inside]:
        if isinstance(part, dict):
            yield from _bounds(part)


def _sections(field: Schema) -> list[Schema]:
    """The sections that a field may contain, in the order of the schema."""
    if "$ref" in field:
        return [json_schema()["$defs"][field["$ref"].rpartition("/")[2]]]
    parts = [*field.get("anyOf", ()), *field.get("oneOf", ()), field.get("items"), field.get("additionalProperties")]
    found = [section for part in parts if isinstance(part, dict) for section in _sections(part)]
    return list({id(section): section for section in found}.values())


def _kind(section: Schema) -> str | None:
    kind = section["properties"].get("kind")
    return str(kind["const"]) if kind else None
