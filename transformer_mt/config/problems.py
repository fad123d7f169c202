"""Everything that is wrong with a config: one line for each problem, with its place and the most similar known key.

Pydantic looks for contradictions in a section only if each of its values is right by itself. So wrong keys are removed
and the rest is checked again, until a round finds nothing new.
"""

from __future__ import annotations

import copy
import difflib
import json
import re
from collections.abc import Iterator, Mapping
from numbers import Number
from typing import Any

from pydantic import ValidationError

from transformer_mt.config.direction import DIRECTION, TAG
from transformer_mt.config.languages import code_of
from transformer_mt.config.reference import keys_at
from transformer_mt.config.schema import Config
from transformer_mt.config.section import LANGUAGE, NAME
from transformer_mt.config.yaml_source import KeyPath, YamlSource, shortened

_UNKNOWN = ("extra_forbidden", "invalid_key")
_MOST_SUGGESTIONS = 200  # searching a similar key takes a millisecond
_ROUNDS = 5  # for values, for contradictions in a section, and for those between sections
_WORD = re.compile(r"[a-z_]+(?:\.[a-z_]+)*")
_WANTED = {
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "string_unicode": "must be text; \\ud800 to \\udfff are halves of characters",
    "string_type": "must be text; put numbers and true or false in quotes",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "too_short": "must not be empty",
    "too_long": "must have at most {max_length} values",
    "dict_type": "must be a mapping of keys",
    "model_type": "must be a mapping of keys",
    "model_attributes_type": "must be a mapping of keys",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match the pattern {pattern}",
}
_PATTERNS = {
    LANGUAGE: "must be an ISO 639 code of two or three small letters, such as en, ko or deu",
    DIRECTION: "must be two ISO 639 codes, such as ko-en",
    TAG: "must be in <>, without spaces, such as <synthetic>",
    NAME: "must have only a-z, A-Z, 0-9, '.', '_' and '-', and begin with a letter or digit",
}


def find_problems(source: YamlSource) -> list[str]:
    """One line for each problem, in the order of the file."""
    values = copy.deepcopy(source.values)
    faulty: set[KeyPath] = set()
    names: set[str | int] = set()  # the last parts of `faulty`
    found: dict[str, int] = {}
    for _ in range(_ROUNDS):
        new = []
        for path, sentence, named, is_missing in _problems(values, source):
            # In a later round, the removal of a faulty key may have caused it.
            if path not in faulty and not named & names and not (faulty and is_missing):
                add_problem(found, f"{source.place(path)}: {sentence}", source.line(path))
                new.append(path)
        removed = {_remove(values, path) for path in new} - {()}
        if not removed:
            break
        faulty |= {*new, *removed}
        names = {path[-1] for path in faulty}
    return sorted(found, key=lambda sentence: found[sentence])


def problems_of_values(values: dict[str, Any]) -> list[str]:
    """What is wrong with single keys: unknown names and wrong values, without contradictions between keys."""
    found = _problems(values, YamlSource("", values, {}))
    return list(dict.fromkeys(sentence for _, sentence, named, _ in found if not named))


def add_problem(found: dict[str, int], sentence: str, line: int, mark: str = ", but must be ") -> None:
    """Add a problem. If another form of the same value is wanted too, both stand in one sentence.

    mark: what stands between a value and the form that is wanted
    """
    value, but, wanted = sentence.partition(mark)
    same = next((other for other in found if but and other.startswith(value + but)), None)
    if same is None:
        found[sentence] = line
    elif wanted not in same:
        found[f"{same}, or {wanted}"] = found.pop(same)


Problem = tuple[KeyPath, str, set[str | int], bool]  # where, what, the keys it names, and whether a key is missing


def _problems(values: Any, source: YamlSource) -> Iterator[Problem]:
    try:
        Config.model_validate(values)
        return
    except ValidationError as error:
        items: list[dict[str, Any]] = [dict(item) for item in error.errors(include_url=False)]
    ends_in_key = [item["type"] in ("missing", "invalid_key") for item in items]
    paths = [_path_in_file(item["loc"], values, is_key) for item, is_key in zip(items, ends_in_key, strict=True)]
    # A value of several possible forms that has one of them: only the problems of that form are of use.
    of_a_form = {
        path[:end]
        for item, path in zip(items, paths, strict=True)
        for end in range(len(path) + (not _is_of_type(item) and item["type"] != "literal_error"))
    }
    unknown = 0
    for item, path in zip(items, paths, strict=True):
        loc = item["loc"]
        if _is_of_type(item) and path in of_a_form:
            continue
        if item["type"] == "too_short" and sum(other["loc"][: len(loc)] == loc for other in items) > 1:
            continue  # a list that is short only because its items are wrong
        if item["type"] != "value_error":
            unknown += item["type"] in _UNKNOWN
            yield path, _sentence(item, path, values, unknown <= _MOST_SUGGESTIONS), set(), item["type"] == "missing"
            continue
        # One error has all contradictions of a section, one per line. Each gets the place of the first key it names.
        name = _name(path)
        for problem in str(item["ctx"]["error"]).splitlines():
            keys = [path + tuple(word.split(".")) for word in _WORD.findall(problem)]
            spot = next((key for key in keys if key in source.lines), path)
            yield spot, f"{name}: {problem}" if name else problem, {key[-1] for key in keys}, False


