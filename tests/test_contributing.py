"""The four recipes of CONTRIBUTING.md, followed exactly in a copy of the package, and used together."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
import yaml
from pydantic import Field, TypeAdapter, ValidationError

from transformer_mt.config.choices import CHOICES, choice, name_of, section_of
from transformer_mt.config.section import Section
from transformer_mt.corpora.base import FilesCorpus, Pair
from transformer_mt.corpora.text import TextCorpus
from transformer_mt.decoding.request import SearchResult
from transformer_mt.decoding.searches.base import Sentences
from transformer_mt.decoding.searches.beam import Beam
from transformer_mt.text.tokenizers.base import Tokenizer
from transformer_mt.text.tokenizers.sentencepiece import SentencepieceTokenizer
from transformer_mt.training.schedules.base import Schedule

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
FAMILIES = {"tokenizer": "pairs", "corpus": "bars", "schedule": "exponential", "search": "per_token"}
MOST_LINES = 20
LINES = [f"{one} {two} ||| {two.upper()} {one.upper()}" for one in "abcdefghij" for two in "klmnopqrst"]


def recipes() -> dict[str, tuple[str, str, str]]:
    """For each family of choices: the path and text of the new file, and the line in `choices.py`."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = re.findall(r'```python\n# (\S+?)(?:, under "(\w+)")?\n(.*?)```', text, re.DOTALL)
    found = {}
    for (path, _, code), (choices, family, line) in zip(blocks[::2], blocks[1::2], strict=True):
        assert choices == "transformer_mt/config/choices.py"
        found[family] = (path, code, line)
    return found


