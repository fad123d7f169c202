"""What a run shows to a person and to a program, at a terminal and without one."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.growth import assert_grows
from transformer_mt.errors import TmtError
from transformer_mt.reporting import bars
from transformer_mt.reporting import events as events_module
from transformer_mt.reporting.events import Events
from transformer_mt.reporting.history import read_history
from transformer_mt.reporting.table import duration, sample_line, shortened, table_head, table_row

pytestmark = pytest.mark.slow

ROW = {
    "step": 12_345,
    "epoch": 7,
    "train_loss": 2.5,
    "loss": 2.25,
    "perplexity": 9.4877,
    "bleu": 31.417,
    "seconds": 75.0,
    "best": True,
}


def lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def test_records_are_json_lines_with_a_time(tmp_path: Path):
    events = Events(tmp_path)
    events.record("step", step=3, loss=float("inf"), note="né 한")
    events.record("step", step=4, loss=1.5)
    first, second = map(json.loads, lines(tmp_path / "metrics.jsonl"))
    assert first.pop("time") > 1.7e9
    assert first == {"event": "step", "step": 3, "loss": None, "note": "né 한"}
    assert second["loss"] == 1.5


def test_files_are_appended_to_and_an_incomplete_line_is_ended(tmp_path: Path):
    (tmp_path / "metrics.jsonl").write_text('{"event": "step", "step": 1}\n{"event": "st', encoding="utf-8")
    Events(tmp_path).record("step", step=2)
    assert [line[:13] for line in lines(tmp_path / "metrics.jsonl")] == ['{"event": "st'] * 3
    assert [record["step"] for record in read_history(tmp_path / "metrics.jsonl")] == [1, 2]


def test_messages_go_to_stderr_and_to_the_log(tmp_path: Path, capsys):
    Events(tmp_path).say("epoch 한국어")
    assert capsys.readouterr() == ("", "epoch 한국어\n")
    (line,) = lines(tmp_path / "train.log")
    assert line.endswith("  epoch 한국어")
    assert line[:4].isdigit()


def test_a_silent_object_prints_and_writes_nothing(tmp_path: Path, capsys):
    events = Events(tmp_path / "none", silent=True, tensorboard=True)
    events.start_epoch(1, 10, 0)
    events.advance(1, "loss 1")
    events.say("x")
    events.record("step", step=1)
    events.validated(ROW, [])
    events.close()
    assert capsys.readouterr() == ("", "")
    assert not (tmp_path / "none").exists()


def test_without_a_terminal_there_are_plain_lines_now_and_then(tmp_path: Path, capsys, monkeypatch):
    events = Events(tmp_path)
    clock = iter(range(0, 10_000, 4))  # seconds; each update takes some
    monkeypatch.setattr(events_module.time, "monotonic", lambda: float(next(clock)))
    events._shown = 0.0
    events.start_epoch(3, 100, 0)
    for step in range(40):
        events.advance(step, "loss 2.000")
    events.end_epoch()
    said = capsys.readouterr().err
    assert not set(said) & {"\r", "\x1b", "\x08"}
    assert 2 <= said.count("\n") <= 8
    assert said.startswith("epoch 3  step ")


def test_a_sentence_of_a_corpus_does_not_act_on_the_terminal(tmp_path: Path, capsys):
    events = Events(tmp_path)
    events.say("sample \x1b]0;title\x07 text", log="sample \x1b[31m text")
    assert capsys.readouterr().err == "sample \\x1b]0;title\\x07 text\n"
    assert (tmp_path / "train.log").read_text().endswith("sample \\x1b[31m text\n")


def test_at_a_terminal_there_is_a_bar_and_it_goes_away(tmp_path: Path, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    events = Events(tmp_path)
    events.start_epoch(3, 4, 1)
    events.advance(2, "loss 2.000")
    events.say("a line")
    for step in (3, 4):
        events.advance(step, "")
    events.close()
    drawn = capsys.readouterr().err
    assert "epoch 3" in drawn
    assert "a line\n" in drawn
    assert drawn.split("\r")[-1].strip() == ""
    assert lines(tmp_path / "train.log")[0].endswith("a line")


def test_a_validation_is_a_row_samples_and_a_record(tmp_path: Path, capsys):
    events = Events(tmp_path)
    events.validated(ROW, [("ein Satz", "a sentence", "one sentence")])
    events.validated({**ROW, "best": False, "bleu": None}, [])
    head, row, sample, second = capsys.readouterr().err.splitlines()
    assert (head, row) == (table_head(), table_row(ROW))
    assert sample.split() == ["ein", "Satz", "->", "a", "sentence", "(one", "sentence)"]
    assert not second.endswith("*")
    record = json.loads(lines(tmp_path / "metrics.jsonl")[0])
    assert {key: record[key] for key in ROW} == ROW
    assert record["samples"] == [{"source": "ein Satz", "translation": "a sentence", "reference": "one sentence"}]


def test_the_headings_of_the_table_are_repeated(tmp_path: Path, capsys):
    events = Events(tmp_path)
    for _ in range(21):
        events.validated(ROW, [])
    assert capsys.readouterr().err.splitlines().count(table_head()) == 3


def test_curves_are_drawn_after_a_while_and_when_asked(tmp_path: Path, monkeypatch):
    drawn: list[tuple[Path, bool]] = []
    monkeypatch.setattr(events_module, "draw_curves", lambda file, folder, apart: drawn.append((folder, apart)))
    events = Events(tmp_path)
    events.validated(ROW, [])
    assert drawn == []
    events._drawn -= 21
    events.validated(ROW, [])
    events.validated(ROW, [])
    assert drawn == [(tmp_path / "plots", False)]
    assert events.draw() == tmp_path / "plots"
    assert drawn[1:] == [(tmp_path / "plots", True)], "each curve also in a picture for itself, at the end only"


def test_curves_that_cannot_be_drawn_end_no_training(tmp_path: Path, capsys):
    (tmp_path / "plots").touch()
    events = Events(tmp_path)
    events.validated(ROW, [])
    assert events.draw() is None
    assert "note       the curves are not drawn: " in capsys.readouterr().err
    assert (tmp_path / "train.log").read_text("utf-8").count("the curves are not drawn") == 1


def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch):
    (tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(TmtError, match=r"while writing metrics\.jsonl") as failure:
        Events(tmp_path).record("step", step=1)
    assert failure.value.exit_code == 2


def test_tensorboard_gets_the_numbers(tmp_path: Path):
    accumulator: Any = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = Events(tmp_path, tensorboard=True)
    for step in (1, 2):
        events.record("step", step=step, loss=2.0 / step, epoch=1)
    events.record("validation", **{**ROW, "samples": []})
    events.close()
    found = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(point.step, point.value) for point in found.Scalars("step/loss")] == [(1, 2.0), (2, 1.0)]
    assert found.Scalars("validation/bleu")[0].value == pytest.approx(31.417)
    assert not {"step/epoch", "validation/best"} & set(found.Tags()["scalars"])


def test_tensorboard_forgets_what_a_resumed_run_does_again(tmp_path: Path):
    accumulator: Any = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    for first, losses in ((1, (4.0, 3.0, 2.0)), (2, (3.5, 2.5))):
        events = Events(tmp_path, tensorboard=True)
        if first > 1:
            events.record("resumed", step=first - 1)
        for step, loss in enumerate(losses, start=first):
            events.record("step", step=step, loss=loss)
        events.close()
        time.sleep(1.1)  # files of one second are read in any order
    found = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(point.step, point.value) for point in found.Scalars("step/loss")] == [(1, 4.0), (2, 3.5), (3, 2.5)]


def test_without_tensorboard_the_extra_is_named(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(TmtError, match="TensorBoard is not installed") as failure:
        Events(tmp_path, tensorboard=True)
    assert "pip install tensorboard" in failure.value.remedy


# ---------------------------------------------------------------- the table


def test_columns_stand_under_their_names():
    head, row = table_head(), table_row(ROW)
    for name, cell in (("step", "12,345"), ("train loss", "2.500"), ("perplexity", "9.49"), ("time", "1:15")):
        assert head.index(name) + len(name) == row.index(cell) + len(cell)
    assert row.endswith("*")
    assert "-" in table_row({**ROW, "bleu": None})


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (75, "1:15"), (3599.6, "1:00:00"), (86_400, "24:00:00")]
)
def test_durations(seconds: float, text: str):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "columns", "short"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("한국어", 6, "한국어"),
        ("한국어", 5, "한국…"),
        ("한국어", 4, "한…"),
        ("two\nlines\tand  spaces", 40, "two lines and spaces"),
        ("one two", 5, "one…"),
    ],
)
def test_texts_are_shortened_to_columns(text: str, columns: int, short: str):
    assert shortened(text, columns) == short


def test_a_very_long_text_is_shortened_in_linear_time():
    assert shortened("한a" * 50_000, 300) == "한a" * 99 + "한…"
    assert_grows(lambda size: shortened("한a" * size, 300), 12_500)


@pytest.mark.parametrize("columns", [60, 80, 119])
def test_samples_fit_the_line_and_short_ones_leave_room_to_others(columns: int):
    long = "word " * 40
    assert max(map(len, sample_line(long, long, long, columns).split("\n"))) <= columns
    assert max(map(len, sample_line("a", long, "b", columns).split("\n"))) >= columns - 12
    assert "한국어 문장" in sample_line("한국어 문장", "a", "b", columns)


def test_a_narrow_terminal_shows_the_source_above_its_translation():
    source, translation = sample_line("한국어 " * 9, "the cat is small " * 2, "the cat is little", 80).split("\n")
    assert source == "       " + ("한국어 " * 9).rstrip()
    assert translation == "         ->  the cat is small the cat is small   (the cat is little)"


def test_the_log_has_whole_samples(tmp_path: Path, capsys, monkeypatch):
    long = "a sentence of many words, " * 9
    events = Events(tmp_path)
    events.validated(ROW, [(long, long, "short")])
    whole = f"       {long.strip()}  ->  {long.strip()}   (short)"
    assert whole in lines(tmp_path / "train.log")[-1]
    assert whole in capsys.readouterr().err, "without a terminal nothing is cut"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    events.validated(ROW, [(long, long, "short")])
    assert whole in lines(tmp_path / "train.log")[-1]
    assert max(map(len, capsys.readouterr().err.splitlines())) <= 60


def test_a_notebook_gets_one_bar_for_all_epochs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The saved notebook keeps an output for each bar that there ever was."""
    made = list[Any]()

    class Bar:
        def __init__(self, **options: Any) -> None:
            self.container, self.n, self.total, self.desc, self.closed = object(), 0, 0, "", False
            self.reset(options["total"])
            self.update(options["initial"])
            self.set_description(options["desc"])
            made.append(self)

        def reset(self, total: int) -> None:
            self.n, self.total = 0, total

        def update(self, number: int = 1) -> None:
            self.n += number

        def set_description(self, text: str) -> None:
            self.desc = text

        def set_postfix_str(self, *_: object, **__: object) -> None: ...

        def clear(self) -> None: ...

        def close(self) -> None:
            self.closed = True

    monkeypatch.setattr(bars, "tqdm", lambda *, leave, dynamic_ncols, disable, **options: Bar(**options))
    monkeypatch.setattr(events_module, "is_watched", lambda: True)
    events = Events(tmp_path, epochs=2)
    for epoch, done in (1, 0), (2, 3):
        events.start_epoch(epoch, 10 * epoch, done)
        events.advance(1, "loss 1.0")
        events.end_epoch()
    (bar,) = made
    assert (bar.n, bar.total, bar.desc, bar.closed) == (4, 20, "epoch 2/2", False)
    events.close()
    assert bar.closed