def _is_of_type(item: Mapping[str, Any]) -> bool:
    """Whether the value has a wrong type, so that nothing else of it was looked at."""
    return str(item["type"]).endswith("_type")


def _path_in_file(loc: tuple[str | int, ...], values: Any, ends_in_key: bool) -> KeyPath:
    """Pydantic's location without the parts that are not in the file: union tags and added levels of lists.

    ends_in_key: the last part is a key that the file may lack.
    """
    path: list[str | int] = []
    for position, part in enumerate(loc):
        if isinstance(values, dict) and part in values:
            path.append(str(part))
            values = values[part]
        elif isinstance(values, list) and isinstance(part, int) and part < len(values):
            path.append(part)
            values = values[part]
        elif ends_in_key and position == len(loc) - 1 and isinstance(part, str):
            path.append(part)
    return tuple(path)


def _remove(values: Any, path: KeyPath) -> KeyPath:
    """Remove a key (for an item, the key of its list), so that its default is used. Returns the path of the key."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    for part in path[:-1]:
        inside = part in values if isinstance(values, dict) else isinstance(values, list) and int(part) < len(values)
        if not inside:
            return ()
        values = values[part]
    if not path or not isinstance(values, dict):
        return ()
    key = path[-1] if path[-1] in values else next((key for key in values if str(key) == path[-1]), None)
    if key is None:
        return ()
    del values[key]
    return path


def _name(path: KeyPath) -> str:
    return shortened(".".join(map(str, path)))


def _sentence(item: dict[str, Any], path: KeyPath, values: Any, suggests: bool = True) -> str:
    name, kind, context = _name(path), item["type"], item.get("ctx", {})
    if kind in _UNKNOWN:
        return _unknown_key(path, values) if suggests else f"unknown key '{name}'"
    if kind == "missing" and isinstance(item["loc"][-1], int):
        return f"'{name}' has too few values"
    if kind == "missing":
        return f"key '{name}' is missing"
    if kind == "union_tag_not_found":
        return f"'{name}' needs a 'kind'"
    if kind == "union_tag_invalid":
        tags = [tag.strip(" '") for tag in str(context["expected_tags"]).split(",")]
        near = difflib.get_close_matches(str(context["tag"]), tags, n=1, cutoff=0.6)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        return f"'{name}.kind' is '{shortened(str(context['tag']))}', but must be one of {', '.join(tags)}{hint}"
    return f"'{name}' {value_problem(item)}"


def plain(value: Any) -> Any:
    """A value with Python's own numbers in place of NumPy's: callers in Python may give any."""
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    is_numpys = hasattr(value, "item") and (isinstance(value, Number) or type(value).__name__ in ("bool", "bool_"))
    return value.item() if is_numpys else value


def value_problem(item: Mapping[str, Any]) -> str:
    """What an error of pydantic says of a value, to follow the name of its key: `is 0, but must be at least 1`."""
    context = item.get("ctx", {})
    try:
        value = json.dumps(item.get("input"), ensure_ascii=False, default=str)
    except TypeError:  # YAML has keys that JSON has not, such as dates
        value = str(item.get("input"))
    value = value if len(value) < 60 else value[:57] + "..."
    code = code_of(str(item.get("input"))) if context.get("pattern") == LANGUAGE else None
    return f"is {value}, but {wanted_value(item)}" + (f"; did you mean '{code}'?" if code else "")


def wanted_value(item: Mapping[str, Any]) -> str:
    """What an error of pydantic says of a value, without the value: `must be at least 1`."""
    kind, context = item["type"], item.get("ctx", {})
    if kind == "literal_error":
        names = str(context["expected"]).replace(" or ", ", ")
        is_mapping = isinstance(item.get("input"), dict)
        one = "one of " if "," in names else ""
        near = difflib.get_close_matches(str(item.get("input")), re.findall("'([^']+)'", names), n=1, cutoff=0.6)
        meant = f"; did you mean {near[0]!r}?" if near and one else ""
        return f"must be {'only the name, which is ' if is_mapping else ''}{one}{names}{meant}"
    wanted = _WANTED[kind].format(**context) if kind in _WANTED else item["msg"][:1].lower() + item["msg"][1:]
    return _PATTERNS.get(str(context.get("pattern")), wanted)


def _unknown_key(path: KeyPath, values: Any) -> str:
    """Names the key that was probably meant: a similar one of this section, or the same of another section."""
    name, known = _name(path), keys_at(path[:-1], values)
    if path[-1] in known:  # of another form of this section
        for part in path[:-1]:
            values = values[part]
        return f"key '{name}' cannot be combined with {', '.join(f'{key!r}' for key in values if key != path[-1])}"
    near = difflib.get_close_matches(str(path[-1]), known, n=1, cutoff=0.5)
    sections = ("model", "training", "decoding", "runtime")
    if len(path) == 1 or (len(path) == 2 and path[0] in sections):  # a key in the wrong section, or in none
        near += [f"{section}.{path[-1]}" for section in sections if path[-1] in keys_at((section,))]
    if near:
        return f"unknown key '{name}'; did you mean {' or '.join(map(repr, near))}?"
    return f"unknown key '{name}'" + (f"; known here: {', '.join(known)}" if 0 < len(known) <= 12 else "")
