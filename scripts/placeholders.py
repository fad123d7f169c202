"""The words in capitals that stand for what a message knows only at run time."""

from __future__ import annotations

import ast

_SAME_TEXT = {  # methods that a reader of the message need not know of
    *("strip", "splitlines", "removeprefix", "removesuffix", "lower", "upper", "rstrip", "keys", "as_posix"),
    *("replace", "format"),
}
_SAME_ARGUMENT = {  # the same, of functions
    *("str", "repr", "sorted", "min", "max", "list", "set", "int", "fspath", "map", "quoted", "shortened"),
    "shown_problems",
}
PATHS = {"FOLDER", "FILE", "PARENT", "RUN", "MODEL", "DIRECTORY", "OUTPUT", "PLACE"}

# What a reader understands better than the name in the code.
READABLE = {
    "path": "FILE",
    "number": "LINE",
    "error": "REASON",
    "problem": "REASON",
    "len": "N",
    "count": "N",
    "size": "N",
    "options": "OPTION",
    "given": "OPTION",
    "told": "DETAILS",
    "self": "ADDRESS",
    "said": "REASON",
    "protocols": "PROTOCOL",
    "failures": "N",
    "status": "N",
    **dict.fromkeys(("have", "world", "enough", "equal", "pair", "group", "colno", "omitted", "tokens_per_word"), "N"),
    **dict.fromkeys(("ge", "gt", "le", "lt"), "N"),
    "msg": "REASON",
    "notes": "NOTE",
    "strerror": "REASON",
    "aside": "FOLDER",
    "stem": "FILE",
    "lines": "LINE",
    "drawn": "OPTION",
    "most": "LIMIT",
    "unknown_rate": "PERCENT",
    "ord": "CODE",
    "bad": "XX",
    "near": "NAME",
    "program_name": "tmt",
    "MARKS": "<unk>",
    "at": "FILE:LINE",
    "whose": "WHO",
    "direction": "LANGUAGES",
    "two": "FILE, FILE",
    "netloc": "HOST",
    "address": "ADDRESS",
    **dict.fromkeys(("names", "machine", "host_name"), "HOST"),
    "made": "REASON",
    "waited_for": "WHAT",
}


def called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def placeholder(node: ast.expr) -> str:
    """A word in capitals for what is known only at run time."""
    if isinstance(node, ast.Call):
        name = called(node)
        if name in _SAME_ARGUMENT:
            return placeholder(node.args[-1]) if node.args else name.upper()
        if name == "number_of":
            what = node.args[1]
            return f"N {what.value}s" if isinstance(what, ast.Constant) else "N ROWS"
        if name == "join":
            between = ast.literal_eval(node.func.value) if isinstance(node.func, ast.Attribute) else ", "
            return f"{placeholder(node.args[0])}{between if between in ('; ', ' or ') else ', '}..."
        if name in _SAME_TEXT:
            return placeholder(node.func.value) if isinstance(node.func, ast.Attribute) else "TEXT"
        return word(name.removesuffix("_of"))
    if isinstance(node, ast.Name):
        return word(node.id)
    if isinstance(node, ast.Attribute):
        return "FOLDER" if node.attr == "parent" else word(node.attr)
    if isinstance(node, ast.BoolOp):
        return placeholder(node.values[0])
    if isinstance(node, ast.JoinedStr):
        filled = [part for part in node.values if isinstance(part, ast.FormattedValue)]
        return placeholder(filled[0]) if len(filled) == 1 else "TEXT"
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        return word(node.slice.value)
    if isinstance(node, ast.Subscript | ast.Starred | ast.FormattedValue):
        return placeholder(node.value)
    if isinstance(node, ast.GeneratorExp | ast.ListComp):
        return placeholder(node.elt)
    if isinstance(node, ast.IfExp):
        return placeholder(node.body)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and isinstance(node.left, ast.Call):
        return placeholder(node.left)
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare):
        return "N"
    return "TEXT"


def word(name: str) -> str:
    bare = name.strip("_")
    return READABLE.get(bare, bare.upper() or "TEXT")
