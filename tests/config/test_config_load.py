"""Reading configs: plain scalars of YAML, overrides, and writing a config that reads as the same."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from transformer_mt.config.load import config_of, differences, dump_config, load_config
from transformer_mt.config.schema import Config
from transformer_mt.config.yaml_source import parse_value, read_yaml, write_yaml
from transformer_mt.errors import TmtError

CONFIGS = Path(__file__).parents[2] / "configs"
SHIPPED = sorted(CONFIGS.rglob("*.yaml"))
MINIMAL: dict[str, Any] = {
    "name": "trial",
    "data": {"source": "ko", "target": "en", "corpus": {"kind": "phrasebook"}},
    "tokenizer": {"kind": "sentencepiece"},
    "training": {"max_epochs": 1},
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "c.yaml"
    place.write_text(write_yaml(MINIMAL), encoding="utf-8")
    return place


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda path: path.relative_to(CONFIGS).as_posix())
def test_every_shipped_config_is_correct(shipped: Path, tmp_path: Path) -> None:
    config = load_config(shipped)
    (tmp_path / "again.yaml").write_text(dump_config(config), encoding="utf-8")
    assert load_config(tmp_path / "again.yaml") == config
    assert shipped.read_text(encoding="utf-8").startswith("#"), "a shipped config begins with its purpose"


def test_a_config_with_a_temperature_is_read_again_as_it_was_saved(tmp_path: Path) -> None:
    corpora = [{"kind": "phrasebook"}, {"kind": "phrasebook", "seed": 2}]
    data = {"source": "ko", "target": "en", "temperature": 2.0, "corpus": corpora}
    config = Config.model_validate({**MINIMAL, "data": data})
    (tmp_path / "again.yaml").write_text(dump_config(config), encoding="utf-8")
    assert load_config(tmp_path / "again.yaml", ["seed=1"]) == config == config_of(config, ["seed=1"])
    corpora[1]["weight"] = 2.0
    with pytest.raises(ValidationError, match="remove `weight` of corpus 2, or `temperature`"):
        Config.model_validate({**MINIMAL, "data": data})


def test_a_dict_is_a_config_too(file: Path, tmp_path: Path) -> None:
    """Also with paths, tuples and numbers of NumPy, as notebooks have them."""
    assert load_config(MINIMAL) == load_config(file) == config_of(MINIMAL)
    corpus = {"kind": "tsv", "files": (tmp_path / "pairs.tsv",)}
    values = {**MINIMAL, "data": {**MINIMAL["data"], "corpus": corpus}, "training": {"max_epochs": np.int64(3)}}
    config = load_config(values, {"training.label_smoothing": np.float32(0.25), "data.max_length": 20})
    assert (config.training.max_epochs, config.training.label_smoothing, config.data.max_length) == (3, 0.25, 20)
    assert config.data.corpus[0].files == (str(tmp_path / "pairs.tsv"),)
    assert values["data"]["corpus"] is corpus, "the dict of the program is not changed"
    assert "max_length" not in values["data"]


def _cyclic() -> dict[str, Any]:
    made: dict[str, Any] = {**MINIMAL}
    made["model"] = made
    return made


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({None: 3}, "the config: unknown key 'None'"),
        ({math.nan: 3}, "unknown key 'nan'"),
        ({(1, 2): 3}, r"unknown key '\(1, 2\)'"),
        ({"training": {None: 3, "max_epochs": 1}}, "unknown key 'training.None'"),
        ({"seed": 10**5000}, "a number of 16,610 bits is too large"),
        ({"seed": Fraction(10**400)}, "'seed' is .*must be a whole number"),
        ({"data": {**MINIMAL["data"], "corpus": {"kind": "tsv", "files": {"a", "b"}}}}, "a set has no order"),
        (_cyclic(), "nested too deeply"),
    ],
)
def test_what_no_file_can_have_is_an_error(values: dict[Any, Any], said: str) -> None:
    for config, overrides in ((MINIMAL | values, {}), (MINIMAL, values)):
        with pytest.raises(TmtError, match=said.replace("the config", "(the config|overrides)")):
            load_config(config, overrides)


def test_a_key_of_a_file_that_is_no_text_is_unknown(file: Path) -> None:
    file.write_text(f"{file.read_text('utf-8')}null: 3\n", encoding="utf-8")
    with pytest.raises(TmtError, match=r"c\.yaml:?\d*: unknown key 'None'"):
        load_config(file)


def test_mistakes_in_a_dict_are_named_as_in_a_file(file: Path) -> None:
    with pytest.raises(TmtError) as caught:
        load_config({**MINIMAL, "training": {"max_epoch": 3}, "model": {"d_model": "many"}})
    message, remedy = caught.value.message, caught.value.remedy
    assert "the config: unknown key 'training.max_epoch'; did you mean 'max_epochs'?" in message
    assert "'model.d_model' is \"many\", but must be a whole number" in message
    assert "in the config;" in remedy
    for start in (MINIMAL, file, load_config(file)):
        with pytest.raises(TmtError, match=r"^overrides: unknown key 'training.max_epoch'") as caught:
            config_of(start, {"training.max_epoch": 3})
        assert "in overrides;" in caught.value.remedy
    with pytest.raises(TmtError, match="'seed' is a single value") as caught:
        load_config({**MINIMAL, "seed": 1}, {"seed.more": 3})
    assert caught.value.place == "overrides"
    with pytest.raises(TmtError, match="would remove source, target, corpus of 'data'") as caught:
        load_config(file, {"data": {"max_length": 3}})
    assert caught.value.remedy == "Set single keys of it, for example:  data.max_length=..."


@pytest.mark.parametrize(
    ("override", "lost"),
    [
        ("model={d_model: 64}", ""),  # the file has no such section
        ("tokenizer={kind: whitespace}", ""),
        ("training={max_epochs: 3, patience: 1}", ""),
        ("training={patience: 1}", "max_epochs"),
        ("data={source: de}", "target, corpus"),
    ],
)
def test_a_part_of_a_section_does_not_replace_it_in_silence(file: Path, override: str, lost: str) -> None:
    if not lost:
        load_config(file, override)
        return
    with pytest.raises(TmtError, match=f"would remove {lost} of '") as caught:
        load_config(file, override)
    assert caught.value.place == "--set"


def test_there_are_shipped_configs() -> None:
    assert {"files"} <= {path.stem for path in SHIPPED}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"), ("yes", "yes"), ("on", "on"), ("off", "off"), ("y", "y"), ("NO", "NO"),
        ("true", True), ("False", False), ("null", None), ("~", None), ("", None),
        ("1e-9", 1e-9), ("1E5", 1e5), ("4.", 4.0), (".5", 0.5), ("-3", -3), ("1_000", 1000), ("010", 10), ("08", 8),
        ("1:30", "1:30"), ("2024-01-02", "2024-01-02"), ("0x10", "0x10"), ("1.2.3", "1.2.3"), ("=", "="),
        ("'1'", "1"), ("[1, no]", [1, "no"]), ("{a: 1e3}", {"a": 1000.0}),
        (".inf", math.inf), ("-.Inf", -math.inf), (".INF", math.inf),
    ],
)  # fmt: skip
def test_plain_scalars_are_read_as_yaml_1_2(text: str, value: object) -> None:
    parsed = parse_value(text)
    assert parsed == value
    assert type(parsed) is type(value)


def test_norwegian_is_a_language(file: Path) -> None:
    changed = ["data.source=no", "data.corpus={kind: tsv, files: a.tsv}"]
    assert load_config(file, changed).data.source == "no"


def test_truecase_is_not_a_boolean(file: Path) -> None:
    config = load_config(file, ["tokenizer.case=true"])
    assert config.source_tokenizer.case == "true"
    assert "case: 'true'" in dump_config(config)


def test_overrides_set_old_and_new_keys_and_items_of_lists(file: Path) -> None:
    file.write_text(write_yaml({**MINIMAL, "training": {"max_epochs": 1, "betas": [0.9, 0.98]}}))
    overrides = ["training.max_epochs=3", "model.dropout=0.2", "training.betas.1=0.999", "decoding={beam: 2}"]
    config = load_config(file, overrides)
    assert (config.training.max_epochs, config.model.dropout, config.decoding.beam) == (3, 0.2, 2)
    assert config.training.betas == (0.9, 0.999)


def test_an_override_of_a_section_does_not_change_its_alias(file: Path) -> None:
    text = write_yaml(MINIMAL).replace("kind: sentencepiece", "source: &t {kind: whitespace}\n  target: *t")
    file.write_text(text, encoding="utf-8")
    config = load_config(file, ["tokenizer.target.min_frequency=7"])
    assert (config.source_tokenizer.min_frequency, config.target_tokenizer.min_frequency) == (2, 7)


def test_a_problem_of_an_override_has_the_command_line_as_place(file: Path) -> None:
    with pytest.raises(TmtError, match="--set: ") as caught:
        load_config(file, ["data.corpus.0.weight=2"])  # the corpus is not a list
    assert "on the command line" in caught.value.remedy
    with pytest.raises(TmtError, match="duplicate key"):
        load_config(file, ["model={d_model: 64, d_model: 128}"])


def test_a_later_override_wins(file: Path) -> None:
    assert load_config(file, ["seed=2", "seed=3"]).seed == 3


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + write_yaml(MINIMAL).replace("\n", "\r\n").encode())
    assert load_config(file).name == "trial"


def test_each_key_has_its_line(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("# first\n\na:\n  b: [1,\n    2]\n  c: {d: 3}\n")
    lines = read_yaml(tmp_path / "c.yaml").lines
    assert lines[("a",)] == 3
    assert lines[("a", "b", 1)] == 5
    assert lines[("a", "c", "d")] == 6


def test_differences_name_the_keys(file: Path) -> None:
    one, other = load_config(file), load_config(file, ["model.d_ff=64", "tokenizer={kind: spacy}"])
    found = differences(one, other)
    assert "model.d_ff: 2048 | 64" in found
    assert "tokenizer.kind: sentencepiece | spacy" in found
    assert "tokenizer.vocab_size: 8000 | absent" in found
    assert differences(one, one) == []


CORPORA = [{"kind": "tsv", "files": f"{name}.tsv"} for name in "abc"]


@pytest.mark.parametrize(
    ("corpora", "found"),
    [
        ([*CORPORA[:2], {**CORPORA[2], "weight": 2.0}], ["data.corpus.2.weight: 1.0 | 2.0"]),
        ([CORPORA[0], {**CORPORA[1], "files": "d.tsv"}, CORPORA[2]], ["data.corpus.1.files: ['b.tsv'] | ['d.tsv']"]),
        (CORPORA[1:], ["data.corpus: tsv a.tsv | nothing else"]),
        ([*CORPORA, {"kind": "phrasebook"}], ["data.corpus: nothing else | phrasebook"]),
        (
            [{"kind": "text", "files": ["a.en", "a.de"]}, *CORPORA[1:]],
            ["data.corpus: tsv a.tsv | text a.en ..."],
        ),
        ([CORPORA[0], {"kind": "phrasebook"}, *CORPORA[1:]][::-1], ["data.corpus: nothing else | phrasebook"]),
        (CORPORA[::-1], ["data.corpus.0.files: ['a.tsv'] | ['c.tsv']", "data.corpus.2.files: ['c.tsv'] | ['a.tsv']"]),
        (CORPORA[:1], ["data.corpus: tsv b.tsv, tsv c.tsv | nothing else"]),
    ],
)
def test_of_several_corpora_only_the_difference_is_named(file: Path, corpora: list[Any], found: list[str]) -> None:
    one, other = (load_config(file, [f"data.corpus={json.dumps(each)}"]) for each in (CORPORA, corpora))
    assert differences(one, other) == found


def test_lists_of_parallel_files_are_no_corpora(file: Path) -> None:
    def text(*names: str) -> str:
        files = [{"source": f"{name}.de", "target": f"{name}.en"} for name in names]
        return f"data.corpus={json.dumps([{'kind': 'text', 'train': files, 'validation': files[0]}])}"

    (found,) = differences(load_config(file, [text("a")]), load_config(file, [text("a", "b")]))
    before, now = found.removeprefix("data.corpus.0.train: ").split(" | ")
    assert ("b.de" in before, "b.de" in now) == (False, True)


def test_corpora_in_another_order_are_all_named(file: Path) -> None:
    both = [CORPORA[0], {"kind": "phrasebook"}]
    one, other = (load_config(file, [f"data.corpus={json.dumps(each)}"]) for each in (both, both[::-1]))
    assert differences(one, other) == ["data.corpus: tsv a.tsv, phrasebook | phrasebook, tsv a.tsv"]


def test_a_config_cannot_be_changed(file: Path) -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_config(file).seed = 2  # type: ignore[misc]


scalars = st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
tricky = st.sampled_from(["no", "1e9", "08", "1:30", "~", "null", "0o7", "1_0", "<<", "=", "2024-01-02", ".5", "a: b"])
trees = st.recursive(
    scalars | words | tricky, lambda inner: st.lists(inner) | st.dictionaries(words | tricky, inner), max_leaves=8
)


@given(value=trees)
def test_any_value_survives_writing_and_reading(value: object) -> None:
    assert parse_value(write_yaml({"key": value})) == {"key": value}


@given(
    name=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True),
    directory=words.filter(bool),
    epsilon=st.floats(1e-300, 0.5),
    seed=st.integers(0, 2**63 - 1),
    heads=st.integers(1, 8),
    case=st.sampled_from(["keep", "lower", "true"]),
)
def test_a_dumped_config_reads_as_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    directory: str,
    epsilon: float,
    seed: int,
    heads: int,
    case: str,
) -> None:
    config = Config.model_validate(
        MINIMAL
        | {
            "name": name,
            "seed": seed,
            "data": MINIMAL["data"] | {"prepared": directory},  # type: ignore[operator]
            "model": {"n_heads": heads, "d_model": heads * 6},
            "tokenizer": {"source": {"kind": "soynlp", "case": case}, "target": {"kind": "character"}},
            "training": {"epsilon": epsilon, "max_steps": 1},
        }
    )
    file = tmp_path_factory.getbasetemp() / "dumped.yaml"
    file.write_text(dump_config(config), encoding="utf-8")
    assert load_config(file) == config
