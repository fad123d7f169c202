"""Pictures exist, show something, say Korean without a warning, and follow a run through its interruptions."""

from __future__ import annotations

import json
import logging
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text

from transformer_mt.cli import main
from transformer_mt.errors import TmtError
from transformer_mt.reporting.attention_map import plot_attention
from transformer_mt.reporting.canvas import canvas, drawable
from transformer_mt.reporting.history import points, read_history
from transformer_mt.reporting.plots import plot_curves, plot_lengths

pytestmark = pytest.mark.slow

KOREAN = ["▁나는", "▁어제", "▁도서관", "에서", "▁책", "을", "읽었다", "."]
GERMAN = ["<s>", "gestern", "las", "ich", "ein", "Büchlein", "$5$", "."]


@pytest.fixture
def shown(monkeypatch):
    """All texts of the figures that are saved."""
    texts = []
    save = Figure.savefig

    def saving(figure, *arguments, **options):
        texts.extend(text.get_text() for text in figure.findobj(Text))
        save(figure, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", saving)
    return texts


def _write(file, records):
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


def _step(step, loss=2.0, **more):
    return {"event": "step", "time": 1.0, "step": step, "epoch": 1, "loss": loss, "learning_rate": 1e-3,
            "tokens_per_second": 4000.0, **more}  # fmt: skip


def _validation(step, bleu=None, loss=2.0):
    return {"event": "validation", "step": step, "epoch": 1, "train_loss": 2.1, "loss": loss, "bleu": bleu}


def _ink(file):
    """Share of pixels that are not white."""
    pixels = imread(file)[..., :3]
    return float((pixels.min(axis=-1) < 0.98).mean())


def _attention(rows, columns, layers=2, heads=3):
    random = np.random.default_rng(0)
    pairs = {"encoder.layers.{}.self_attention": (columns, columns), "decoder.layers.{}.self_attention": (rows, rows),
             "decoder.layers.{}.cross_attention": (rows, columns)}  # fmt: skip
    maps, down, across = {}, {}, {}
    for layer in range(layers):
        for path, (one, other) in pairs.items():
            weights_HQM = random.random((heads, len(one), len(other))) ** 4
            maps[path.format(layer)] = weights_HQM / weights_HQM.sum(-1, keepdims=True)
            down[path.format(layer)], across[path.format(layer)] = one, other
    return maps, down, across


class TestHistory:
    def test_after_a_resume_what_was_done_twice_counts_once(self, tmp_path):
        file = _write(
            tmp_path / "m",
            [_step(10, 9.0), _step(20, 8.0), _validation(20), _step(30, 7.0), _validation(40, loss=7.5),
             {"event": "resumed", "step": 20, "epoch": 1}, _step(30, 1.0), _validation(40, loss=1.5)],
        )  # fmt: skip
        records = read_history(file)
        assert points(records, "step", "loss") == ([10, 20, 30], [9.0, 8.0, 1.0])
        assert points(records, "validation", "loss") == ([20, 40], [2.0, 1.5])

    def test_even_where_the_line_that_says_so_was_cut_off(self, tmp_path):
        file = tmp_path / "m"
        lines = [json.dumps(record) for record in (_step(10, 9.0), _step(20, 8.0), _step(30, 7.0))]
        file.write_text("\n".join([*lines, '{"event": "resu', json.dumps(_step(20, 1.0)), '{"event": "step", "st']))
        assert points(read_history(file), "step", "loss") == ([10, 20], [9.0, 1.0])

    def test_a_validation_stands_beside_the_step_it_follows(self, tmp_path):
        records = read_history(_write(tmp_path / "m", [_step(10), _validation(10, bleu=3.0), _step(20)]))
        assert points(records, "validation", "bleu") == ([10], [3.0])
        assert points(records, "step", "loss")[0] == [10, 20]

    def test_what_is_no_record_or_no_number_is_passed_over(self, tmp_path):
        file = tmp_path / "m"
        records = [_step(10), _step(20, None), {"event": "started"}, [1], 7, _step(30, float("nan")), _step(40, 3.0)]
        file.write_bytes(b"\xff\xfe\n\n" + _write(file, records).read_bytes())
        assert points(read_history(file), "step", "loss") == ([10, 40], [2.0, 3.0])


class TestCurves:
    def test_a_picture_for_each_thing_measured(self, tmp_path):
        records = [_step(step, 9 / step + 1) for step in range(1, 120)]
        records += [_validation(step, bleu=step / 10, loss=9 / step + 1.2) for step in range(120, 400, 40)]
        files = plot_curves(_write(tmp_path / "metrics.jsonl", records), tmp_path / "plots")
        assert [file.name for file in files] == ["loss.png", "bleu.png", "learning_rate.png", "speed.png"]
        assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == sorted(file.name for file in files)
        for file in files:
            assert file.read_bytes().startswith(b"\x89PNG")
            assert 0.01 < _ink(file) < 0.5
            assert file.stat().st_size < 100_000

    def test_the_best_value_is_named(self, tmp_path, shown):
        records = [_validation(100, 10.0, 3.0), _validation(200, 30.25, 1.75), _validation(300, 20.0, 2.0)]
        plot_curves(_write(tmp_path / "m", records), tmp_path)
        assert "best: 30.25 at 200" in shown
        assert "best: 1.75 at 200" in shown

    def test_no_bleu_no_picture_of_it(self, tmp_path):
        files = plot_curves(_write(tmp_path / "m", [_step(1), _validation(1)]), tmp_path / "plots")
        assert "bleu.png" not in [file.name for file in files]

    @pytest.mark.parametrize("records", [[], [{"event": "started", "step": 0}]])
    def test_a_run_that_has_measured_nothing_is_told_so(self, tmp_path, records):
        with pytest.raises(TmtError, match="nothing is measured yet"):
            plot_curves(_write(tmp_path / "m", records), tmp_path / "plots")

    def test_no_metrics_file(self, tmp_path):
        with pytest.raises(TmtError, match="no metrics here"):
            plot_curves(tmp_path / "none", tmp_path)


class TestAttention:
    def test_every_head_of_every_layer_with_its_tokens(self, tmp_path, shown, caplog):
        """Warnings are errors here: a glyph that no font has would be one."""
        with caplog.at_level(logging.WARNING):
            file = plot_attention(*_attention(GERMAN, KOREAN), tmp_path / "map.png", "나는 → ich")
        assert not caplog.records
        assert file.read_bytes().startswith(b"\x89PNG")
        assert 0.05 < _ink(file) < 0.95
        for name in ("Encoder self-attention", "Decoder self-attention", "Decoder cross-attention", "나는 → ich"):
            assert shown.count(name) == 1
        assert shown.count("layer 1") == shown.count("layer 2") == 3
        assert [shown.count(f"head {head}") for head in (1, 2, 3, 4)] == [3, 3, 3, 0]
        assert set(KOREAN) | set(GERMAN) <= set(shown)
        assert "\u25a1" not in "".join(shown)

    def test_hangul_is_drawn_by_a_font_that_has_it(self, tmp_path):
        """Were it missing, all syllables would be the same box and the two pictures equal."""
        one, other = (
            plot_attention(*_attention(["a", "b"], [syllable, "."], 1, 1), tmp_path / f"{n}.png", "t")
            for n, syllable in enumerate("각힣")
        )
        assert one.read_bytes() != other.read_bytes()

    def test_rows_are_queries_and_columns_keys(self, tmp_path, monkeypatch):
        drawn = []
        save = Figure.savefig

        def saving(figure, *arguments, **options):
            drawn.extend(axes for axes in figure.axes if axes.get_title() == "head 1")
            save(figure, *arguments, **options)

        monkeypatch.setattr(Figure, "savefig", saving)
        weights_HQM = np.array([[[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]]])
        path = "decoder.layers.0.cross_attention"
        plot_attention({path: weights_HQM}, {path: ["p", "q"]}, {path: ["x", "y", "z"]}, tmp_path / "map.png", "t")
        (axes,) = drawn
        assert np.array_equal(axes.images[0].get_array(), weights_HQM[0])
        assert [label.get_text() for label in axes.get_yticklabels()] == ["p", "q"]
        assert [label.get_text() for label in axes.get_xticklabels()] == ["x", "y", "z"]
        top, bottom = axes.transData.transform([(0, 0), (0, 1)])[:, 1]
        assert top > bottom, "the first query stands on top"

    def test_long_sentences_and_tokens_stay_within_bounds(self, tmp_path, shown):
        tokens = ["Donaudampfschifffahrtsgesellschaft", *(f"w{n}" for n in range(119))]
        file = plot_attention(*_attention(tokens, tokens, 1, 2), tmp_path / "map.png", "t")
        height, width = imread(file).shape[:2]
        assert max(height, width) < 3000
        assert "Donaudampfschif…" in shown
        assert "w1" not in shown, "only as many tokens are written as there is room for"

    def test_what_no_font_can_draw_becomes_a_box(self, tmp_path):
        assert drawable("a\u0d05\U0001f9ff\n가▁ß") == "a\u25a1\u25a1\u25a1가▁ß"
        odd = ["\u0d05", "\U0001f9ff", "a\nb", "$x$", "\\frac", ""]
        plot_attention(*_attention(odd, odd, 1, 1), tmp_path / "map.png", "\u0d05 $\\alpha")


class TestLengths:
    def test_means_and_sides_are_named(self, tmp_path, shown):
        file = plot_lengths({"source (ko)": [0, 2, 2], "target (en)": [0, 0, 0, 5]}, tmp_path / "lengths.png")
        assert 0.02 < _ink(file) < 0.6
        assert {"source (ko): 1.5 tokens on average", "target (en): 3.0 tokens on average"} <= set(shown)

    def test_a_few_very_long_sentences_do_not_press_the_rest_into_a_corner(self, tmp_path, shown):
        plot_lengths({"source": [0, *[100] * 20, *[0] * 479, 1]}, tmp_path / "lengths.png")
        assert "tokens (the longest: 500)" in shown

    @pytest.mark.parametrize("counts", [[], [0], [0, 1]])
    def test_next_to_nothing(self, tmp_path, counts):
        assert plot_lengths({"source": counts}, tmp_path / "lengths.png").exists()


class TestCanvas:
    def test_settings_of_matplotlib_stay_as_they_were(self, tmp_path):
        before = dict(matplotlib.rcParams)
        plot_lengths({"source": [0, 1, 2]}, tmp_path / "lengths.png")
        assert dict(matplotlib.rcParams) == before

    def test_a_picture_that_fails_leaves_the_old_one_and_nothing_else(self, tmp_path):
        file = tmp_path / "picture.png"
        file.write_bytes(b"old")
        with pytest.raises(RuntimeError), canvas(file, (1, 1)):
            raise RuntimeError
        assert [path.name for path in tmp_path.iterdir()] == ["picture.png"]
        assert file.read_bytes() == b"old"


class TestCommand:
    """`tmt plot`."""

    @staticmethod
    def tmt(monkeypatch, capsys, *arguments):
        monkeypatch.setattr(sys, "argv", ["tmt", "plot", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main.run()
        return left.value.code, *capsys.readouterr()

    def test_it_prints_the_paths_of_the_pictures(self, tmp_path, monkeypatch, capsys):
        _write(tmp_path / "metrics.jsonl", [_step(1), _step(2), _validation(2, bleu=1.0)])
        code, out, err = self.tmt(monkeypatch, capsys, "--run", tmp_path)
        names = ("loss", "bleu", "learning_rate", "speed")
        assert (code, err) == (0, "")
        assert out.splitlines() == [str(tmp_path / "plots" / f"{name}.png") for name in names]

    @pytest.mark.parametrize("run", ["here", "nowhere"])
    def test_what_is_no_run_is_refused(self, tmp_path, monkeypatch, capsys, run):
        (tmp_path / "here").mkdir()
        code, out, err = self.tmt(monkeypatch, capsys, "--run", tmp_path / run)
        assert (code, out) == (2, "")
        assert run in err
