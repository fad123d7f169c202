"""Configs that are hostile or broken: deep, huge, unprintable. The message is short, and comes at once."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from transformer_mt.config.load import load_config
from transformer_mt.errors import TmtError

BASE = Path(__file__).parents[2] / "configs" / "quickstart.yaml"


def test_a_number_that_no_computer_counts_to_is_refused(tmp_path: Path) -> None:
    for number in (2**63, 10**400):
        said = problem(tmp_path, "", f"training.max_steps={number}")
        assert "training.max_steps: the number is too large" in said
    load_config(BASE, [f"training.max_steps={2**63 - 1}"])


def problem(place: Path, text: str = "", *overrides: str) -> str:
    """What is said about a config: quickstart's and this text."""
    file = place / "my.yaml"
    file.write_text(BASE.read_text(encoding="utf-8") + text, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(TmtError) as error:
        load_config(file, overrides)
    said = str(error.value)
    said.encode("utf-8")
    assert len(said) < 5_000
    return said


@pytest.mark.parametrize(
    "text",
    [
        "extra: " + "{a: " * 60 + "1" + "}" * 60,
        "extra: " + "[" * 900 + "]" * 900,
        "\n".join(" " * n + f"k{n}:" for n in range(200)),
    ],
    ids=["mappings", "lists", "blocks"],
)
def test_nested_too_deeply(tmp_path: Path, text: str) -> None:
    assert "nested too deeply for a config" in problem(tmp_path, text)


@pytest.mark.parametrize("levels", [45, 400, 5000])
def test_keys_on_the_command_line_nested_too_deeply(tmp_path: Path, levels: int) -> None:
    said = problem(tmp_path, "", f"{'a.' * levels}b=1")
    assert ("nested too deeply" in said) == (levels > 50)
    assert "--set" in said
    assert "--set" in problem(tmp_path, "", "model=" + "{a: " * levels + "1" + "}" * levels)


def test_thousands_of_unknown_keys_are_counted_and_the_first_are_shown(tmp_path: Path) -> None:
    keys = "\n".join(f"unknown_{n}: {n}" for n in range(5_000))
    said = problem(tmp_path, f"\n{keys}\n")
    shown = [line for line in said.splitlines() if "unknown key" in line]
    assert [line.split("'")[1] for line in shown] == [f"unknown_{n}" for n in range(20)]
    assert "\n... and 4,980 more problems\n" in said
    assert "Fix these 5000 keys" in said


def test_twenty_problems_are_all_shown(tmp_path: Path) -> None:
    said = problem(tmp_path, "\n" + "".join(f"unknown_{n}: {n}\n" for n in range(20)))
    assert said.count("unknown key") == 20
    assert "more problem" not in said


def test_repeated_keys_are_counted_too(tmp_path: Path) -> None:
    said = problem(tmp_path, "\n" + "seed: 1\n" * 3_000)
    assert said.count("duplicate key 'seed'") == 20
    assert "... and 2,980 more problems" in said


def test_numbers_with_thousands_of_digits(tmp_path: Path) -> None:
    assert "a number with 100,000 digits" in problem(tmp_path, "\nextra: " + "9" * 100_000)
    assert "not valid YAML" in problem(tmp_path, "", "seed=" + "9" * 100_000)
    assert "unknown key" in problem(tmp_path, "", f"{'9' * 5_000}=1")


@pytest.mark.parametrize("text", ['\nextra: "\\uD800"\n', '\n"\\uD800": 1\n'])
def test_half_of_a_character_can_be_printed(tmp_path: Path, text: str) -> None:
    assert "\\ud800" in problem(tmp_path, text) or "unknown key 'extra'" in problem(tmp_path, text)


def test_half_of_a_character_in_an_error() -> None:
    assert str(TmtError("bad \ud800", place="file-\udcff", remedy="x")) == "file-\\udcff: bad \\ud800\n  x"


def test_names_and_values_of_many_characters_are_cut(tmp_path: Path) -> None:
    assert "unknown key 'kkk" in problem(tmp_path, f"\n? {'k' * 100_000}\n: 1\n")
    assert "is not of the form key=value" in problem(tmp_path, "", "x" * 100_000)


def test_a_file_larger_than_any_config(tmp_path: Path) -> None:
    assert "larger than 1 MiB, so not a config" in problem(tmp_path, "\n" + "# comment\n" * 200_000)
    device = tmp_path / "zero.yaml"
    device.symlink_to("/dev/zero")
    with pytest.raises(TmtError, match="larger than 1 MiB"):
        load_config(device)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_config_from_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "my.yaml"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(BASE.read_bytes(),))
    writer.start()
    assert load_config(pipe).name == "quickstart"
    writer.join()
