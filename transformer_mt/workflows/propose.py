"""Looks at files of sentence pairs and proposes a config: what to read, which sizes fit, how long training takes."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from transformer_mt.config.data import DataConfig
from transformer_mt.config.languages import code_of, name_of
from transformer_mt.config.runs import RUNS
from transformer_mt.config.schema import Config
from transformer_mt.config.section import LANGUAGE, NAME
from transformer_mt.config.training import RuntimeConfig
from transformer_mt.corpora.looking import HEADER
from transformer_mt.corpora.splits import TEST, VALIDATION
from transformer_mt.data.planning import BatchSize, by_length, cut
from transformer_mt.data.reading import LOWER, USUAL
from transformer_mt.data.store import Counts
from transformer_mt.errors import TmtError, check_type, first_of, number_of
from transformer_mt.files.lines import path_of, paths_of
from transformer_mt.reporting.program import quoted
from transformer_mt.runtime.device import Machine, set_up
from transformer_mt.text.batches import Batch
from transformer_mt.text.entities import has_entities
from transformer_mt.text.script import same_script
from transformer_mt.text.tokenizers.sentencepiece import SentencepieceTokenizer
from transformer_mt.workflows.proposal.config_text import config_text
from transformer_mt.workflows.proposal.counting import Count
from transformer_mt.workflows.proposal.discover import Found, discover
from transformer_mt.workflows.proposal.sizes import (
    MOST_HELD_OUT,
    Sizes,
    epochs_for,
    held_out,
    sizes_for,
    validate_every,
    warmup_for,
)
from transformer_mt.workflows.proposal.splits import require_name
from transformer_mt.workflows.proposal.text_notes import note_metadata, note_tokenized
from transformer_mt.workflows.proposal.timing import seconds_an_update

FEWEST = 20  # different pairs
PLOTS, A_PAIR, MOST = 0.2, 0.007, 2.0  # seconds of a validation: checkpoint and plots, each pair, both


@dataclass(frozen=True)
class Proposal:
    """A config for the user's data.

    text:    the YAML file, with the reason of each choice as a comment
    config:  the same, checked
    pairs:   in the files; an estimate if `about` is true
    minutes: estimated time of the training on this machine
    summary: what was found and chosen: lines of a title and a text
    """

    text: str = field(repr=False)
    config: Config = field(repr=False)
    pairs: int
    about: bool
    minutes: float
    summary: tuple[tuple[str, str], ...] = field(repr=False)

    def __str__(self) -> str:
        return self.text


def propose_config(
    data: str | Path | Sequence[str | Path],
    source: str | None = None,
    target: str | None = None,
    *,
    minutes: float | None = None,
    file: str = "files.yaml",
) -> Proposal:
    """Look at files or folders of sentence pairs, and propose a config.

    source, target: languages; default: those of the first and the second column of sentences
    minutes: choose the epochs for this time; default: by the number of pairs
    file:    the name of the config, for the commands in its comments
    Raises TmtError if the data cannot be read, or if it is not clear what the columns are.
    """
    given = paths_of(data)
    if not given:
        raise TmtError("no file is given", place="data", remedy="Give a table, a folder, or two parallel files.")
    if minutes is not None:
        check_type(minutes, Real, "minutes", "60")
    if minutes is not None and not (math.isfinite(minutes) and minutes > 0):
        raise TmtError(f"the training has {minutes} minutes", place="--minutes", remedy="Give more than 0 minutes.")
    for path in given:
        require_name(path)
    source, target = _checked_code("--source", source), _checked_code("--target", target)
    found = discover(given, source, target)
    count = found.total
    if count.different < FEWEST:
        remedy = "A translator learns from thousands of pairs. Check that this is the file you meant."
        raise TmtError(f"only {count.different} different pairs were found", place=given[0], remedy=remedy)
    are_divided = not any(VALIDATION in one.entry for one in found.corpora)
    are_tested = are_divided and not any(TEST in one.entry for one in found.corpora)
    for one in found.corpora:
        if VALIDATION not in (entry := one.entry):
            own = one.count.different
            part = round(held_out(count.different) * own / count.different) or int(own > 2)
            entry["split"] = {VALIDATION: part * are_divided} | ({} if TEST in entry else {TEST: part * are_tested})
    note_tokenized(count.some)
    note_metadata(count.some)
    return _Choice(_name(given[0]), found, count, set_up(RuntimeConfig())).proposal(minutes, file)


def _checked_code(option: str, code: str | None) -> str | None:
    """The code of a language that is given as `de`, `DE`, `de-DE` or `German`. Raises TmtError if it is none."""
    if code is not None:
        check_type(code, str, option.removeprefix("--"), '"de"')
    if not code or re.fullmatch(LANGUAGE, code):
        return code
    if (found := code_of(code)) is None:
        raise TmtError(f"'{code}' is no language", place=option, remedy="Give its ISO code, such as de.")
    return found


def _name(path: Path) -> str:
    """A name for the run, from the name of the file if that has letters for it; no run here has it."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", path.name.split(".")[0])[:_LONGEST_NAME].strip("-_")
    places = [RUNS]
    if not re.fullmatch(NAME, stem):
        stem = "my-translator"
        places.append(path_of(DataConfig.model_fields["prepared"].default))  # of another file without letters
    names = (stem + f"-{number}" * (number > 1) for number in itertools.count(1))
    return next(name for name in names if not any((place / name).exists() for place in places))


