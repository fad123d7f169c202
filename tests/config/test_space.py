"""The search space of `tmt tune`: what it accepts, and that all mistakes are found at once, with their lines."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from transformer_mt.config.choices import CHOICES
from transformer_mt.config.load import Config
from transformer_mt.config.space import Choices, Range, read_space, shown
from transformer_mt.errors import TmtError


@pytest.fixture
def config(numbers: Any) -> Config:
    return Config.model_validate(numbers.values())


def _problems(tmp_path: Path, config: Config, text: str) -> list[str]:
    file = tmp_path / "space.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(TmtError) as caught:
        read_space(file, config)
    return caught.value.message.replace(str(file), "space.yaml").splitlines()


def test_ranges_and_lists_are_read(config: Config) -> None:
    space = read_space(
        {
            "training.learning_rate": {"low": 0.001, "high": 0.03, "log": True},
            "model.dropout": {"low": 0.1, "high": 0.4, "step": 0.1},
            "model.d_model": [16, 32],
            "training.clip_norm": [None, 1.0],
        },
        config,
    )
    assert space.ranges["training.learning_rate"] == Range(0.001, 0.03, log=True)
    assert space.ranges["model.d_model"] == Choices((16, 32))
    assert space.size == math.inf
    assert not space.changes_tokens


def test_the_schema_decides_whether_a_range_has_whole_numbers(config: Config) -> None:
    ranges = {"training.warmup_steps": {"low": 0, "high": 4}, "training.clip_norm": {"low": 1, "high": 5}}
    space = read_space(ranges, config)
    assert [one.is_whole for one in space.ranges.values() if isinstance(one, Range)] == [True, False]
    assert (
        read_space({"training.warmup_steps": {"low": 0, "high": 4, "step": 2}, "model.d_ff": [8, 9]}, config).size == 6
    )


def test_values_are_shown_as_they_are(config: Config) -> None:
    space = read_space(
        {"training.ema_decay": [0.9999, 0.99996], "training.clip_norm": {"low": 0.9999991, "high": 12345678}}, config
    )
    assert list(map(str, space.ranges.values())) == ["one of 0.9999, 0.99996", "0.9999991 to 12345678.0"]
    assert [shown(value) for value in (0.99996, 0.00123457, 0.5, 0.0, 1.0, 2.34567, 7)] == [
        *("0.99996", "0.001235", "0.5", "0", "1", "2.346", "7"),
    ]


def test_all_mistakes_are_reported_with_their_lines(tmp_path: Path, config: Config) -> None:
    text = """\
training.learning_rat: [0.1]
training.learning_rate: {low: 0.001, high: 30}
training.warmup_steps: [5, -1]
training.ema_decay: {lo: 0.9, high: 0.99}
model.dropout: {low: 0.3, high: 0.1}
training.epsilon: {low: 0, high: 0.1, log: true}
model.d_ff: 32
model: {d_model: [16]}
training.optimizer: [adam, adma]
"""
    assert _problems(tmp_path, config, text) == [
        "space.yaml:1: unknown key 'training.learning_rat'; did you mean 'training.learning_rate'?",
        "space.yaml:2: 'training.learning_rate' is 30, but must be less than 10.0",
        "space.yaml:3: 'training.warmup_steps' is -1, but must be at least 0",
        "space.yaml:4: 'training.ema_decay' needs 'low'",
        "space.yaml:4: unknown key 'training.ema_decay.lo'; known here: low, high, step, log",
        "space.yaml:5: 'model.dropout' has a `low` of 0.3 above its `high` of 0.1",
        "space.yaml:6: 'training.epsilon' needs a `low` above 0 with log: true",
        "space.yaml:7: 'model.d_ff' needs a list of values, or a range {low: ..., high: ...}",
        "space.yaml:8: 'model' needs `low` and `high`; write keys inside of a section with dots, such as model.d_model",
        "space.yaml:9: 'training.optimizer' is \"adma\", but must be one of "
        f"{str([*CHOICES['optimizer']])[1:-1]}; did you mean 'adam'?",
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("training.max_epochs: [1, 2]", "it decides how long a trial is"),
        ("data.max_length: [10, 20]", "it changes the validation sentences"),
        ("decoding.beam: [1, 2]", "no effect on the validation"),
        ("name: [a, b]", "it is the name of the run"),
        ("seed: [1, 2]", "only changes the random numbers"),
        ("synthesis.beam: [1, 2]", "no effect on a training"),
        ("training: [{max_epochs: 3}]", "is a section"),
        ("model.dropout: {low: 0.1, high: 0.35, step: 0.1}", "the last value is 0.3"),
        ("model.dropout: {low: 0.1, high: 0.3, step: 0.1, log: true}", "cannot have both"),
        ("model.dropout: {low: 0.1, high: 0.3, step: 1.0e-300}", "more than 1,000,000 steps of 1e-300"),
        ("training.noam_factor: {low: 0.1, high: 1.0e+308, step: 1.0e-300}", "more than 1,000,000 steps"),
        ("model.dropout: []", "has no values"),
        ("training.betas.0: [0.8, 0.9]", "give whole lists:  training.betas: [[...], [...]]"),
        ("model.dropout: [0.1, 0.1]", "the same value twice"),
        ("training.warmup_steps: {low: 0, high: 4, step: 0.5}", "must be a whole number"),
    ],
)
def test_what_cannot_be_searched_is_refused(tmp_path: Path, config: Config, line: str, said: str) -> None:
    (problem,) = _problems(tmp_path, config, line + "\n")
    assert problem.startswith("space.yaml:1: ")
    assert said in problem


def test_a_number_in_a_key_may_have_any_length(config: Config) -> None:
    with pytest.raises(TmtError, match="unknown key"):
        read_space({"training." + "1" * 5_000: [0.8, 0.9]}, config)


def test_a_part_of_a_searched_key_is_refused(tmp_path: Path, config: Config) -> None:
    text = "tokenizer: [{kind: character}, {kind: whitespace}]\ntokenizer.kind: [character, whitespace]\n"
    said = "space.yaml:2: 'tokenizer.kind' is part of 'tokenizer', which is searched too"
    assert said in _problems(tmp_path, config, text)


def test_an_empty_space_is_refused(tmp_path: Path, config: Config) -> None:
    with pytest.raises(TmtError, match="the search space is empty"):
        read_space({}, config)
    file = tmp_path / "space.yaml"
    file.write_text("# nothing\n", encoding="utf-8")
    with pytest.raises(TmtError, match="not a search space: the file has no keys") as caught:
        read_space(file, config)
    assert caught.value.remedy.startswith("A line is  training.learning_rate")
    file.unlink()
    with pytest.raises(TmtError, match="no such file with a search space") as caught:
        read_space(file, config)
    assert "A line is  training.learning_rate" in caught.value.remedy


def test_values_that_contradict_others_are_not_mistakes_of_the_space(config: Config) -> None:
    """d_model 17 fits n_heads 1, which may be in the same trial."""
    assert read_space({"model.d_model": [16, 17], "model.n_heads": [1, 2]}, config).size == 4


def test_a_value_of_the_config_is_found_in_a_list_whatever_its_type() -> None:
    assert [json.dumps(Choices((0.5, 1, True, None)).same_as(value)) for value in (1.0, True, None, 2.0)] == [
        *("1", "true", "null", "2.0")
    ]
