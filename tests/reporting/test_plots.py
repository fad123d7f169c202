"""Plots show what was measured, draw Korean without a warning, and follow a run through its interruptions."""

from __future__ import annotations

import errno
import itertools
import json
import logging
import math
import os
import re
import subprocess
import sys
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text
from PIL import Image

from tests.growth import assert_grows
from transformer_mt.cli import main
from transformer_mt.errors import TmtError
from transformer_mt.reporting.attention_map import plot_attention
from transformer_mt.reporting.canvas import (
    COLORS,
    SMALL,
    broken_into_lines,
    canvas,
    check_writable,
    drawable,
    fitted,
    text_width,
)
from transformer_mt.reporting.curves import Curve, draw_curves, draw_runs
from transformer_mt.reporting.distributions import plot_data, plot_scores
from transformer_mt.reporting.history import points, read_history
from transformer_mt.reporting.trials import TrialCurve, draw_trials
from transformer_mt.workflows.plot import check_picture, plot_runs
from transformer_mt.workflows.prepare import prepare

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


def _run(folder, steps=100, bleu=None):
    """A run folder with metrics."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "metrics.jsonl", [_step(1, 5.0), _step(steps), _validation(steps, bleu=bleu)])
    return folder


def _config(folder):
    """A config of a small corpus."""
    file = folder / "small.yaml"
    corpus = "{kind: phrasebook, train: 60, validation: 5, test: 5}"
    file.write_text(f"name: small\ndata: {{source: ko, target: en, corpus: {corpus}, prepared: {folder}/prepared}}\n"
                    "tokenizer: {kind: whitespace}\nmodel: {d_model: 8, n_heads: 2}\n"
                    "training: {max_epochs: 1}\n")  # fmt: skip
    return file


def _contrast(one, other):
    """Contrast of two colours, 1 to 21, as WCAG 2 defines it."""
    luminance = []
    for color in (one, other):
        parts = np.array([int(color[start : start + 2], 16) for start in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        luminance.append(linear @ [0.2126, 0.7152, 0.0722] + 0.05)
    return max(luminance) / min(luminance)


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
    def test_updates_that_a_resumed_run_repeats_count_once(self, tmp_path):
        file = _write(
            tmp_path / "m",
            [_step(10, 9.0), _step(20, 8.0), _validation(20), _step(30, 7.0), _validation(40, loss=7.5),
             {"event": "resumed", "step": 20, "epoch": 1}, _step(30, 1.0), _validation(40, loss=1.5)],
        )  # fmt: skip
        records = read_history(file)
        assert points(records, "step", "loss") == ([10, 20, 30], [9.0, 8.0, 1.0])
        assert points(records, "validation", "loss") == ([20, 40], [2.0, 1.5])

    def test_even_if_the_line_that_says_so_is_incomplete(self, tmp_path):
        file = tmp_path / "m"
        lines = [json.dumps(record) for record in (_step(10, 9.0), _step(20, 8.0), _step(30, 7.0))]
        file.write_text("\n".join([*lines, '{"event": "resu', json.dumps(_step(20, 1.0)), '{"event": "step", "st']))
        assert points(read_history(file), "step", "loss") == ([10, 20], [9.0, 1.0])

    def test_a_validation_is_kept_beside_the_step_it_follows(self, tmp_path):
        records = read_history(_write(tmp_path / "m", [_step(10), _validation(10, bleu=3.0), _step(20)]))
        assert points(records, "validation", "bleu") == ([10], [3.0])
        assert points(records, "step", "loss")[0] == [10, 20]

    def test_lines_without_a_record_or_a_number_are_skipped(self, tmp_path):
        file = tmp_path / "m"
        records = [_step(10), _step(20, None), {"event": "started"}, [1], 7, _step(30, float("nan")), _step(40, 3.0)]
        file.write_bytes(b"\xff\xfe\n\n" + _write(file, records).read_bytes())
        assert points(read_history(file), "step", "loss") == ([10, 40], [2.0, 3.0])


class TestDamage:
    def test_damaged_lines_are_counted_in_a_note(self, tmp_path, capsys):
        run = _run(tmp_path, bleu=5.0)
        whole = (run / "metrics.jsonl").read_text(encoding="utf-8")
        (run / "metrics.jsonl").write_text(
            f'{{"event": "st\n{whole}not JSON\n\n{whole}{{"event": "written now', "utf-8"
        )
        assert plot_runs([run])
        (note,) = capsys.readouterr().err.splitlines()
        assert note == f"tmt: {run / 'metrics.jsonl'}: 2 damaged lines left out"

    def test_without_damage_there_is_no_note(self, tmp_path, capsys):
        plot_runs([_run(tmp_path, bleu=5.0)])
        assert capsys.readouterr().err == ""


class TestCurves:
    def test_a_picture_of_each_measurement(self, tmp_path):
        records = [_step(step, 9 / step + 1) for step in range(1, 120)]
        records += [_validation(step, bleu=step / 10, loss=9 / step + 1.2) for step in range(120, 400, 40)]
        files = draw_curves(_write(tmp_path / "metrics.jsonl", records), tmp_path / "plots")
        names = ["learning-curves.png", "loss.png", "bleu.png", "learning_rate.png", "speed.png"]
        assert [file.name for file in files] == names
        assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == sorted(file.name for file in files)
        for file in files:
            assert file.read_bytes().startswith(b"\x89PNG")
            assert 0.01 < _ink(file) < 0.5
            assert file.stat().st_size < 100_000

    def test_while_a_run_goes_on_loss_and_bleu_are_drawn_once(self, tmp_path):
        files = draw_curves(_run(tmp_path, bleu=5.0) / "metrics.jsonl", tmp_path / "plots", apart=False)
        assert [file.name for file in files] == ["learning-curves.png", "learning_rate.png", "speed.png"]

    def test_the_best_value_is_named(self, tmp_path, shown):
        records = [_validation(100, 10.0, 3.0), _validation(200, 30.25, 1.75), _validation(300, 20.0, 2.0)]
        draw_curves(_write(tmp_path / "m", records), tmp_path)
        assert "best: 30.25 at 200" in shown
        assert "best: 1.75 at 200" in shown

    def test_without_bleu_there_is_no_picture_of_it(self, tmp_path):
        files = draw_curves(_write(tmp_path / "m", [_step(1), _validation(1)]), tmp_path / "plots")
        assert "bleu.png" not in [file.name for file in files]

    @pytest.mark.parametrize("records", [[], [{"event": "started", "step": 0}], [_validation(5, loss=None)]])
    def test_a_run_without_measurements_is_an_error(self, tmp_path, records):
        with pytest.raises(TmtError, match="nothing is measured yet"):
            draw_curves(_write(tmp_path / "m", records), tmp_path / "plots")

    def test_no_metrics_file(self, tmp_path):
        with pytest.raises(TmtError, match="no metrics here"):
            draw_curves(tmp_path / "none", tmp_path)


class TestWindows:
    """Records of an older version: a mean of few updates before each checkpoint."""

    def test_short_windows_are_merged_and_weighed(self):
        steps, values = [20, 22, 40, 44, 60], [3.0, 1.0, 2.0, 0.5, 2.0]
        merged = Curve(steps, values).merged()
        assert merged.steps == [20, 40, 60]
        assert merged.values == pytest.approx([3.0, (2 * 1.0 + 18 * 2.0) / 20, (4 * 0.5 + 16 * 2.0) / 20])

    def test_a_very_long_run_takes_linear_time(self):
        steps = list(range(20, 20 * 400_001, 20))
        curve = Curve(steps, [math.sin(step / 1e6) for step in steps]).merged().smoothed()
        assert len(curve.values) == 400_000
        assert curve.values[200_000] == pytest.approx(math.sin(steps[200_000] / 1e6), abs=0.01)

    def test_equal_windows_stay_as_they_are(self):
        for steps in ([20, 40, 60], [4, 8, 12], [7], []):
            curve = Curve(steps, [float(step) for step in steps])
            assert curve.merged() == curve


class TestComparison:
    def test_runs_of_different_length_and_name(self, tmp_path, shown):
        _run(tmp_path / "one", steps=100, bleu=12.5)
        _run(tmp_path / "two", steps=300, bleu=20.0)
        file = draw_runs([tmp_path / "one", tmp_path / "two"], tmp_path / "both.png")
        assert {"Loss (nats per token)", "BLEU of the validation set, greedy search", "training", "validation"} <= set(
            shown
        )
        assert "one   best BLEU 12.50 at update 100" in shown
        assert "two   best BLEU 20.00 at update 300" in shown
        assert 0.01 < _ink(file) < 0.5

    def test_losses_of_different_vocabularies_are_marked(self, tmp_path, shown):
        text = _config(tmp_path).read_text()
        runs = [_run(tmp_path / name) for name in ("one", "other", "words")]
        for run, kind in zip(runs, ("whitespace", "whitespace", "character"), strict=True):
            (run / "config.yaml").write_text(text.replace("kind: whitespace", f"kind: {kind}"))
        warning = "other vocabularies: losses do not compare"
        draw_runs(runs[:2], tmp_path / "same.png")
        assert warning not in shown
        draw_runs(runs[1:], tmp_path / "different.png")
        assert warning in shown

    def test_runs_of_one_name_are_named_by_their_paths(self, tmp_path, shown):
        runs = [_run(tmp_path / place / "same") for place in ("a", "b", "a")]
        draw_runs(runs, tmp_path / "both.svg")
        assert [name for name in shown if "same" in name] == ["a/same", "b/same"]

    def test_without_bleu_only_the_loss_is_drawn(self, tmp_path, shown):
        draw_runs([_run(tmp_path / "one", bleu=None)], tmp_path / "one.png")
        assert "BLEU of the validation set, greedy search" not in shown

    def test_runs_have_different_colours(self, tmp_path):
        """Each colour of the theme is that of a curve."""
        runs = [_run(tmp_path / str(number), steps=100 + number, bleu=number + 1.0) for number in range(7)]
        for theme, colors in COLORS.items():
            picture = draw_runs(runs, tmp_path / f"{theme}.svg", theme).read_text()
            assert all(f"stroke: {color.lower()}" in picture for color in colors.series)

    def test_runs_differ_by_more_than_their_colour(self, tmp_path, monkeypatch):
        """Their lines and their marks differ too, and the legend has the same ones."""
        figures = []
        save = Figure.savefig
        monkeypatch.setattr(
            Figure,
            "savefig",
            lambda figure, *given, **options: figures.append(figure) or save(figure, *given, **options),
        )
        runs = [_run(tmp_path / str(number), bleu=1.0) for number in range(7)]
        picture = draw_runs(runs, tmp_path / "runs.svg").read_text()
        assert len(set(re.findall("stroke-dasharray: [^;]+", picture))) == 6 * 3, "thin, thick and in the legend"
        looks = [{(line.get_color(), line.get_marker()) for line in axes.get_lines()} for axes in figures[0].axes]
        named = {(line.get_color(), line.get_marker()) for line in figures[0].legends[0].get_lines()}
        assert len({marker for _, marker in named}) == 7
        assert all(named <= drawn for drawn in looks)


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
        assert [shown.count(f"head {head}") for head in (1, 2, 3, 4)] == [6, 6, 6, 0]
        assert set(KOREAN) | set(GERMAN) <= set(shown)
        assert "\u25a1" not in "".join(shown)

    def test_hangul_is_drawn_by_a_font_that_has_it(self, tmp_path):
        """Without such a font, all syllables would be the same box, and the two pictures equal."""
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
        assert any(text.startswith("Donaudampf") and text.endswith("…") for text in shown)
        assert "w1" not in shown, "only as many tokens are written as there is room for"

    def test_a_character_that_no_font_has_becomes_a_box(self, tmp_path):
        assert drawable("a\u0d05\U0001f9ff\n가▁ß") == "a\u25a1\u25a1\u25a1가▁ß"
        odd = ["\u0d05", "\U0001f9ff", "a\nb", "$x$", "\\frac", ""]
        plot_attention(*_attention(odd, odd, 1, 1), tmp_path / "map.png", "\u0d05 $\\alpha")

    def test_thirty_tokens_are_all_written_and_none_is_clipped(self, tmp_path, monkeypatch):
        drawn = {}
        save = Figure.savefig

        def saving(figure, *arguments, **options):
            save(figure, *arguments, **options)
            written = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
            drawn.update({text.get_text(): text.get_window_extent() for text in written})
            drawn["figure"] = figure.bbox

        monkeypatch.setattr(Figure, "savefig", saving)
        tokens = [*(f"▁도서관{n}" for n in range(27)), "W" * 60, "국제전기통신연합전권대표회의의장단", "</s>"]
        plot_attention(*_attention(tokens, tokens, 2, 3), tmp_path / "map.png", "W" * 99 + " " + "한국어 문장 " * 90)
        figure = drawn.pop("figure")
        assert {*tokens[:27], "</s>"} <= set(drawn)
        assert any(text.startswith("국제전기통신") for text in drawn)
        for text, box in drawn.items():
            assert 0 <= box.x0 < box.x1 <= figure.x1, text
            assert 0 <= box.y0 < box.y1 <= figure.y1, text

    @pytest.mark.parametrize(
        ("which", "heads", "layers"),
        [
            ("cross", ["head 1", "head 2", "head 3"] * 2, {"layer 1", "layer 2"}),
            ("cross.2", ["head 1", "head 2", "head 3"], {"layer 2"}),
            ("cross.2.3", ["head 3"], {"layer 2"}),
            ("encoder.1.mean", ["mean of 3 heads"], {"layer 1"}),
        ],
    )
    def test_only_the_chosen_maps_are_drawn(self, tmp_path, shown, which, heads, layers):
        plot_attention(*_attention(GERMAN, KOREAN), tmp_path / "map.svg", "t", which=which)
        assert [text for text in shown if "head" in text] == heads
        assert {text for text in shown if text.startswith("layer")} == layers

    @pytest.mark.parametrize("which", ["crosses", "cross.0", "cross.3", "cross.1.4", "cross.1.all", "all.1", ""])
    def test_an_unknown_map_is_refused(self, tmp_path, which):
        with pytest.raises(TmtError, match="no attention map") as failure:
            plot_attention(*_attention(GERMAN, KOREAN), tmp_path / "map.svg", "t", which=which)
        assert "cross.2.1" in failure.value.remedy
        assert not (tmp_path / "map.svg").exists()

    def test_names_of_heads_do_not_overlap_if_a_translation_is_empty(self, tmp_path, monkeypatch):
        boxes, save = [], Figure.savefig

        def saving(figure, *arguments, **options):
            save(figure, *arguments, **options)
            boxes.extend(text.get_window_extent() for text in figure.findobj(Text) if "head 1" in text.get_text())

        monkeypatch.setattr(Figure, "savefig", saving)
        plot_attention(*_attention(["</s>"], [f"w{n}" for n in range(12)], 1, 12), tmp_path / "map.png", "t")
        assert len(boxes) == 3 * 4, "heads 1, 10, 11 and 12 of three blocks"
        for box, other in itertools.combinations(boxes, 2):
            assert not box.overlaps(other)

    def test_many_heads_of_a_long_sentence_are_spread_over_rows(self, tmp_path):
        tokens = [f"w{n}" for n in range(30)]
        file = plot_attention(*_attention(tokens, tokens, 1, 8), tmp_path / "map.png", "t", which="cross.1")
        height, width = imread(file).shape[:2]
        assert 0.7 < width / height < 2.2


class TestLengths:
    def test_means_and_sides_are_named(self, tmp_path, shown):
        file = plot_data({"source (ko)": [0, 2, 2], "target (en)": [0, 0, 0, 5]}, None, tmp_path / "lengths.png")
        assert 0.02 < _ink(file) < 0.6
        assert {"source (ko): mean 1.5", "target (en): mean 3.0"} <= set(shown)

    def test_a_few_very_long_sentences_do_not_squeeze_the_rest(self, tmp_path, shown):
        plot_data({"source": [0, *[100] * 20, *[0] * 479, 1]}, None, tmp_path / "lengths.png")
        assert "tokens (the longest: 500)" in shown

    @pytest.mark.parametrize("counts", [[], [0], [0, 1]])
    def test_very_few_numbers(self, tmp_path, counts):
        assert plot_data({"source": counts}, None, tmp_path / "lengths.png").exists()


class TestVocabulary:
    def test_entries_and_their_share_are_named(self, tmp_path, shown):
        frequencies = {"source (ko)": [0, 1, 80, 15, 4], "target (en)": [1] * 10}
        plot_data(None, frequencies, tmp_path / "vocabulary.png")
        assert "source (ko): 4 entries in use,\n2 make up 90% of tokens" in shown
        assert "target (en): 10 entries in use,\n9 make up 90% of tokens" in shown

    @pytest.mark.parametrize("counts", [[], [0], [1]])
    def test_very_few_numbers(self, tmp_path, counts):
        assert plot_data(None, {"source": counts, "target": [1, 2]}, tmp_path / "vocabulary.svg").exists()


class TestScores:
    def test_each_group_has_its_scores_and_its_size(self, tmp_path, shown):
        plot_scores([("1 to 5", 1234, 31.25, 52.0), ("6 to 10", 5, 0.0, 100.0)], "test", tmp_path / "scores.svg")
        assert {"1 to 5\n1,234", "6 to 10\n5", "31.2", "52.0", "0.0", "100.0", "BLEU", "chrF2", "test"} <= set(shown)


def _all_pictures(folder, end, theme="light"):
    """One picture of each kind."""
    folder.mkdir()
    run = _run(folder.parent / "run", bleu=7.0)
    lengths = {"source (ko)": [0, 2, 2], "target (en)": [0, 1, 3]}
    return [
        draw_runs([run], folder / f"curves{end}", theme),
        plot_attention(*_attention(GERMAN, KOREAN, 1, 2), folder / f"map{end}", "나는 → ich", theme=theme),
        plot_data(lengths, lengths, folder / f"data{end}", theme),
        plot_scores([("1 to 5", 9, 31.2, 52.0)], "test", folder / f"scores{end}", theme),
    ]


class TestFormats:
    @pytest.mark.parametrize("end", [".svg", ".png"])
    def test_the_same_numbers_give_the_same_bytes(self, tmp_path, end):
        for one, other in zip(_all_pictures(tmp_path / "a", end), _all_pictures(tmp_path / "b", end), strict=True):
            assert one.read_bytes() == other.read_bytes()

    def test_an_svg_has_no_date_and_its_letters_as_outlines(self, tmp_path, caplog):
        with caplog.at_level(logging.WARNING):
            files = _all_pictures(tmp_path / "a", ".svg")
        assert not caplog.records
        for file in files:
            root = ElementTree.fromstring(file.read_text(encoding="utf-8"))
            names = {element.tag.rpartition("}")[2] for element in root.iter()}
            assert names.isdisjoint({"text", "date", "font", "script"})
            assert "use" in names, "a glyph is defined once"
            assert file.stat().st_size < 150_000

    @pytest.mark.parametrize("end", [".svg", ".png"])
    def test_a_picture_says_what_it_shows(self, tmp_path, end):
        """To those who do not see it: as an image with a title and a description, or in what a PNG knows of itself."""
        titles = [
            "Learning curves of run",
            "나는 → ich",
            "Sentences by length and vocabulary entries by frequency",
            "test",
        ]
        words = [
            "best BLEU 7 at update 100",
            "columns ▁나는 ▁어제",
            "source (ko) and target (en)",
            "1 to 5 tokens: BLEU 31.2",
        ]
        for file, title, description in zip(_all_pictures(tmp_path / "a", end), titles, words, strict=True):
            if end == ".svg":
                root = ElementTree.fromstring(file.read_text(encoding="utf-8"))
                assert root.get("role") == "img"
                said = {element.tag.rpartition("}")[2]: element.text for element in list(root)[:2]}
            else:
                said = {"title": Image.open(file).text["Title"], "desc": Image.open(file).text["Description"]}
            assert said["title"] == title
            assert description in said["desc"]

    def test_themes_have_their_own_paper_and_the_same_shapes(self, tmp_path):
        light, dark = (_all_pictures(tmp_path / theme, ".png", theme) for theme in COLORS)
        for one, other in zip(light, dark, strict=True):
            bright, dim = imread(one), imread(other)
            assert bright.shape == dim.shape
            assert np.median(bright[..., :3]) > 0.9
            assert np.median(dim[..., :3]) < 0.1

    def test_colours_of_a_theme_stand_out_from_its_paper(self):
        for colors in COLORS.values():
            for text in (colors.ink, colors.quiet):
                assert _contrast(text, colors.paper) > 4.5
            assert all(_contrast(color, colors.paper) >= 3 for color in colors.series), "what WCAG asks for"
            steps = [_contrast(shade, colors.paper) for shade in colors.shades]
            assert steps == sorted(steps), "a larger weight is a stronger shade"

    def test_a_name_without_an_ending_is_a_png(self, tmp_path):
        assert plot_data({"source": [0, 1]}, None, tmp_path / "lengths").read_bytes().startswith(b"\x89PNG")


class TestTrials:
    def test_validations_outside_of_the_picture_are_marked_and_counted(self, tmp_path, shown):
        minutes = {1: 1.0, 2: 2.0, 3: 3.0}
        near = [TrialCurve(number, {1: 3.0, 2: 2.0, 3: 1.0 + number}, minutes) for number in range(3)]
        far = TrialCurve(3, {1: 90.0, 2: 80.0}, minutes)
        draw_trials([*near, far], 0, "loss", tmp_path / "far.png")
        assert "above: 2 validations" in shown
        shown.clear()
        draw_trials(near, 0, "loss", tmp_path / "near.png")
        assert "trial 0, the best" in shown
        assert not any(text.startswith("above") for text in shown)


class TestCanvas:
    def test_settings_of_matplotlib_stay_as_they_were(self, tmp_path):
        before = dict(matplotlib.rcParams)
        plot_data({"source": [0, 1, 2]}, None, tmp_path / "lengths.png")
        assert dict(matplotlib.rcParams) == before

    def test_a_picture_that_fails_leaves_the_old_one_and_nothing_else(self, tmp_path):
        file = tmp_path / "picture.png"
        file.write_bytes(b"old")
        with pytest.raises(RuntimeError), canvas(file, (1, 1)):
            raise RuntimeError
        assert [path.name for path in tmp_path.iterdir()] == ["picture.png"]
        assert file.read_bytes() == b"old"

    @pytest.mark.parametrize("place", ["file/picture.png", "file/folder/picture.svg"])
    def test_a_place_that_cannot_be_written_is_named_as_the_user_named_it(self, tmp_path, place):
        (tmp_path / "file").touch()
        for write in (check_writable, lambda file: plot_data({"source": [0, 1]}, None, file)):
            with pytest.raises(TmtError, match="found a file instead of a folder") as failure:
                write(tmp_path / place)
            assert failure.value.place == str(tmp_path / place)

    def test_an_error_while_writing_names_no_temporary_file(self, tmp_path, monkeypatch):
        def failing(_, file, **__):
            raise OSError(errno.ENOSPC, "No space left on device", str(file))

        monkeypatch.setattr(Figure, "savefig", failing)
        with pytest.raises(TmtError, match="the disk is full") as failure, canvas(tmp_path / "picture.png", (1, 1)):
            pass
        assert failure.value.place == str(tmp_path / "picture.png")

    def test_a_check_creates_the_folder_and_no_picture(self, tmp_path):
        check_writable(tmp_path / "new" / "folder" / "picture.png")
        assert [path.name for path in tmp_path.rglob("*")] == ["new", "folder"]


class TestTexts:
    def test_a_text_is_fitted_into_a_width(self):
        assert fitted("short", SMALL, 2.0) == "short"
        short = fitted("W" * 40 + "한" * 40, SMALL, 2.0)
        assert short.endswith("W\u2026")
        assert text_width(short, SMALL) <= 2.0 < text_width(short + "W", SMALL)
        assert fitted("word", SMALL, 0.01) == "\u2026"

    def test_a_text_is_broken_into_lines_at_spaces(self):
        assert broken_into_lines("one two", SMALL, 5.0, 3) == ["one two"]
        width = text_width("one two", SMALL)
        assert broken_into_lines("one two six ten", SMALL, width, 3) == ["one two", "six ten"]
        first, last = broken_into_lines("one two six ten one two", SMALL, width, 2)
        assert (first, last[:3], last[-1]) == ("one two", "six", "\u2026")

    @pytest.mark.parametrize("text", ["a", "a "])
    def test_a_very_long_text_takes_linear_time(self, text):
        def work(size):
            assert fitted(text * size, SMALL, 2.0).endswith("\u2026")
            assert len(broken_into_lines(text * size, SMALL, 2.0, 3)) <= 3

        assert_grows(work, 25_000)


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
        names = ("learning-curves", "loss", "bleu", "learning_rate", "speed")
        assert (code, err) == (0, "")
        assert out.splitlines() == [str(tmp_path / "plots" / f"{name}.png") for name in names]

    def test_a_backend_that_jupyter_names_need_not_be_installed(self, tmp_path):
        _write(tmp_path / "metrics.jsonl", [_step(1), _step(2)])
        command = [sys.executable, "-m", "transformer_mt", "plot", "--run", str(tmp_path)]
        environment = {**os.environ, "MPLBACKEND": "module://no_such_package.backend_inline"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert (tmp_path / "plots" / "loss.png").is_file()

    @pytest.mark.parametrize("run", ["here", "nowhere"])
    def test_a_folder_without_a_run_is_refused(self, tmp_path, monkeypatch, capsys, run):
        (tmp_path / "here").mkdir()
        code, out, err = self.tmt(monkeypatch, capsys, "--run", tmp_path / run)
        assert (code, out) == (2, "")
        assert run in err

    def test_several_runs_make_one_picture(self, tmp_path, monkeypatch, capsys):
        for name in ("one", "two"):
            _run(tmp_path / name, bleu=5.0)
        monkeypatch.chdir(tmp_path)
        code, out, err = self.tmt(monkeypatch, capsys, "--run", "one", "--run", "two")
        assert (code, out, err) == (0, f"{tmp_path / 'learning-curves.png'}\n", "")
        code, out, err = self.tmt(monkeypatch, capsys, "--run", "one", "--output", "one.svg", "--theme", "dark")
        assert (code, out, err) == (0, "one.svg\n", "")
        assert COLORS["dark"].paper.lower() in (tmp_path / "one.svg").read_text()

    def test_prepared_data(self, tmp_path, monkeypatch, capsys):
        config = _config(tmp_path)
        code, _, err = self.tmt(monkeypatch, capsys, "--config", config)
        assert (code, "tmt prepare" in err) == (2, True)
        prepare(config)
        folder = tmp_path / "prepared" / "small" / "plots"
        (folder / "lengths.png").unlink()
        code, out, err = self.tmt(monkeypatch, capsys, "--config", config)
        assert (code, err) == (0, "")
        assert out.splitlines() == [str(folder / "lengths.png"), str(folder / "vocabulary.png")]
        assert all(_ink(folder / name) > 0.02 for name in ("lengths.png", "vocabulary.png"))
        code, out, _ = self.tmt(monkeypatch, capsys, "--config", config, "-o", tmp_path / "data.svg")
        assert (code, out) == (0, f"{tmp_path / 'data.svg'}\n")
        code, _, err = self.tmt(monkeypatch, capsys, "--config", config, "--set", "tokenizer.max_size=40")
        assert (code, "another config of the same name" in err) == (2, True)
        assert "tmt prepare --config" in err
        assert "--source" not in err, "an option that plot does not have"

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ([], "no finished run under runs/"),
            (["--run", "one", "--config", "c.yaml"], "cannot be combined"),
            (["--run", "one", "--set", "seed=1"], "--set needs --config"),
            (["--run", "one", "--output", "one.jpg"], "cannot be written as .jpg"),
            (["--run", "one", "--output", "/dev/null"], "not a regular file"),
            (["--run", "one", "--output", "-"], "'-' is not the name of a picture"),
            (["--run", "one", "--output", ""], "'' is not the name of a picture"),
            (["--run", "one", "--output", "one.png/"], "'one.png/' is not the name of a picture"),
            (["--run", "one", "--output", "one/metrics.jsonl/a.png"], "one/metrics.jsonl/a.png: found a file"),
            (["--run", "one", "--theme", "pink"], "'--theme'"),
            (["--run", "one", "--run", "empty"], "nothing is measured yet"),
            ([option for number in range(8) for option in ("--run", f"run{number}")], "8 runs"),
        ],
    )
    def test_a_mistake_gets_one_message(self, tmp_path, monkeypatch, capsys, options, said):
        _run(tmp_path / "one")
        (tmp_path / "empty").mkdir()
        _write(tmp_path / "empty" / "metrics.jsonl", [{"event": "started", "step": 0}])
        monkeypatch.chdir(tmp_path)
        code, out, err = self.tmt(monkeypatch, capsys, *options)
        assert (code, out) == (2, "")
        assert err.count(said) == 1
        assert "Traceback" not in err


def test_a_picture_replaces_nothing_that_is_scored(tmp_path):
    reference = tmp_path / "ref"
    reference.write_text("a\n", encoding="utf-8")
    with pytest.raises(TmtError, match="this file would be replaced by the picture"):
        check_picture(tmp_path / "." / "ref", "light", (None, reference))
    check_picture(tmp_path / "ref.png", "light", (None, reference))