_SHOWN = 8  # files, in a list
FEW_PAIRS = 10_000
_OF_FEW = "translations of sentences like these; so few pairs teach no other text (docs/recipes.md, Few sentences)"
_SPARE = 30  # pieces beside the characters: marks, and a few of several characters
_LONGEST_NAME = 60  # characters; a name may have 100, with what is added for teachers and trials


@dataclass(frozen=True)
class _Choice:
    """The settings for the corpora that were found."""

    name: str
    found: Found
    count: Count
    machine: Machine

    def proposal(self, minutes: float | None, file: str) -> Proposal:
        shared = same_script(*self.found.languages)
        sizes = sizes_for(self.count.different, shared, self.machine.device.type == "cuda")
        vocabularies, lengths = self._fitting(sizes, shared)
        pieces = (float(lengths[0].mean()), float(lengths[1].mean()))
        longer = np.maximum(*lengths)[by_length(*lengths)]
        share = (self.count.different - self._held_out(VALIDATION) - self._held_out(TEST)) / len(longer)
        updates = max(1, round(len(cut(longer, BatchSize(tokens=sizes.batch_tokens))) * share))
        config = Config.model_validate(self._values(sizes, vocabularies, shared, updates))
        machine = set_up(config.runtime)
        validation = min(MOST, PLOTS + A_PAIR * (self._held_out(VALIDATION) or MOST_HELD_OUT))
        validation *= updates / (validate_every(updates) or updates)
        epoch_seconds = updates * seconds_an_update(config, vocabularies, pieces, machine) + validation
        epochs = epochs_for(sizes, updates) if minutes is None else max(1, int(minutes * 60 / epoch_seconds))
        sizes = replace(sizes, epochs=epochs)
        values = self._values(sizes, vocabularies, shared, updates)
        spent = sizes.epochs * epoch_seconds / 60
        time = f"{_plain_minutes(spent)} on this machine ({machine.describe()})"
        by = "the time that you gave" if minutes is not None else "the number of pairs"
        comments = self._comments(sizes, shared, pieces, updates, f"{time}; chosen by {by}")
        text = config_text(values, comments, self._head(file, time))
        return Proposal(
            text,
            Config.model_validate(values),
            self.count.pairs,
            self.count.about,
            spent,
            (
                *self._summary(),
                ("model", self._model(sizes, vocabularies, shared)),
                ("training", f"{sizes.epochs} epochs: {time}"),
                *([("expect", _OF_FEW)] if self.count.different < FEW_PAIRS else []),
            ),
        )

    def _fitting(self, sizes: Sizes, shared: bool) -> tuple[tuple[int, int], tuple[Counts, Counts]]:
        """The sizes of both vocabularies that the text allows, and the pieces of sentences of both sides."""
        sides = [[pair.source for pair in self.count.some], [pair.target for pair in self.count.some]]
        # What is left for the training split, and a margin: cleaning drops pairs.
        kept = max(1, int(len(sides[0]) * (1 - 3 * held_out(self.count.different) / self.count.different)))
        texts = [side[:kept] for side in sides]
        characters = [len(set("".join(side))) for side in ([sides[0] + sides[1]] if shared else sides)]
        some = zip([texts[0] + texts[1]] if shared else texts, characters, strict=True)
        trained = [self._trained(text, sizes.vocabulary, number) for text, number in some]
        both = trained[0], trained[-1]
        source, target = (
            np.array([len(one.tokenize(text)) + 1 for text in side]) for side, one in zip(sides, both, strict=True)
        )
        return (both[0].config.size, both[1].config.size), (source, target)

    def _trained(self, sentences: Sequence[str], vocabulary: int, characters: int) -> SentencepieceTokenizer:
        """A tokenizer with a vocabulary of this size, or of the nearest one that the text has pieces for.

        characters: different ones. Chinese and Japanese have thousands, and all of them must have a place.
        """
        while vocabulary < 1.5 * characters:
            vocabulary *= 2
        while True:
            options = SentencepieceTokenizer.Options(kind="sentencepiece", vocab_size=vocabulary, split_digits=True)
            tokenizer = SentencepieceTokenizer(options, self.found.languages[0])
            try:
                tokenizer.train(sentences)
                return tokenizer
            except TmtError as error:
                smaller = max(vocabulary * 3 // 4, characters + _SPARE)
                if "too small" not in error.message or smaller >= vocabulary:
                    raise
                vocabulary = smaller

    def _held_out(self, split: str) -> int:
        """Pairs that are divided from those for training."""
        return sum(one.entry["split"].get(split, 0) for one in self.found.corpora if "split" in one.entry)

    def _has_entities(self) -> bool:
        return any(has_entities(text) for pair in self.count.some for text in (pair.source, pair.target))

    def _are_lower(self) -> list[bool]:
        """Whether the source and the target have no capital letters."""
        pairs = self.count.some
        sides = [pair.source for pair in pairs], [pair.target for pair in pairs]
        return [len(Batch(side).in_lower_case()) > USUAL[LOWER] * len(pairs) for side in sides]

    def _values(self, sizes: Sizes, vocabularies: tuple[int, int], shared: bool, updates: int) -> dict[str, Any]:
        """The config as in its file."""
        are_lower = [all(self._are_lower())] * 2 if shared else self._are_lower()
        sides = [
            {"kind": "sentencepiece", "vocab_size": size, "split_digits": True}
            | ({"case": "lower"} if is_lower else {})
            for size, is_lower in zip(vocabularies, are_lower, strict=True)
        ]
        source, target = self.found.languages
        corpora = [one.entry for one in self.found.corpora]
        batch: dict[str, Any] = {"batch_tokens": sizes.batch_tokens}
        if self.machine.device.type == "cuda":
            batch["packing"] = True
        every = validate_every(updates)
        limits = {"max_epochs": sizes.epochs, **({"validate_every": every} if every else {})}
        return {
            "name": self.name,
            "seed": 1,
            "data": {
                "source": source,
                "target": target,
                "corpus": corpora[0] if len(corpora) == 1 else corpora,
                "max_length": 128,
                **({"cleaning": {"entities": True}} if self._has_entities() else {}),
            },
            "tokenizer": {**sides[0], "shared": True} if shared else {"source": sides[0], "target": sides[1]},
            "model": {
                "d_model": sizes.width,
                "n_heads": sizes.heads,
                "d_ff": sizes.feed_forward,
                "encoder_layers": sizes.layers,
                "decoder_layers": sizes.layers,
                "positions": "rotary",
                "dropout": sizes.dropout,
                "tie_embeddings": "all" if shared else "decoder",
            },
            "training": {
                "optimizer": "muon",
                "weight_decay": 0.1,
                **batch,
                "schedule": "cosine",
                "learning_rate": sizes.learning_rate,
                "warmup_steps": warmup_for(sizes, updates * sizes.epochs),
                "label_smoothing": 0.1,
                **limits,
            },
            "runtime": {"precision": "fast"},
            "decoding": {"beam": 5, "length_penalty": 1.0},
        }

    def _comments(
        self, sizes: Sizes, shared: bool, pieces: tuple[float, float], updates: int, time: str
    ) -> dict[str, str]:
        source, target = self.found.languages
        pairs = f"{'about ' if self.count.about else ''}{self.count.different:,} different pairs"
        letters = f"{name_of(source)} and {name_of(target)}"
        mean = f"{pieces[0]:.0f} pieces in {name_of(source)} and {pieces[1]:.0f} in {name_of(target)}"
        vocabulary = f"for {pairs}; a mean sentence has {mean}"
        return self._reasons() | {
            "name": f"the run is saved in runs/{self.name}",
            "seed": "change it for a second run with other random numbers",
            "data.source": f"{name_of(source)}. For the other direction, swap source and target, here and below",
            "data.target": name_of(target),
            "data.corpus.split": "pairs to choose the best model with, and to score it with: 100, or a tenth "
            "of fewer than 1,000 pairs, or 5 % of more than 2,000, but at most 1,000",
            "data.max_length": "longer training sentences, in pieces, are dropped",
            "data.cleaning.entities": "the files have characters written as in HTML, such as &amp; for &",
            "tokenizer.vocab_size": vocabulary,
            "tokenizer.split_digits": "numbers are read and written digit by digit",
            "tokenizer.case": "the files have no capital letters, and what you translate may have some",
            "tokenizer.shared": f"{letters} have the same letters",
            "tokenizer.source": vocabulary,
            "tokenizer.target": f"one vocabulary for each: {letters} have different letters",
            "model.d_model": f"the sizes fit {pairs}; more pairs allow more layers and wider ones",
            "model.dropout": "more for few pairs, against learning them by heart",
            "model.tie_embeddings": "" if shared else "the vocabularies are different",
            "training.batch_tokens": f"about {updates:,} updates in an epoch; less if memory runs out",
            "training.packing": "no padding between sentences: faster on a GPU, slower on processors",
            "training.schedule": "the learning rate rises, and then falls to 0 in the last epoch",
            "training.warmup_steps": f"of about {updates * sizes.epochs:,} updates",
            "training.max_epochs": time,
            "training.validate_every": "updates; an epoch has fewer",
            "runtime": "16-bit products (bfloat16) if the processor is faster with them",
        }

    def _reasons(self) -> dict[str, str]:
        """Why the files are read as they are; those of an entry in a list stand beside it."""
        if len(self.found.corpora) > 1:
            return {f"data.corpus.{n}": "; ".join(one.reasons.values()) for n, one in enumerate(self.found.corpora)}
        reasons = self.found.corpora[0].reasons
        exchanged, header = reasons.get("exchanged", ""), reasons.get("header", "")
        return {
            "data.corpus.kind": reasons.get("delimiter", ""),
            "data.corpus.files": "" if "source_column" in self.found.corpora[0].entry else exchanged,
            "data.corpus.train": "split as the names of the files tell" if "splits" in reasons else "",
            "data.corpus.encoding": reasons.get("encoding", ""),
            "data.corpus.sheet": reasons.get("sheet", ""),
            "data.corpus.list_key": reasons.get("list_key", ""),
            "data.corpus.source_column": "; ".join(filter(None, (header, exchanged, reasons.get("columns")))),
        }

    def _head(self, file: str, time: str) -> str:
        commands = {
            f"tmt prepare --config {quoted(file)}": "shows how many pairs are kept, and which are dropped and why",
            f"tmt train --config {quoted(file)}": f"{time}. Ctrl-C stops it, and the same command continues",
            "tmt translate": "translates what you type",
        }
        wide = max(map(len, commands))
        return "\n".join(
            (
                "`tmt init files --data FILE` looked at these files and chose the settings. The comments say why.",
                *(f"  {one}" for one in self._files()),
                "",
                *(f"  {command:<{wide}}   {text}" for command, text in commands.items()),
                "",
                "All keys and their defaults: docs/configuration.md.",
            )
        )

    def _files(self) -> list[str]:
        """The files of all entries, as a user names them; of many, the first."""
        files = [file for one in self.found.corpora for file in one.files]
        return [*files[:_SHOWN], f"... and {len(files) - _SHOWN:,} more"] if len(files) > _SHOWN else files

    def _summary(self) -> tuple[tuple[str, str], ...]:
        source, target = self.found.languages
        first, data = self.count.some[0], list[tuple[str, str]]()
        for one in self.found.corpora:
            entry, reasons = one.entry, one.reasons
            form = [str(entry[key]) for key in ("kind", "encoding", "sheet") if key in entry]
            if "source_column" in entry:
                form.append(f"columns {entry['source_column']} and {entry['target_column']}")
            data.append(("data", f"{first_of(one.files, _SHOWN)}: {', '.join(form)}"))
            said = (reasons.get(key) for key in ("exchanged", "sheet", "list_key", "header", "forms", "columns"))
            data += [("", reason) for reason in said if reason and not reason.startswith(HEADER)]
            data += [("splits", reasons["splits"])] if "splits" in reasons else []
        number = f"{'about ' if self.count.about else ''}{self.count.pairs:,}"
        different = f", {self.count.different:,} different" if self.count.different != self.count.pairs else ""
        return (
            *data,
            ("languages", f"{name_of(source)} ({source}) to {name_of(target)} ({target})"),
            ("pairs", f"{number}{different}. The first one:"),
            (f"  {source}", " ".join(first.source.split())),
            (f"  {target}", " ".join(first.target.split())),
        )

    def _model(self, sizes: Sizes, vocabularies: tuple[int, int], shared: bool) -> str:
        first, second = (f"{size:,}" for size in vocabularies)
        pieces = f"{first} pieces" + (" for both languages" if shared else " for each language")
        pieces = pieces if first == second else f"{first} pieces of the source and {second} of the target"
        return f"{sizes.layers}+{sizes.layers} layers of width {sizes.width}, dropout {sizes.dropout}; {pieces}"


def _plain_minutes(minutes: float) -> str:
    if minutes < 1:
        return "less than a minute"
    number, unit = (round(minutes), "minute") if minutes < 100 else (round(minutes / 60), "hour")
    return f"about {number_of(number, unit)}"
