"""What the user is told when a run is started again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from transformer_mt.config.schema import Config
from transformer_mt.training.run_directory import RunDirectory
from transformer_mt.training.run_facts import facts_of
from transformer_mt.workflows.opening import open_run

FILES = [{"path": "pairs.tsv", "size": 3, "sha256": "abc"}]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    directory = RunDirectory(tmp_path / "runs" / "one")
    yield directory
    directory.close()


def config_of(**training: object) -> Config:
    return Config.model_validate(
        {
            "name": "one",
            "data": {"source": "en", "target": "de", "corpus": {"kind": "phrasebook"}},
            "tokenizer": {"kind": "character"},
            "training": {"max_epochs": 3, **training},
        }
    )


def save(run: RunDirectory, step: int) -> None:
    run.checkpoints.path(step).mkdir(parents=True)


def test_a_run_that_saved_nothing_says_that_it_begins_again(run: RunDirectory):
    assert open_run(run, config_of(), facts_of(FILES)) == []
    (note,) = open_run(run, config_of(), facts_of(FILES))
    assert note == "note       an earlier start of this run saved nothing; it begins again"
    save(run, 5)
    assert open_run(run, config_of(), facts_of(FILES)) == []
    (moved,) = open_run(run, config_of(), facts_of(FILES), fresh=True)
    assert moved.startswith("previous run moved to ")
