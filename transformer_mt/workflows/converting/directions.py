"""Which directions a converted model has: by the languages that its folder or the user names, and by its tags."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transformer_mt.config.direction import SEVERAL
from transformer_mt.config.languages import code_of, two_letters
from transformer_mt.config.section import LANGUAGE
from transformer_mt.errors import TmtError, first_of

SHOWN = 8  # tags or directions in a message


class Directions(NamedTuple):
    """The directions of a model.

    targets:  the target languages, and the names of their tags; "": there are no tags
    left_out: other tags for languages
    unknown:  tags for what has no code
    """

    source: str
    targets: Mapping[str, str]
    left_out: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    def keys(self) -> dict[str, Any]:
        """Keys of the section `data`. No corpus belongs to the model: a training that starts from it names its own."""
        pairs = [(self.source, target) for target in self.targets]
        corpora = [{"kind": "text", "files": {"source": f"corpus.{a}", "target": f"corpus.{b}"}} for a, b in pairs]
        if not any(self.targets.values()):
            return {"source": self.source, "target": pairs[0][1], "corpus": corpora}
        directions = [f"{a}-{b}" for a, b in pairs]
        tagged = [{**corpus, "direction": one} for corpus, one in zip(corpora, directions, strict=True)]
        return {"directions": directions, "corpus": tagged}


def one_direction(named: tuple[str, str], source: str | None, target: str | None, model: Path) -> Directions:
    """That of a model without tags. named: what the folder `model` names. Raises TmtError if a language is missing."""
    from_, to = _language(source, named[0], "--from", model), _language(target, named[1], "--to", model)
    if to == from_:
        raise TmtError(f"both languages are {to}", place=model, remedy="Name them:  --from CODE --to CODE")
    return Directions(from_, {to: ""})


def tagged_directions(
    tags: Collection[str], named: tuple[str, str], source: str | None, target: str | None, model: Path
) -> Directions:
    """Those of a model with tags: all, or the one into `target`, a code or the name of a tag.

    Raises TmtError if the source language is missing or not known, or if no single tag is for the target language.
    """
    from_ = _language(source, named[0], "--from", model)
    if from_ == SEVERAL:
        raise TmtError(
            f"{SEVERAL} is no language, and this model has tags",
            place=model,
            remedy="Say what you will translate from:  --from CODE",
        )
    by_language: dict[str, list[str]] = {}
    for tag in sorted(tags):
        by_language.setdefault(_code_of_tag(tag), []).append(tag)
    unknown = by_language.pop("", [])
    by_language.pop(from_, None)
    if target:
        code = _code_of_tag(target) or code_of(target) or ""
        fitting = by_language.get(code, [])
        if chosen := _chosen(fitting, target, code):
            return Directions(from_, {code: chosen})
        problem = f"no {'single ' if fitting else ''}tag of this model is for {target}"
    else:
        found = {code: one for code, some in by_language.items() if (one := _chosen(some, code, code))}
        if found:
            left_out = [tag for some in by_language.values() for tag in some if tag not in found.values()]
            return Directions(from_, found, tuple(left_out), tuple(unknown))
        fitting, problem = [], "no language has one tag of this model alone"
    possible = fitting or [tag for some in by_language.values() for tag in some]
    its_tags = first_of(possible, SHOWN) or f"all are for {from_}"
    raise TmtError(problem, place=model, remedy=f"Name a tag:  --to TAG  ({its_tags}), or another source:  --from CODE")


def _language(given: str | None, named: str, option: str, model: Path) -> str:
    """The code that the user gives, or the one that the folder names. Raises TmtError if it is none."""
    code = given or named
    found = code_of(code) if code else None
    if found is None and re.fullmatch(LANGUAGE, code):
        found = two_letters(code)
    if found is None:
        place: str | Path = option if given else model
        problem = f"'{code}' is no code of a language" if code else "the folder does not name its languages"
        raise TmtError(problem, place=place, remedy=f"Give the ISO code of one language, such as  {option} de")
    return found


def _code_of_tag(tag: str) -> str:
    """`pt` for `por` and `pt_BR`; "" for what is no code."""
    base = re.split("[_-]", tag)[0].lower()
    return two_letters(base) if re.fullmatch(LANGUAGE, base) and base != SEVERAL else ""


def _chosen(tags: Sequence[str], wanted: str, code: str) -> str | None:
    """The tag of a language that is wanted by its own name, or by a code without a region or script: the plain one."""
    same = [tag for tag in tags if tag.lower() == wanted.lower()]
    if not same and not re.search("[_-]", wanted):
        plain = [tag for tag in tags if not re.search("[_-]", tag)]
        exact = [tag for tag in plain if tag == code]
        same = next((some for some in ([*tags], plain, exact) if len(some) == 1), [])
    return same[0] if same else None
