"""The messages for a wrong config: all problems at once, each with file and line, exit code 2."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from transformer_mt.config.choices import CHOICES, name_of
from transformer_mt.config.load import load_config
from transformer_mt.config.problems import _path_in_file
from transformer_mt.config.schema import Config
from transformer_mt.errors import USER_FAULT, TmtError

CORRECT = """\
name: trial
data:
  source: ko
  target: en
  corpus: {kind: phrasebook}
tokenizer: {kind: sentencepiece}
training: {max_epochs: 1}
"""


@pytest.fixture
def errors_of(tmp_path: Path):
    """A function that loads a config from its text (and overrides) and returns the lines of the error message."""

    def load(text: str | bytes, *overrides: str) -> list[str]:
        file = tmp_path / "c.yaml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(TmtError) as error:
            load_config(file, overrides)
        assert error.value.exit_code == USER_FAULT
        return str(error.value).replace(str(file), "c.yaml").splitlines()

    return load


def test_a_correct_config_is_read(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(CORRECT)
    config = load_config(tmp_path / "c.yaml")
    assert (config.name, config.training.max_epochs, config.model.d_model) == ("trial", 1, 512)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("seed: one", "'seed' is \"one\", but must be a whole number"),
        ("seed: 1.5", "'seed' is 1.5, but must be a whole number"),
        ("seed: -1", "'seed' is -1, but must be at least 0"),
        ("seed: true", "'seed' is true, but must be a whole number"),
        ("model: {dropout: 1.0}", "'model.dropout' is 1.0, but must be less than 1.0"),
        ("model: {dropout: .nan}", "'model.dropout' is NaN, but must be a finite number"),
        ("model: {norm: before}", "'model.norm' is \"before\", but must be one of 'pre', 'post'"),
        ("decoding: {method: beem}", "'sample', 'mbr'; did you mean 'beam'?"),
        ("model: 3", "'model' is 3, but must be a mapping of keys"),
        ("runtime: {compile: yes}", "'runtime.compile' is \"yes\", but must be true or false, or 'auto'"),
        ("decoding: {beam: 257}", "'decoding.beam' is 257, but must be at most 256"),
        ("decoding: {temperature: 0}", "'decoding.temperature' is 0, but must be at least 0.001"),
        ("modle: {}", "unknown key 'modle'; did you mean 'model'?"),
        ("model: {d_modle: 3}", "unknown key 'model.d_modle'; did you mean 'd_model'?"),
        ("max_epochs: 3", "unknown key 'max_epochs'; did you mean 'training.max_epochs'?"),
        ("model: {warmup_steps: 3}", "unknown key 'model.warmup_steps'; did you mean 'training.warmup_steps'?"),
        ("model: {epsilon: 1e-6}", "'model.epsilon'; did you mean 'epsilon_on' or 'training.epsilon'?"),
        ("batch_tokens: 9", "'batch_tokens'; did you mean 'training.batch_tokens' or 'decoding.batch_tokens'?"),
        ("model: {d_model: 10, n_heads: 3}", "model: d_model 10 is not divisible by n_heads 3"),
        ("model: {tie_embeddings: true}", "needs one vocabulary for both sides"),
        ("decoding: {beam: 4, n_best: 8}", "n_best 8 needs a beam of at least 8, not 4"),
        ("1: 3", "unknown key '1'; known here: name, seed"),
        ("seed: 9223372036854775808", "must be less than 9223372036854775808"),
        ("model: {d_model: 1000000000}", "'model.d_model' is 1000000000, but must be at most 1048576"),
        ("model: {decoder_layers: 1000000}", "'model.decoder_layers' is 1000000, but must be at most 1000"),
        ("seed: {? !!timestamp 2020-01-01 : 3}", "'seed' is {"),
        (
            "model: {positions: rotary, d_model: 6, n_heads: 2}",
            "rotary positions need an even d_model / n_heads, not 3",
        ),
        ("model: {max_positions: 100}", "max_positions is only for positions: learned"),
        ("synthesis: {models: []}", "`models` is empty; name a run, or remove the key"),
        ("synthesis: {search: {n_best: 2}}", "search.n_best must be 1: each sentence gets one translation"),
        ("synthesis: {models: [a], teachers: 2}", "`models` are trained already; remove `teachers`"),
        ("runtime: {threads: 100000}", "'runtime.threads' is 100000, but must be at most 1024"),
    ],
)
def test_a_problem_has_its_line(errors_of, line: str, message: str) -> None:
    head, remedy = errors_of(f"{CORRECT}{line}\n")
    assert head.startswith("c.yaml:8: ")
    assert message in head
    assert "c.yaml" in remedy


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("model: {norm_kernel: handmade}", "needs model.norm_kernel: fused and model.epsilon_on: variance"),
        ("model: {epsilon_on: deviation}", "needs model.norm_kernel: fused and model.epsilon_on: variance"),
        ("", "needs a runtime.precision of auto, bfloat16 or float32"),
    ],
)
def test_bfloat16_weights_have_conditions(errors_of, lines: str, message: str) -> None:
    precision = "" if lines else ", precision: float16"
    head, _ = errors_of(f"{CORRECT}runtime: {{weights: bfloat16{precision}}}\n{lines}\n")
    assert "runtime.weights: bfloat16 " + message in head


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("batch_tokens: 64, batch_sentences: 8", "batch_tokens and batch_sentences cannot both be set; remove one"),
        ("average: best, keep_best: 0", "average: best needs keep_best of at least 1"),
    ],
)
def test_keys_of_the_training_that_exclude_each_other(errors_of, keys: str, message: str) -> None:
    head, _ = errors_of(CORRECT.replace("{max_epochs: 1}", f"{{max_epochs: 1, {keys}}}"))
    assert message in head


@pytest.mark.parametrize(
    ("data", "problems"),
    [
        ("{kind: text, files: ''}", ["'data.corpus.files' is \"\", but must not be empty"]),
        ("{kind: tsv, files: ''}", ["'data.corpus.files' is \"\", but must not be empty"]),
        ("{kind: aihub, files: ''}", ["'data.corpus.files' is \"\", but must not be empty"]),
        (
            "{kind: text, train: [{source: a.ko}, {source: a, target: ''}], validation: '', test: {a: 3}}",
            [
                "key 'data.corpus.train.0.target' is missing",
                "'data.corpus.train.1.target' is \"\", but must not be empty",
                "'data.corpus.validation' is \"\", but must not be empty",
                "'data.corpus.test.a' is 3, but must be text; put numbers and true or false in quotes,"
                " or a mapping of keys",
            ],
        ),
        ("{kind: phrasebook}\n  prepared: ''", ["'data.prepared' is \"\", but must not be empty"]),
    ],
)
def test_a_value_of_several_forms_has_the_problems_of_its_own_form(errors_of, data: str, problems: list[str]) -> None:
    *found, _ = errors_of(CORRECT.replace("{kind: phrasebook}", data))
    assert [line.partition(": ")[2] for line in found] == problems


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("{kind: phrasebook}", "{kind: phrasebok}", "did you mean 'phrasebook'?"),
        ("{kind: phrasebook}", "{train: 5}", "'data.corpus' needs a 'kind'"),
        ("{kind: phrasebook}", "{kind: tsv}", "give either `files`"),
        ("{kind: phrasebook}", "{kind: tsv, files: a.tsv, column: 3}", "unknown key 'data.corpus.column'"),
        ("{kind: phrasebook}", "{kind: multi30k, test_sets: [test_2015]}", "unknown test set"),
        ("{kind: phrasebook}", "{kind: tsv, train: a.tsv}", "`train` needs `validation`"),
        ("{kind: phrasebook}", "{kind: tsv, files: a.tsv, split: {test: 1.5}}", "1.5 is not a share below 1"),
        ("{kind: phrasebook}", "{kind: tsv, files: a, split: {validation: 0.5, test: 0.5}}", "nothing for training"),
        ("target: en", "target: ko", "needs two languages"),
        ("target: en", "target: fr", "corpus 'phrasebook' has the languages ko, en, de, not ko-fr"),
        ("target: en", "target: English", "must be an ISO 639 code of two or three small letters"),
        ("target: en", "target: English", "did you mean 'en'?"),
        ("target: en", "target: de-AT", "did you mean 'de'?"),
        ("target: en", "target: 독일어", "did you mean 'de'?"),
        ("source: ko", "sorce: ko", "did you mean 'source'?"),
    ],
)
def test_a_problem_in_the_data_section(errors_of, before: str, after: str, message: str) -> None:
    problems = errors_of(CORRECT.replace(before, after))
    assert any(message in problem for problem in problems)
    assert problems[0].startswith(tuple(f"c.yaml:{line}: " for line in range(2, 6)))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.attention_dropout=0.1", "training.packing needs model.attention: fused and model.attention_dropout: 0"),
        ("model.attention=handmade", "training.packing needs model.attention: fused and model.attention_dropout: 0"),
        ("training.batch_sentences=64", "packing measures batches in tokens; set batch_tokens instead"),
    ],
)
def test_packing_excludes_what_its_attention_cannot_compute(errors_of, override: str, message: str) -> None:
    assert any(message in line for line in errors_of(CORRECT, override, "training.packing=true"))


def test_an_unknown_kind_is_named_as_in_the_file(errors_of) -> None:
    head, _ = errors_of(CORRECT.replace("{kind: sentencepiece}", "{kind: sentencepeice}"))
    assert head.startswith(
        f"c.yaml:6: 'tokenizer.kind' is 'sentencepeice', but must be one of {', '.join(CHOICES['tokenizer'])}"
    )
    head, _ = errors_of(CORRECT.replace("{kind: sentencepiece}", "{source: {kind: spaci}, target: {kind: spacy}}"))
    assert head.startswith("c.yaml:6: 'tokenizer.source.kind' is 'spaci'")


def test_a_key_of_another_form_of_the_section_is_not_suggested(errors_of) -> None:
    sides = CORRECT.replace("{kind: sentencepiece}", "{source: {kind: spacy}, target: {kind: spacy}}")
    head, _ = errors_of(sides, "tokenizer.kind=character")
    assert head == "--set: key 'tokenizer.kind' cannot be combined with 'source', 'target'"


def test_the_remedy_says_where_to_fix_the_keys(errors_of) -> None:
    assert "on the command line" in errors_of(CORRECT, "seed=x")[-1]
    assert "these 2 keys in c.yaml" in errors_of(CORRECT.replace("name:", "nme:"))[-1]


def test_suggestions_are_keys_of_the_kind_in_the_config(errors_of) -> None:
    head, _ = errors_of(CORRECT.replace("{kind: phrasebook}", "{kind: tsv, files: a, test_sets: [a]}"))
    assert "did you mean 'test'?" in head  # `test_sets` is a key, but of another kind


def test_all_problems_are_listed_in_the_order_of_the_file(errors_of) -> None:
    text = CORRECT.replace("max_epochs: 1", "max_epochs: 0, patience: x") + (
        "model:\n  d_model: 10\n  n_heads: 3\n  dropuot: 0.1\n  dropout: 2\ndecoding: {beam: 2, n_best: 3, beem: 1}\n"
    )
    *problems, remedy = errors_of(text)
    assert [problem.split(": ")[0] for problem in problems] == [f"c.yaml:{n}" for n in (7, 7, 9, 11, 12, 13, 13)]
    assert "these 7 keys" in remedy


def test_a_default_is_never_part_of_a_contradiction(errors_of) -> None:
    """d_model is wrong. Its default 512 is not divisible by 7, but that must not be reported."""
    assert len(errors_of(CORRECT + "model: {d_model: wide, n_heads: 7}\n")) == 2
    assert len(errors_of(CORRECT.replace("max_epochs: 1", "max_epochs: many"))) == 2


@pytest.mark.parametrize(
    ("training", "message"),
    [
        ("betas: [0.1]", "'training.betas' has too few values"),
        ("schedule: plateau, min_learning_rate: 0.5", "min_learning_rate is above the peak, a learning_rate of 0.001"),
        ("schedule: cosine, learning_rate: 0.1, min_learning_rate: 0.2", "min_learning_rate is above the peak"),
        ("schedule: cosine, decay_steps: 100", "decay_steps must be above warmup_steps, which is 4,000"),
    ],
)
def test_a_wrong_schedule_is_refused(errors_of, training: str, message: str) -> None:
    assert any(message in line for line in errors_of(CORRECT.replace("max_epochs: 1", f"max_epochs: 1, {training}")))


def test_each_contradiction_of_a_section_has_its_line(errors_of) -> None:
    text = CORRECT.replace(
        "{max_epochs: 1}", "\n  schedule: noam\n  learning_rate: 1\n  monitor: bleu\n  bleu_sentences: 0"
    )
    problems = errors_of(text)
    assert [line.split(": ", 2)[0] for line in problems[:-1]] == ["c.yaml:7", "c.yaml:8", "c.yaml:10"]


def test_a_duplicate_key(errors_of) -> None:
    head, _ = errors_of(CORRECT + "model:\n  d_ff: 3\n  d_ff: 4\n")
    assert head == "c.yaml:10: duplicate key 'model.d_ff', first on line 9"


def test_missing_keys_are_all_named(errors_of) -> None:
    assert [line for line in errors_of("data: {}\n") if "is missing" in line] == [
        "c.yaml: key 'name' is missing",
        "c.yaml: key 'tokenizer' is missing",
        "c.yaml: key 'training' is missing",
        "c.yaml:1: key 'data.source' is missing",
        "c.yaml:1: key 'data.target' is missing",
        "c.yaml:1: key 'data.corpus' is missing",
    ]


def test_morphemes_are_for_korean(errors_of) -> None:
    text = CORRECT.replace("{kind: sentencepiece}", "{kind: sentencepiece, morphemes: mecab}")
    head, _ = errors_of(text.replace("source: ko", "source: de"))
    assert "tokenizer option 'morphemes' is for Korean, which is no language of data; remove it" in head


def test_morphemes_need_separate_vocabularies(errors_of) -> None:
    text = CORRECT.replace("{kind: sentencepiece}", "{kind: sentencepiece, morphemes: mecab, shared: true}")
    problem = errors_of(text)[0]
    assert problem.startswith("c.yaml:6: ")
    assert "shared cannot be true" in problem


def test_a_tokenizer_for_each_side(errors_of) -> None:
    sides = "{source: {kind: soynlp, vocab_size: 3}, target: {kind: spacy, min_freq: 3}}"
    problems = errors_of(CORRECT.replace("{kind: sentencepiece}", sides))
    assert "c.yaml:6: unknown key 'tokenizer.target.min_freq'; did you mean 'min_frequency'?" in problems
    assert any("'tokenizer.source.vocab_size'" in problem for problem in problems)
    assert (
        "key 'tokenizer.target' is missing"
        in errors_of(CORRECT.replace("{kind: sentencepiece}", "{source: {kind: spacy}}"))[0]
    )


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "c.yaml", "the file has no keys"),
        ("# nothing but a comment\n", "c.yaml", "the file has no keys"),
        ("- a\n- b\n", "c.yaml", "the file has no keys"),
        ("just words", "c.yaml", "the file has no keys"),
        ("a:\n\tb: 3\n", "c.yaml:2", "a tab; YAML allows only spaces here"),
        ("a: [1, 2\nb: 3\n", "c.yaml:2", "not valid YAML"),
        ("a: 1\n---\nb: 1\n", "c.yaml:2", "another document"),
        ("a: 1\nb: !!python/object/apply:os.system [ls]\n", "c.yaml:2", "not valid YAML"),
        ("a: 1\nb: !!int abc\n", "c.yaml:2", "not valid YAML"),
        ("a: 1\nb: !!float abc\n", "c.yaml:2", "not valid YAML"),
        ("b: !!bool maybe\n", "c.yaml", "wrong value for a YAML tag"),
        ("b: !!timestamp abc\n", "c.yaml", "wrong value for a YAML tag"),
        ("a: 1\nb: " + "9" * 5000, "c.yaml:2", "not valid YAML"),
        ("a: 1\nb: \x00\n", "c.yaml:2", "U+0000"),
        (b"a: 1\nb: 2\nc: \xff\n", "c.yaml:3", "not UTF-8"),
        ("[" * 3000, "c.yaml", "nested too deeply"),
        ("a: &a [*a]\n", "c.yaml", "nested too deeply"),
        ("a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
            f"{x}: &{x} [{','.join(['*' + y] * 10)}]\n" for y, x in zip("abcdefg", "bcdefgh", strict=True)
        ), "c.yaml:1", "more than 10000 keys"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_a_config(errors_of, text: str | bytes, place: str, message: str) -> None:
    head = errors_of(text)[0]
    assert head.startswith(f"{place}: ")
    assert message in head


@pytest.mark.parametrize("beside", ["run.json", "model.safetensors"])
def test_an_empty_config_of_a_run_or_model_is_to_be_copied_again(tmp_path: Path, beside: str) -> None:
    for name in ("config.yaml", beside):
        (tmp_path / name).touch()
    with pytest.raises(TmtError, match=f"It belongs to {beside} beside it: copy it again"):
        load_config(tmp_path / "config.yaml")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("data:\n  source: de\n   target: en\n  max_length: 5\n", 3, "indented too far"),
        ("data:\n  source: de\n target: en\n", 3, "not indented as the lines of its section"),
        ("data:\n  source: de\n  target en\n  max_length: 5\n", 3, "no ':' after its key"),
        ('data:\n  source: "de\n  target: en\n', 2, "a quote is opened here and not closed"),
        ("data: {source: de\nname: x\n", 2, "the bracket of line 1 is not closed"),
    ],
)
def test_an_error_of_syntax_shows_the_lines_around_the_wrong_one(errors_of, text: str, line: int, words: str) -> None:
    head, *shown, last = errors_of(text)
    assert head.startswith(f"c.yaml:{line}: not valid YAML: ")
    assert words in head
    assert [one for one in shown if one.lstrip().startswith(">")] == [f"  > {line:4} | {text.splitlines()[line - 1]}"]
    assert "Check the indentation" in last


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(TmtError, match="no such config file") as error:
        load_config(tmp_path / "none.yaml")
    assert "tmt init" in error.value.remedy
    with pytest.raises(TmtError, match="a folder, not a config file"):
        load_config(tmp_path)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.max_epochs=0", "--set: 'training.max_epochs' is 0, but must be at least 1"),
        ("training.max_epoch=3", "--set: unknown key 'training.max_epoch'; did you mean 'max_epochs'?"),
        ("training.betas=[0.9, 1.2]", "--set: 'training.betas.1' is 1.2, but must be less than 1.0"),
        ("seed=no", "--set: 'seed' is \"no\", but must be a whole number"),
        ("seed", "--set: 'seed' is not of the form key=value"),
        ("=3", "--set: '=3' is not of the form key=value"),
        ("model.d_ff=[1", "--set: the value of 'model.d_ff=[1' is not valid YAML"),
        ("seed=!!bool x", "--set: the value of 'seed=!!bool x' is not valid YAML"),
        ("model.layer_norm_epsilon=.NaN", "--set: 'model.layer_norm_epsilon' is NaN, but must be a finite number"),
        ("data.corpus.kind.x=3", "--set: 'data.corpus.kind.x=3': 'data.corpus.kind' is a single value and has no 'x'"),
        (
            "data.corpus.kind.x.y=3",
            "--set: 'data.corpus.kind.x.y=3': 'data.corpus.kind' is a single value and has no 'x'",
        ),
    ],
)
def test_overrides_are_checked_too(errors_of, override: str, message: str) -> None:
    assert errors_of(CORRECT, override)[0] == message


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.max_positions=16", "data.max_length 128 is more than model.max_positions 16"),
        ("data.corpus.kind=tvs", "'data.corpus.kind' is 'tvs'"),
    ],
)
def test_a_problem_that_an_override_causes_is_not_blamed_on_the_file(errors_of, override: str, message: str) -> None:
    lines = errors_of(CORRECT + "model: {max_positions: 128, positions: learned}\n", override)
    assert lines[0].startswith("--set: ")
    assert message in lines[0]
    assert "on the command line" in lines[-1]
    assert "c.yaml" not in lines[-1]


def test_a_schedule_may_be_written_with_its_kind() -> None:
    schedule = TypeAdapter(name_of("schedule"))
    assert schedule.validate_python({"kind": "cosine"}) == schedule.validate_python("cosine") == "cosine"


def test_a_value_of_two_wrong_forms_is_one_problem(errors_of) -> None:
    corpus = "{kind: tsv, files: a.tsv, source_column: [1]}"
    head, remedy = errors_of(CORRECT.replace("{kind: phrasebook}", corpus))
    assert "must be text" in head
    assert head.endswith(", or a whole number")
    assert remedy.lstrip().startswith("Fix this key")


def test_problems_of_file_and_override_are_listed_together(errors_of) -> None:
    file, override, _ = errors_of(CORRECT + "seed: x\n", "name=a/b")
    assert file.startswith("c.yaml:8: 'seed'")
    assert override.startswith("--set: 'name'")


@pytest.mark.parametrize("kind", ["spacy", "whitespace"])
def test_tags_and_one_matrix_for_both_languages_need_one_tokenizer(kind: str) -> None:
    """A tag is a token of the source vocabulary alone, unless one tokenizer splits both languages."""
    corpora = [{"kind": "phrasebook"}, {"kind": "tsv", "files": "a.tsv", "tag": "<new>"}]
    values = {
        "name": "n",
        "data": {"source": "en", "target": "de", "corpus": corpora},
        "tokenizer": {"kind": kind, "shared": True},
        "model": {"tie_embeddings": "all"},
        "training": {"max_epochs": 1},
    }
    if kind == "whitespace":
        assert Config.model_validate(values).has_shared_tokenizer
        return
    with pytest.raises(ValidationError, match="tags are in the vocabulary of the source alone"):
        Config.model_validate(values)
    values["model"] = {"tie_embeddings": "decoder"}
    assert not Config.model_validate(values).has_shared_tokenizer


DOUBLED = "\n".join(["a0: &a0 {k: 1}", *(f"a{n}: &a{n} {{k: *a{n - 1}, k: *a{n - 1}}}" for n in range(1, 40))])
IN_A_KEY = "? - &a0 [x, x]\n" + "".join(f"  - &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)) + ": 1\n"
MANY_TIMES = "a: &a {" + "k: 1, " * 20_000 + "}\nb: [" + "*a, " * 20_000 + "]\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DOUBLED, "duplicate key 'a1.k', first on line 2"),
        (IN_A_KEY, "a list or a section where a key must be"),
        (MANY_TIMES, "more than 10000 keys after expanding aliases"),
    ],
    ids=["below equal keys", "in a key", "equal keys"],
)
def test_aliases_that_double_at_each_level_take_no_time(errors_of, text: str, message: str) -> None:
    start = time.process_time()
    assert any(message in line for line in errors_of(text))
    assert time.process_time() - start < 5, "without a limit it would be years"


def test_a_choice_that_is_named_alone_lacks_its_key_and_is_not_missing_itself() -> None:
    values = {"training": {"schedule": "restarts"}}
    loc = ("training", "schedule", "options", "restarts", "cycle")
    assert _path_in_file(loc, values, ends_in_key=True) == ("training", "schedule", "cycle")
