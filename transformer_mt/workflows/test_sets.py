"""Test sets: sentences and their references, from files or from a split of a model's prepared data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer_mt.config.direction import Direction
from transformer_mt.config.schema import Config
from transformer_mt.data.prepared import Prepared, prepared_folder
from transformer_mt.errors import TmtError
from transformer_mt.evaluation.scores import check_parallel
from transformer_mt.files.lines import lines_of, path_of, paths_of, printable
from transformer_mt.reporting.notes import note
from transformer_mt.text.cleaning import as_written

File = Path | None


@dataclass(frozen=True)
class TestFiles:
    """Text files to score instead of a split of the model's data. Line N of each belongs to line N of the others.

    source:     sentences to translate
    reference:  translations by people
    hypothesis: translations to score instead of translating `source`
    tokenized:  the references as published for BLEU on lower-cased Moses tokens, such as *.lc.norm.tok.de
    more_references: translations of the same sentences by other people
    """

    source: File = None
    reference: File = None
    hypothesis: File = None
    tokenized: File = None
    more_references: Sequence[Path] = ()

    def __post_init__(self) -> None:
        for name in ("source", "reference", "hypothesis", "tokenized"):
            if (file := getattr(self, name)) is not None:
                object.__setattr__(self, name, path_of(file))
        object.__setattr__(self, "more_references", tuple(paths_of(self.more_references)))

    @property
    def references(self) -> list[Path]:
        """All files of references."""
        return [] if self.reference is None else [self.reference, *self.more_references]


@dataclass(frozen=True)
class TestSet:
    """Sentences and their references.

    key:        name in scores.json; empty for a pipe, which is not stored there
    sources:    empty if they are not known
    references: as the model can write them (`cleaning.as_written`)
    others:     further references, in the same form
    left_out:   pairs of its files that were dropped when it was prepared, if that is known
    written:    makes translations by other programs comparable with these
    """

    name: str
    key: str
    sources: list[str]
    references: list[str]
    written: Callable[[str], str] = str
    others: Sequence[list[str]] = ()
    left_out: int = 0

    @property
    def all_references(self) -> list[list[str]]:
        """The references, and after them each list of further ones."""
        return [self.references, *self.others]


def check_files(split: str | None, files: TestFiles) -> None:
    if files.reference is not None and split is not None:
        raise TmtError("--split and --reference both name a test set", remedy="Remove one of them.")
    if files.source is not None and files.reference is None:
        raise TmtError("--source needs a --reference", remedy="Add --reference FILE.")
    if files.more_references and files.reference is None:
        raise TmtError("further references need a first one", place="more_references", remedy="Add reference=FILE.")
    if len({one.resolve() for one in files.references}) < len(files.references):
        raise TmtError("the same file is given twice", place="--reference", remedy="Remove one of them.")
    if files.more_references and files.tokenized is not None:
        remedy = "Remove --tokenized-reference: with --tokenized, the program tokenizes each of them."
        raise TmtError("this is only one form of several references", place="--tokenized-reference", remedy=remedy)
    if files.reference is not None and files.source is None and files.hypothesis is None:
        raise TmtError(
            "--reference needs translations to compare with",
            remedy="Add --source FILE to translate it, or --hypothesis FILE to score existing translations.",
        )


def test_set_of(
    model: Path | None, config: Config | None, split: str | None, files: TestFiles, direction: Direction | None
) -> TestSet:
    """The test set in the files, or a split of the model's data; of several directions, the pairs of this one.

    model, config: the folder of the model, and its config; None without a model, which needs a reference file
    """
    source, reference = files.source, files.reference
    written = written_by(config, direction)
    if reference is not None:
        is_stored = all(one.is_file() for one in files.references)
        key = " + ".join(printable(one.resolve()) for one in files.references) if is_stored else ""
        if key and config is not None and config.data.directions is not None:
            key += f" {direction}"
        names = [printable(one) for one in files.references]
        first, *others = (
            _comparable(_sentences(one), written, name) for one, name in zip(files.references, names, strict=True)
        )
        sources = _sentences(source) if source else []
        for name, lines in zip(names, (first, *others), strict=True):
            check_parallel(sources if source else first, str(source or reference), lines, name)
        return TestSet(" + ".join(names), key, sources, first, written, others)
    assert model is not None
    assert config is not None
    prepared, name = _split_of(model, config, split)
    texts = prepared.raw(name)
    if config.data.directions is None:
        references = _comparable(texts[1], written, name)
        return TestSet(name, name, texts[0], references, written, left_out=prepared.left_out(name))
    own = prepared.places(name).get(str(direction), [])
    if not own:
        remedy = "Choose another split, or name files:  --source FILE --reference FILE"
        raise TmtError(f"{name} has no pairs of {direction}", place=prepared_folder(config), remedy=remedy)
    name = f"{name} {direction}"
    sources, references = ([side[place] for place in own] for side in texts)
    return TestSet(name, name, sources, _comparable(references, written, name), written)


def written_by(config: Config | None, direction: Direction | None) -> Callable[[str], str]:
    """How texts are compared: as a model can write them (`as_written`); without a model, as they are."""
    if config is None:
        return str
    target = (direction or config.data.one_direction).target
    return lambda text: as_written(text, config.data.cleaning, target)


def _comparable(references: list[str], written: Callable[[str], str], name: str) -> list[str]:
    """The references as the model can write them, with a note if that changes any."""
    found = list(map(written, references))
    if count := sum(one != other for one, other in zip(found, references, strict=True)):
        note(
            f"{count:,} of {len(found):,} references of {name} have invisible characters, entities or another Unicode"
            " form than the model writes: scored without these differences"
        )
    return found


def _sentences(file: Path) -> list[str]:
    """The lines of a file, with a note if they seem to be rows of a table."""
    lines = lines_of(file)
    tabs = {line.count("\t") for line in lines}
    if len(lines) > 1 and len(tabs) == 1 and tabs != {0}:
        note(f"{printable(file)}: all lines have the same number of tabs; of a table, take a column:  cut -f1")
    return lines


def with_pairs(model: Path, config: Config, split: str | None, directions: Sequence[Direction]) -> list[Direction]:
    """Those of several directions that a split of the model's data has pairs of; a note names the others.

    All, if it has pairs of none. Raises TmtError if there is no such split.
    """
    prepared, name = _split_of(model, config, split)
    places = prepared.places(name)
    found = [one for one in directions if places.get(str(one))]
    if found and (others := [str(one) for one in directions if one not in found]):
        note(f"{name} has no pairs of {', '.join(others)}: not scored")
    return found or list(directions)


def _split_of(model: Path, config: Config, split: str | None) -> tuple[Prepared, str]:
    """The prepared data of a model, and the name of a split; None: its first test set. Raises TmtError without them.

    Also if the data was prepared again from other files: the model may have been trained on what is a test set now.
    """
    from transformer_mt.training.run_directory import RunDirectory  # imports torch, which scoring files does not need

    folder = prepared_folder(config)
    if not folder.is_dir():
        raise TmtError(
            "the prepared data of this model is not here, so there is no test set",
            place=folder,
            remedy="Name files:  --source FILE --reference FILE\n"
            "Or start tmt in the folder where it trained this model.",
        )
    prepared = Prepared.open(folder)
    if not prepared.is_of(config):
        raise TmtError(
            "this data was prepared with another config of the same name, so its splits differ from those of the model",
            place=folder,
            remedy="Prepare it with the config of the run (runs/NAME/config.yaml), or score files:"
            "  --source FILE --reference FILE",
        )
    if changed := RunDirectory(model.parent).changed_files(prepared.identity()):
        raise TmtError(
            f"this data was prepared again from a changed corpus ({', '.join(changed)}), so the model may have been"
            " trained on sentences of its splits",
            place=folder,
            remedy="Restore the old files and run  tmt prepare  again, or score files:  --source FILE --reference FILE",
        )
    if split in (None, "test") and not prepared.test_sets:
        raise TmtError(
            "this data has no test set",
            place=folder,
            remedy="Add  --split validation,  or name files:  --source FILE --reference FILE",
        )
    if split == "train" or split not in (None, "test", *prepared.splits):  # training pairs are not stored as text
        others = ", ".join(prepared.splits[1:])
        problem = "the training split is not for evaluation" if split == "train" else f"unknown split '{split}'"
        raise TmtError(problem, place=folder, remedy=f"Use one of: {others}.")
    return prepared, prepared.named(split or "test")


def beside(test_set: TestSet, file: Path) -> list[str]:
    """The lines of a file. Raises TmtError if their number is not that of the references."""
    lines = list(map(test_set.written, _sentences(file)))
    check_parallel(lines, str(file), test_set.references, f"the test set {test_set.name}")
    return lines