class Clone:
    """A copy of the package with the recipes applied."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "transformer_mt", folder / "transformer_mt", ignore=ignored)
        choices = folder / "transformer_mt" / "config" / "choices.py"
        for family, (path, code, line) in recipes().items():
            assert not (folder / path).exists(), "a recipe adds a file and changes none"
            (folder / path).write_text(code, encoding="utf-8")
            heading = f'    "{family}": {{\n'
            before = choices.read_text(encoding="utf-8")
            assert before.count(heading) == 1
            choices.write_text(before.replace(heading, f"{heading}        {line}"), encoding="utf-8")

    def run(self, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
        )
        assert done.returncode == status, done.stderr
        return done

    def tmt(self, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        return self.run("-m", "transformer_mt.cli.main", *arguments, status=status)


def test_a_subclass_with_a_method_of_its_own_does_not_inherit_the_faster_way(tmp_path: Path) -> None:
    """That way would leave the new method out in silence."""

    class Upper(TextCorpus):
        def read_files(self, *files: Path) -> Iterator[Pair]:
            for pair in super().read_files(*files):
                yield pair._replace(source=pair.source.upper())

    class Marked(SentencepieceTokenizer):
        def tokenize(self, text: str) -> list[str]:
            return super().tokenize(text.swapcase())

    class Reversed(Beam):
        def find(self, sentences: Sentences) -> list[list[SearchResult]]:
            return [some[::-1] for some in super().find(sentences)]

    assert TextCorpus.cut is not FilesCorpus.cut is Upper.cut
    assert SentencepieceTokenizer.ids_of is not Tokenizer.ids_of is Marked.ids_of
    assert (Beam.engines, Reversed.engines) == (("tmt", "ctranslate2"), ("tmt",))


def test_options_of_another_name_are_an_error_that_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CHOICES["tokenizer"], "bytez", CHOICES["tokenizer"]["character"])
    with pytest.raises(TypeError, match=r"CharacterTokenizer: its Options need  kind: Literal\['bytez'\]"):
        section_of("tokenizer")


def test_messages_are_those_of_the_option_when_a_choice_has_some(monkeypatch: pytest.MonkeyPatch) -> None:
    class Steady(Schedule):
        class Options(Section):
            kind: Literal["steady"]
            share: float = Field(gt=0)

        def rate(self, step: int, reduction: float = 1.0) -> float:
            return self.peak

    monkeypatch.setitem(CHOICES["schedule"], "steady", f"{__name__}:Steady")
    monkeypatch.setattr(
        "transformer_mt.config.choices.choice",
        lambda family, name: Steady if name == "steady" else choice(family, name),
    )
    adapter = TypeAdapter(name_of("schedule"))
    assert adapter.validate_python({"kind": "cosine"}) == adapter.validate_python("cosine") == "cosine"
    assert adapter.validate_python({"kind": "steady", "share": 0.5}).share == 0.5
    for value, place, kind in (
        ("steady", "share", "missing"),
        ({"kind": "cosine", "decay": 3}, "decay", "extra_forbidden"),
        ({"kind": "steady", "share": -1.0}, "share", "greater_than"),
    ):
        with pytest.raises(ValidationError) as caught:
            adapter.validate_python(value)
        assert [(one["loc"][-1], one["type"]) for one in caught.value.errors()] == [(place, kind)]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    clone = Clone(tmp_path_factory.mktemp("clone"))
    config = {
        "name": "recipes",
        "data": {"source": "en", "target": "de", "corpus": {"kind": "bars", "files": "mine.txt"}, "workers": 1},
        "tokenizer": {"kind": "pairs"},
        "model": {"d_model": 16, "n_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1},
        "training": {
            "schedule": {"kind": "exponential", "decay": 0.5},
            "learning_rate": 0.01,
            "warmup_steps": 2,
            "max_epochs": 4,
            "batch_tokens": 256,
        },
        "decoding": {"method": "per_token", "beam": 3, "n_best": 3},
        "runtime": {"device": "cpu", "threads": 1},
    }
    (clone.folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    (clone.folder / "mine.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    clone.tmt("train", "--config", "config.yaml", "--run-dir", "run")
    return clone


def test_there_is_one_recipe_for_each_kind_of_choice() -> None:
    assert {family: Path(path).stem for family, (path, _, _) in recipes().items()} == FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_a_recipe_takes_at_most_twenty_lines(family: str) -> None:
    _, code, line = recipes()[family]
    assert len([text for text in (code + line).splitlines() if text.strip()]) <= MOST_LINES


def test_the_recipes_pass_the_linter_and_the_type_checker(clone: Clone) -> None:
    files = [path for path, _, _ in recipes().values()]
    shutil.copy(ROOT / "pyproject.toml", clone.folder)
    if (ROOT / ".mypy_cache").exists():  # what mypy knows of PyTorch
        shutil.copytree(ROOT / ".mypy_cache", clone.folder / ".mypy_cache")
    clone.run("-m", "ruff", "check", *files)
    clone.run("-m", "ruff", "format", "--check", *files)
    packages = [file.rpartition("/")[0].replace("/", ".") for file in files]
    clone.run("-m", "mypy", *(word for package in packages for word in ("-p", package)))


def test_the_schedule_decides_the_learning_rate(clone: Clone) -> None:
    records = [json.loads(line) for line in (clone.folder / "run" / "metrics.jsonl").read_text("utf-8").splitlines()]
    last = [record for record in records if "learning_rate" in record][-1]
    epoch = last["step"] / 4
    assert last["learning_rate"] == pytest.approx(0.01 * 0.5 ** ((last["step"] - 2) / epoch), rel=1e-4)


def test_a_choice_without_options_may_be_written_as_a_mapping(clone: Clone) -> None:
    code = (
        "from transformer_mt.config.load import load_config;"
        "print(load_config('config.yaml', 'training.schedule={kind: constant}').training.schedule)"
    )
    assert clone.run("-c", code).stdout == "constant\n"


def test_a_gpu_is_checked_without_pydantic_also_with_options_of_a_schedule(clone: Clone) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); sys.modules['pydantic'] = None; import stand_ins\n"
        "with stand_ins.installed(): from transformer_mt.config.training import TrainingConfig\n"
        "print(TrainingConfig(max_steps=1).schedule)"
    )
    assert clone.run("-c", code, str(ROOT / "scripts")).stdout == "noam\n"


def test_the_corpus_is_split(clone: Clone) -> None:
    (manifest,) = (clone.folder / "data" / "prepared").glob("*/manifest.json")
    splits = json.loads(manifest.read_text("utf-8"))["splits"]
    assert splits == {"train": 80, "validation": 10, "test": 10}


def test_the_tokenizer_splits_and_the_search_ranks(clone: Clone) -> None:
    (answer,) = json.loads(clone.tmt("translate", "--model", "run", "--json", "a k").stdout)["translations"]
    assert answer["source_tokens"] == ["a ", "k"]
    scores = [one["score"] for one in answer["n_best"]]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 3


def test_a_beam_on_the_command_line_keeps_the_search_of_the_model(clone: Clone) -> None:
    code = (
        "from pathlib import Path; from transformer_mt.workflows.models import search_settings;"
        "settings = search_settings(Path('run/model'), {'beam': 2}); print(settings.method, settings.beam)"
    )
    assert clone.run("-c", code).stdout == "per_token 2\n"
    refused = clone.tmt("translate", "--model", "run", "--top-k", "3", "a k", status=2).stderr
    assert "--top-k is for sampling" in refused


def test_a_line_without_bars_is_an_error_that_names_it(clone: Clone) -> None:
    (clone.folder / "broken.txt").write_text("a ||| b\nno bars\n", encoding="utf-8")
    error = clone.tmt(
        "prepare", "--config", "config.yaml", "--set", "data.corpus.files=broken.txt", "--set", "name=broken", status=2
    ).stderr
    assert "broken.txt:2" in error
    assert "Write: source ||| target" in error


def test_the_schema_for_editors_lists_the_choices(clone: Clone) -> None:
    clone.tmt("init", "--schema")
    schema = (clone.folder / "tmt.schema.json").read_text("utf-8")
    assert [name for name in FAMILIES.values() if f'"{name}"' not in schema] == []
