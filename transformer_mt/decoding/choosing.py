"""Which direction a request means, for a model of one direction or of several."""

from __future__ import annotations

from typing import Any, NamedTuple

from transformer_mt.config.data import DataConfig
from transformer_mt.config.direction import SEVERAL, Direction
from transformer_mt.config.languages import code_of
from transformer_mt.errors import TmtError


class Wanted(NamedTuple):
    """What a request says of its direction.

    to, source: ISO codes; None: as the model has it
    zero_shot:  whether it may be a direction that the model was not trained for
    """

    to: str | None = None
    source: str | None = None
    zero_shot: bool = False

    @classmethod
    def of(cls, given: str | tuple[Any, ...]) -> Wanted:
        """The request; a str is the target. Raises TmtError for another value: callers in Python may give any."""
        if isinstance(given, str):
            return cls(given)
        if not isinstance(given, tuple) or len(given) > len(cls._fields):
            remedy = 'For example:  wanted="en", or Wanted("en", "ko")'
            raise TmtError(f"{given!r} is not a direction", place="wanted", remedy=remedy)
        return cls(*given)


WHOLE = Wanted()


def directions_of(data: DataConfig, wanted: Wanted) -> list[Direction]:
    """All directions that the model was trained for and that a request fits."""
    return [
        one for one in data.all_directions if wanted.to in (None, one.target) and wanted.source in (None, one.source)
    ]


def direction_for(data: DataConfig, to: str | None, source: str | None, zero_shot: bool = False) -> Direction:
    """The direction that a request names, in full or in part.

    If only its target is named and several sources have it, the source is SEVERAL: the tag before a sentence says the
    target, and the model itself reads any of its sources.

    zero_shot: whether it may be a direction that the model was not trained for
    Raises TmtError if the model does not have it, or if several targets fit.
    """
    for name, code in (("to", to), ("source", source)):
        if code is not None and not isinstance(code, str):
            raise TmtError(f"a language is one code, not {code!r}", place=name, remedy=f'For example:  {name}="en"')
    if "" in (to, source):
        option = "--to" if to == "" else "--from"
        raise TmtError("a language is empty", place=option, remedy="Name a code, such as en, or omit the option.")
    trained, found = data.all_directions, directions_of(data, Wanted(to, source))
    if len(found) == 1:
        return found[0]
    listed = ", ".join(map(str, trained))
    if found and to is None:
        raise TmtError(
            f"this model translates several directions: {listed}",
            place="--to",
            remedy=f"Say into which language: --to {found[0].target}"
            f' (in Python: to="{found[0].target}", or the model `towards("{found[0].target}")`).',
        )
    if found:
        return Direction(SEVERAL, found[0].target)
    chosen = Direction(source or SEVERAL, to or SEVERAL)
    if chosen.source == chosen.target or not _is_zero_shot(chosen, data):
        named = str(chosen) if source and to else f"into {to}" if to else f"from {source}"
        known = {place: sorted({one[place] for one in trained}) for place in (0, 1)}
        remedy = f"It reads {', '.join(known[0])} and writes {', '.join(known[1])}."
        place = "--from" if source is not None and source not in known[0] else "--to"
        for text, codes in ((to, known[1]), (source, known[0])):
            if meant := next((one for one in trained if str(one) == text), None):
                remedy += f" Did you mean --from {meant.source} --to {meant.target}?"
            elif text and (code := code_of(text)) not in (to, source) and code in codes:
                remedy += f" Did you mean {code}?"
        raise TmtError(f"this model does not translate {named}, but {listed}", place=place, remedy=remedy)
    if not zero_shot:
        raise TmtError(
            f"this model was not trained for {chosen}, only for {listed}",
            place="--to",
            remedy="It may still translate it (zero-shot), usually worse: --zero-shot (in Python: zero_shot=True).",
        )
    return chosen


def _is_zero_shot(chosen: Direction, data: DataConfig) -> bool:
    """Whether the model reads the source of some direction, and writes the target of another."""
    trained, tagged = data.all_directions, data.directions is not None
    return tagged and all(any(one[side] == chosen[side] for one in trained) for side in (0, 1))
