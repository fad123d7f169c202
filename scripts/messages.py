"""Every message of the program, read off its source: what is printed, where it says the problem is, and what to do.

A message is a call of `TmtError` or of a class below it, a contradiction that a section of the config names, a refusal
that a search names, or a note on stderr. Parts that are known only at run time become words in capitals: `FILE:LINE`.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from placeholders import PATHS, called, placeholder, word

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "transformer_mt"
MOST = 8  # forms of one message that are written out
DEEPEST = 12  # expressions inside each other that are followed
Function = ast.FunctionDef | ast.AsyncFunctionDef

# Results
OUTPUT = r"(?:run|data|step|packing|model|machine|plots|done|next|epoch) |(?:tmt: )?[Ww]rote |\w+: \w+ and verified"


@dataclass(frozen=True)
class Message:
    """kind: error, config or note; home: module and function it comes from."""

    kind: str
    text: str
    place: str
    remedy: str
    home: str

    @property
    def printed(self) -> str:
        place = self.place
        if self.kind == "config":
            place = "FILE:LINE" if self.home.startswith("config.problems") else "FILE:LINE: SECTION"
        head = f"{place}: {self.text}" if place and not self.text.startswith("FILE:LINE") else self.text
        remedy = "" if re.fullmatch("[A-Z_]+", self.remedy) else self.remedy  # what the caller gave
        return "\n  ".join([head, *remedy.splitlines()])


@dataclass(frozen=True, eq=False)
class Module:
    name: str
    tree: ast.Module


@dataclass(frozen=True)
class Scope:
    """Where an expression stands: its module, the functions around it, and what is known of their names."""

    module: Module
    functions: tuple[Function, ...] = ()
    known: Mapping[str, tuple[ast.expr, Scope]] = field(default_factory=dict)

    @property
    def home(self) -> str:
        return ".".join([self.module.name, *(one.name for one in self.functions)])


class LimitError(Exception):
    """A message that would be dropped from the page: raise a limit, or write the message more simply."""


@cache
def modules() -> dict[str, Module]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = [part for part in path.relative_to(PACKAGE).with_suffix("").parts if part != "__init__"]
        found[".".join(parts)] = Module(".".join(parts), ast.parse(path.read_text(encoding="utf-8")))
    return found


@cache
def error_classes() -> frozenset[str]:
    """TmtError and the other errors that the package defines: what they say reaches the user too.

    Not RequestError: clients of a server get it, and docs/serving.md explains its numbers.
    """
    names = {
        node.name for module in modules().values() for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)
    }
    return frozenset(name for name in names if name.endswith("Error") and name != "RequestError")


def sites() -> Iterator[tuple[str, ast.AST, Scope]]:
    """Every place in the source that makes a message, with its kind."""

    for module in modules().values():
        for node, scope in _nodes(module.tree, Scope(module)):
            if kind := _kind_of(node, scope):
                yield kind, node, scope


def _nodes(node: ast.AST, scope: Scope) -> Iterator[tuple[ast.AST, Scope]]:
    """All nodes below a node, each with where it stands."""
    for child in ast.iter_child_nodes(node):
        inner = Scope(scope.module, (*scope.functions, child)) if isinstance(child, Function) else scope
        yield child, inner
        yield from _nodes(child, inner)


def _kind_of(node: ast.AST, scope: Scope) -> str:
    """error, note or config; with what its arguments are, where they differ; "" for what is no message."""
    function = scope.functions[-1].name if scope.functions else ""
    if isinstance(node, ast.Call) and node.args:
        return _kind_of_call(node, scope)
    if isinstance(node, ast.Return) and function == "refusal" and isinstance(node.value, ast.Tuple):
        return "error pair"
    if isinstance(node, ast.Return) and function == "problems" and isinstance(node.value, ast.List | ast.IfExp):
        return "config values"
    if scope.module.name == "config.problems":
        if isinstance(node, ast.Return) and node.value is not None and function in ("_sentence", "_unknown_key"):
            return "config values"
        if isinstance(node, ast.AnnAssign | ast.Assign) and isinstance(node.value, ast.Dict) and not function:
            return "config table"
    if isinstance(node, ast.Return) and function.removeprefix("_").startswith("note_of"):
        return "note values"
    if isinstance(node, ast.keyword) and node.arg == "notes" and isinstance(node.value, ast.Tuple):
        return "note values"
    if not isinstance(node, ast.Assign | ast.AugAssign):
        return ""
    name = ast.unparse(node).partition(" =")[0]
    return "note values" if ("notes" in name and function) or name == "NOTICE" else ""


def _kind_of_call(node: ast.Call, scope: Scope) -> str:
    name, function = called(node), scope.functions[-1] if scope.functions else None
    if name in error_classes():
        return "error"
    if name == "ValueError" and not _is_joined_list(node.args[0]):
        validates = function is not None and "validator" in " ".join(map(ast.unparse, function.decorator_list))
        return "config" if validates or scope.module.name.startswith("config.") else ""
    if name == "append" and "problems" in ast.unparse(node.func) and function is not None:
        is_config = scope.module.name.startswith("config.") or function.name == "problems"
        return "config" if is_config else ""
    if name == "Remark" or (name == "BleuTokenizer" and len(node.args) > 1):
        return "note pair"
    if isinstance(node.func, ast.Name) and name == "note":
        return "note" if scope.module.name != "text.cleaning" else ""  # there, `note` counts what a rule changes
    to_stderr = name == "print" and any("stderr" in ast.unparse(one) for one in node.keywords)
    says = name in ("say", "_say", "warn") or ast.unparse(node.func) == "notes.append"
    return "note" if (to_stderr and scope.module.name != "reporting.notes") or says else ""


def _is_joined_list(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and called(node) == "join"


def messages() -> list[Message]:
    """All messages, without repetitions, in the order of the source."""
    found: dict[str, Message] = {}
    for kind, node, scope in sites():
        for one in _forms(kind, node, scope):
            found.setdefault(re.sub(r"\b[A-Z_]{2,}\b", "X", f"{one.text}|{one.remedy}"), one)
    return list(found.values())


def _forms(kind: str, node: ast.AST, scope: Scope) -> Iterator[Message]:
    found = False
    for known in _surroundings(node, scope):
        texts, places, remedies = _contents(kind, node, Scope(scope.module, scope.functions, known))
        for number, text in enumerate(texts):
            remedy = remedies[number if len(remedies) == len(texts) else 0]
            place = places[number if len(places) == len(texts) else 0]
            is_output = re.match(OUTPUT, text) is not None
            found |= is_output
            if any(map(_says_something, (text, remedy))) and not is_output:
                found = True
                yield Message(kind.split()[0], text.strip(), place, remedy, scope.home)
    constants = [str(one.value) for one in ast.walk(node) if isinstance(one, ast.Constant)]
    if not found and any(" " in one.strip() and _says_something(one) for one in constants):
        raise LimitError(f"{scope.home}: nothing was read from the message {ast.unparse(node)}")


def _says_something(text: str) -> bool:
    """Whether there are words in it, beside what is known only at run time and paths."""
    return re.search(r"[a-z]{3}", re.sub(r"^tmt: |\S+/\S+", "", text)) is not None


def _contents(kind: str, node: ast.AST, scope: Scope) -> tuple[list[str], list[str], list[str]]:
    """The forms of the message, of its place and of its remedy."""
    if isinstance(node, ast.Call) and "pair" not in kind:
        given = {one.arg: one.value for one in node.keywords if kind == "error"}
        places, remedies = (texts_of(given[name], scope) if name in given else [""] for name in ("place", "remedy"))
        return texts_of(node.args[0], scope), places, remedies
    if "pair" in kind:
        pair = node.args if isinstance(node, ast.Call) else node.value.elts  # type: ignore[attr-defined]
        remedies = texts_of(pair[1], scope) if len(pair) > 1 else [""]
        if isinstance(node, ast.Call) and called(node) == "BleuTokenizer":
            return remedies, [""], [""]
        return texts_of(pair[0], scope), [""], remedies
    if kind == "config table":
        wanted = [one for one in node.value.values if isinstance(one, ast.Constant)]  # type: ignore[attr-defined]
        capitals = [re.sub(r"\{(\w+)\}", lambda match: word(match[1]), str(one.value)) for one in wanted]
        return [f"'KEY' is VALUE, but {text}" for text in dict.fromkeys(capitals)], [""], [""]
    parts = _parts(node.value)  # type: ignore[attr-defined]
    return [text for part in parts for text in texts_of(part, scope)], [""], [""]


def _parts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.List | ast.Tuple):
        return [one for one in node.elts if not isinstance(one, ast.Starred)]
    if isinstance(node, ast.ListComp):
        return [node.elt]
    if isinstance(node, ast.IfExp) and isinstance(node.body, ast.List):
        return [*_parts(node.body), *(_parts(node.orelse) if isinstance(node.orelse, ast.List) else [])]
    return [node]


def _surroundings(node: ast.AST, scope: Scope) -> list[dict[str, tuple[ast.expr, Scope]]]:
    """What the names around a message can stand for: rows of a table in a loop, arguments of the callers."""
    found: list[dict[str, tuple[ast.expr, Scope]]] = [{}]
    for function in scope.functions:
        for loop in ast.walk(function):
            if isinstance(loop, ast.For) and isinstance(loop.target, ast.Tuple) and _holds(loop, node):
                rows = [one for one in _table(loop.iter, scope) if isinstance(one, ast.Tuple)]
                names = [one.id if isinstance(one, ast.Name) else "" for one in loop.target.elts]
                fitting = [row for row in rows if len(row.elts) == len(names)]
                if fitting:
                    tables = [dict(zip(names, ((cell, scope) for cell in row.elts), strict=True)) for row in fitting]
                    found = [{**known, **table} for known in found for table in tables]
        calls = _calls_of(function, scope.module)
        parameters = {one.arg for one in (*function.args.args, *function.args.kwonlyargs)} - {"self", "cls"}
        used = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        if parameters & _with_origins(used, function) and 0 < len(calls) <= MOST:
            found = [{**known, **bound} for known in found for bound in calls]
    return found


def _holds(loop: ast.For, node: ast.AST) -> bool:
    return loop.lineno <= getattr(node, "lineno", 0) <= (loop.end_lineno or 0)


def _with_origins(names: set[str], function: Function) -> set[str]:
    """The names, and those that they are made of inside the function."""
    for _ in range(3):
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and any(
                isinstance(one, ast.Name) and one.id in names for one in node.targets
            ):
                names = names | {one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)}
    return names


def _table(node: ast.expr, scope: Scope) -> list[ast.expr]:
    node = _definition(node, scope) or node
    return list(node.elts) if isinstance(node, ast.Tuple | ast.List) else []


def _definition(node: ast.expr, scope: Scope) -> ast.expr | None:
    """The one expression that a name is bound to in its function or module."""
    if not isinstance(node, ast.Name):
        return None
    values = [value for value, _ in _values_of(node.id, scope)]
    return values[0] if len(values) == 1 else None


@cache
def _calls_of(function: Function, module: Module) -> tuple[dict[str, tuple[ast.expr, Scope]], ...]:
    """The arguments of every call of a function, by the names of its parameters."""
    found = []
    for other in modules().values():
        if other is not module and function.name not in _imported(other):
            continue
        for call, scope in _calls(other).get(function.name, ()):
            names = [one.arg for one in function.args.args if one.arg not in ("self", "cls")]
            bound = dict(zip(names, call.args, strict=False))
            bound |= {one.arg: one.value for one in call.keywords if one.arg}
            defaults = dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
            defaults |= {
                one.arg: value
                for one, value in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
                if value is not None
            }
            found.append({name: (value, scope) for name, value in {**defaults, **bound}.items()})
    return tuple(found)


@cache
def _imported(module: Module) -> frozenset[str]:
    imports = [node for node in ast.walk(module.tree) if isinstance(node, ast.ImportFrom)]
    return frozenset(alias.name for node in imports for alias in node.names)


@cache
def _calls(module: Module) -> dict[str, list[tuple[ast.Call, Scope]]]:
    """All calls in a module, by the name of what is called."""
    found: dict[str, list[tuple[ast.Call, Scope]]] = {}
    for node, scope in _nodes(module.tree, Scope(module)):
        if isinstance(node, ast.Call):
            found.setdefault(called(node), []).append((node, scope))
    return found


def _values_of(name: str, scope: Scope) -> list[tuple[ast.expr, Scope]]:
    """What a name may be bound to: by a caller, in its function, in its module, or in the module it comes from."""
    if name in scope.known:
        return [scope.known[name]]
    for function in reversed(scope.functions):
        if found := [(value, scope) for value in _assigned(name, function)]:
            return found
        if any(one.arg == name for one in (*function.args.args, *function.args.kwonlyargs)):
            return []
    top = Scope(scope.module)
    for node in scope.module.tree.body:
        if found := [(value, top) for value in _assigned(name, ast.Module([node], []))]:
            return found
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("transformer_mt."):
            origin = modules().get((node.module or "").removeprefix("transformer_mt."))
            for alias in node.names:
                if origin is not None and (alias.asname or alias.name) == name:
                    return _values_of(alias.name, Scope(origin))
    return []


def _assigned(name: str, within: ast.AST) -> list[ast.expr]:
    found = []
    for node in ast.walk(within):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Name) and target.id == name:
                found.append(node.value)
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=False)
                found += [value for one, value in pairs if isinstance(one, ast.Name) and one.id == name]
    return found


def texts_of(node: ast.expr, scope: Scope, depth: int = 0) -> list[str]:
    """The forms of a text, with capitals for what is known only at run time."""
    if depth > DEEPEST:
        raise LimitError(f"{scope.home}: {ast.unparse(node)} is more than {DEEPEST} expressions deep")
    texts = list(dict.fromkeys(_known_texts(node, scope, depth)))
    if len(texts) > MOST:
        raise LimitError(f"{scope.home}: {ast.unparse(node)} has more than {MOST} forms")
    return texts or [placeholder(node)]


def _known_texts(node: ast.expr, scope: Scope, depth: int) -> list[str]:
    if isinstance(node, ast.Constant):
        return [str(node.value)] if node.value is not None else []
    if isinstance(node, ast.Tuple):  # a note with the line it belongs to
        return texts_of(node.elts[-1], scope, depth + 1) if node.elts else []
    if isinstance(node, ast.JoinedStr):
        return _joined([texts_of(part, scope, depth + 1) for part in node.values])
    if isinstance(node, ast.FormattedValue):
        return texts_of(node.value, scope, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and _has_constant(node):
        return _joined([texts_of(node.left, scope, depth + 1), texts_of(node.right, scope, depth + 1)])
    if (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div)
        and not isinstance(node.right, ast.Constant | ast.BinOp)
    ):
        right = [text for text in texts_of(node.right, scope, depth + 1) if "." in text]
        left = placeholder(node.left)
        return [f"{left}/{text}" for text in right] or (["FILE"] if left in PATHS else [])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.Constant):
        return [str(node.left.value)] if isinstance(node.left.value, str) else []
    if isinstance(node, ast.IfExp):
        ends = [one.value if isinstance(one, ast.Constant) else one for one in (node.body, node.orelse)]
        if ends == ["", "s"]:  # of a plural
            return ["s"]
        if None in ends:
            return texts_of(node.orelse if ends[0] is None else node.body, scope, depth + 1)
        return [*texts_of(node.body, scope, depth + 1), *texts_of(node.orelse, scope, depth + 1)]
    if isinstance(node, ast.Name):
        values = [value for value in _values_of(node.id, scope) if _is_text(value[0]) and not _uses(value[0], node.id)]
        if node.id in scope.known and not any(_has_words(value) for value, _ in values):
            return []
        return [text for value, origin in values for text in texts_of(value, origin, depth + 1)]
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        table = _definition(node.value, scope)
        if isinstance(table, ast.Dict) and all(isinstance(one, ast.Constant | ast.JoinedStr) for one in table.values):
            return [text for one in table.values for text in texts_of(one, scope, depth + 1)]
    return []


def _uses(node: ast.expr, name: str) -> bool:
    """Whether a name is made of its earlier value."""
    return any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node))


def _has_constant(node: ast.expr) -> bool:
    """Whether text is put together, not numbers."""
    return any(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in ast.walk(node))


def _is_text(node: ast.expr) -> bool:
    """Whether an expression is text that is at least partly known."""
    if isinstance(node, ast.IfExp):
        return _is_text(node.body) or _is_text(node.orelse)
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr | ast.Name) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _has_words(node: ast.expr) -> bool:
    """Whether an argument says something by itself; the name of a parameter says more than a bare name."""
    constants = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return any(" " in one or len(one) > 6 for one in constants)


def _joined(parts: list[list[str]]) -> list[str]:
    forms = 1
    for part in parts:
        forms *= len(part)
    if forms > MOST:
        raise LimitError(f"{parts} make more than {MOST} forms of a message")
    return ["".join(chosen) for chosen in itertools.product(*parts)]
