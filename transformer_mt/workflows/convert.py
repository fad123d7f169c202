"""Makes a model folder of a model that another program has trained."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from transformer_mt.config.direction import SEVERAL
from transformer_mt.config.languages import code_of, two_letters
from transformer_mt.config.schema import Config, OneTokenizer
from transformer_mt.config.section import LANGUAGE, NAME
from transformer_mt.decoding.model_directory import save_model_directory
from transformer_mt.errors import TmtError
from transformer_mt.files.lines import path_of
from transformer_mt.kernels.build import build_model
from transformer_mt.runtime.weights import require_finite, require_fit
from transformer_mt.text.codec import Codec, Segmenter
from transformer_mt.text.tokenizers.base import problems_in
from transformer_mt.text.tokenizers.sentencepiece import FILE
from transformer_mt.text.vocabulary import MARKS, Vocabulary
from transformer_mt.workflows.converting.marian import (
    CONFIG,
    PIECES,
    WEIGHTS,
    MarianConfig,
    PieceModel,
    read_config,
    read_languages,
    read_pieces,
    read_tensors,
)

_UNUSUAL = "A model needs sizes that docs/configuration.md allows."


class _Directions(NamedTuple):
    """The directions of a model.

    targets:  the target languages, and the names of their tags; "": there are no tags
    left_out: the names of the other tags
    """

    source: str
    targets: dict[str, str]
    left_out: tuple[str, ...] = ()

    def keys(self) -> dict[str, Any]:
        """Keys of the section `data`. No corpus belongs to the model: a training that starts from it names its own."""
        pairs = [(self.source, target) for target in self.targets]
        corpora = [{"kind": "text", "files": {"source": f"corpus.{a}", "target": f"corpus.{b}"}} for a, b in pairs]
        if not any(self.targets.values()):
            return {"source": self.source, "target": pairs[0][1], "corpus": corpora}
        directions = [f"{a}-{b}" for a, b in pairs]
        tagged = [{**corpus, "direction": one} for corpus, one in zip(corpora, directions, strict=True)]
        return {"directions": directions, "corpus": tagged}


@dataclass(frozen=True)
class Converted:
    """The model that was written.

    pieces:   of the source and of the target
    left_out: tags of target languages that it does not have: those of no known language, or one of several for it
    """

    folder: str
    direction: str
    parameters: int
    pieces: tuple[int, int]
    left_out: tuple[str, ...] = ()


def convert(model: str | Path, output: str | Path, source: str | None = None, target: str | None = None) -> Converted:
    """Write a model folder with the weights and pieces of a model of Marian in Hugging Face's form (OPUS-MT).

    source, target: languages; default: those that the folder names. Of a model with tags for its target languages,
                    all, or `target` alone: a code, or the name of a tag
    Raises TmtError if `model` cannot be converted, or if something is in the folder `output` already.
    """
    model, output = path_of(model), path_of(output)
    if not model.exists():
        remedy = f"Download it first:  hf download {model} --local-dir {model.name}   (pip install huggingface_hub)"
        raise TmtError("no such folder", place=model, remedy=remedy)
    if not (model / CONFIG).is_file() or ((model / WEIGHTS).exists() and not (model / WEIGHTS).is_file()):
        remedy = f"Give a folder of Hugging Face with {CONFIG}, {WEIGHTS}, vocab.json, source.spm and target.spm."
        raise TmtError("this is no model of Marian", place=model, remedy=remedy)
    if output.exists():
        raise TmtError("this exists already, and is not replaced", place=output, remedy="Choose another folder.")
    marian, (first, second, tags) = read_config(model), read_pieces(model)
    sides, wanted = (first, second), _directions(tags, source, target, model)
    config = _config(marian, sides, wanted, output, model / CONFIG)
    weights = read_tensors(model, marian, sides, [tags[name] for name in wanted.targets.values() if name])
    data = config.data
    codecs = (
        _codec(config.source_tokenizer, data.source_language, sides[0], model / PIECES[0], data.tags),
        _codec(config.target_tokenizer, data.target_language, sides[1], model / PIECES[1]),
    )
    sizes = len(codecs[0]), len(codecs[1])
    require_finite(weights, model / WEIGHTS)
    with torch.device("meta"):
        shapes = {name: list(one.shape) for name, one in weights.items()}
        require_fit(build_model(config, *sizes, "meta"), shapes, model / WEIGHTS)
    save_model_directory(output, config, weights, codecs)
    number = sum(one.numel() for one in weights.values())
    return Converted(str(output), data.direction, number, sizes, wanted.left_out)


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


def _code_of_tag(name: str) -> str | None:
    """`pt` for `por` and `pt_BR`."""
    base = name.partition("_")[0]
    return code_of(name) or (two_letters(base) if re.fullmatch(LANGUAGE, base) and base != SEVERAL else None)


def _directions(tags: Collection[str], source: str | None, target: str | None, model: Path) -> _Directions:
    """Raises TmtError if a language is missing, not known, or has several tags."""
    named = read_languages(model)
    from_ = _language(source, named[0], "--from", model)
    if not tags:
        to = _language(target, named[1], "--to", model)
        if to == from_:
            raise TmtError(f"both languages are {to}", place=model, remedy="Name them:  --from CODE --to CODE")
        return _Directions(from_, {to: ""})
    names: dict[str, list[str]] = {}  # by language
    for tag in sorted(tags):
        if (code := _code_of_tag(tag)) not in (None, from_):
            names.setdefault(str(code), []).append(tag)
    if target is None:
        found = {code: name for code, some in names.items() if (name := _plainest(some))}
        return _Directions(from_, found, tuple(sorted({*tags} - {*found.values()})))
    code = _code_of_tag(target)
    some = names.get(code, []) if code else []
    chosen = target if target in some else _plainest(some)
    if code is None or chosen is None:
        problem = f"several tags are for {target}" if some else f"no tag of this model is for {target}"
        shown = ", ".join((some or sorted(tags))[:8])
        raise TmtError(problem, place=model, remedy=f"Name one of its {len(some or tags)} tags:  --to TAG, of {shown}")
    return _Directions(from_, {code: chosen})


def _plainest(names: Sequence[str]) -> str | None:
    """Of the tags for a language the only one, or the only one without a region or script; None if there is none."""
    without = [name for name in names if "_" not in name]
    return next((some[0] for some in (names, without) if len(some) == 1), None)


def _config(
    marian: MarianConfig, sides: tuple[PieceModel, PieceModel], wanted: _Directions, output: Path, file: Path
) -> Config:
    """The config of the model folder. file: that of Marian, for messages"""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", output.name).strip("-.")
    options = [
        {"kind": "sentencepiece", "algorithm": one.algorithm, "vocab_size": max(32, len(one.rows) + len(MARKS))}
        for one in sides
    ]
    try:
        with problems_in(CONFIG):
            return Config.model_validate(
                {
                    "name": name if re.fullmatch(NAME, name) else "converted",
                    "data": {
                        **wanted.keys(),
                        "max_length": min(marian.max_position_embeddings, 4096),
                        "cleaning": {"unicode": "NFKC", "whitespace": "collapse"},  # as its pieces were made
                    },
                    "tokenizer": {"source": options[0], "target": options[1]},
                    "model": marian.keys(),
                    "training": {"max_epochs": 1},
                    "decoding": {"beam": marian.num_beams if marian.num_beams > 1 else 4, "length_penalty": 1.0},
                }
            )
    except ValueError as error:
        raise TmtError(f"this model cannot be converted: {error}", place=file, remedy=_UNUSUAL) from None


def _codec(options: OneTokenizer, language: str, pieces: PieceModel, file: Path, tags: Collection[str] = ()) -> Codec:
    """file: of the pieces, for messages"""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, FILE).write_bytes(pieces.model)
        try:
            segmenter = Segmenter.of(options, language, Path(folder))
            return Codec(segmenter, Vocabulary(segmenter.tokenizer.inventory() or [], [*tags]))
        except ValueError as error:
            raise TmtError(f"the pieces cannot be used: {error}", place=file, remedy="Copy them again.") from None
