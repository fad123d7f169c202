"""Bootstrap resampling, of one system and of two, gives the results of sacreBLEU's command line."""

from __future__ import annotations

import json
import re

import pytest

from transformer_mt.errors import TmtError
from transformer_mt.evaluation.comparison import FEWEST, MOST, compare, intervals

pytestmark = pytest.mark.slow

SAMPLES = 200


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_scores_intervals_and_p_values_are_those_of_its_command_line(systems, write, sacrebleu, metric):
    """The numbers are read from its table, because it cannot print them as JSON (some are numpy's)."""
    files = write("r", systems.references), "-i", write("bad", systems.bad), write("good", systems.good)
    table = sacrebleu(*files, "-m", metric, "--paired-bs", "-pbsn", SAMPLES, "-f", "text", "-nc")
    (baseline, baseline_interval), (system, system_interval) = (
        (float(score), float(interval))
        for score, interval in re.findall(r"([0-9.]+) \([0-9.]+ ± ([0-9.]+)\)", table)[:2]
    )
    p_value = float(re.search(r"\(p = ([0-9.]+)\)", table)[1])
    ours = compare(systems.bad, systems.good, systems.references, metrics=(metric,), samples=SAMPLES)[metric]
    figures = (ours.baseline, ours.baseline_interval, ours.system, ours.system_interval)
    assert figures == pytest.approx((baseline, baseline_interval, system, system_interval), rel=1e-5)
    assert ours.p_value == pytest.approx(p_value, abs=1e-4)
    assert ours.signature in table
    assert ours.significant


def test_several_references_are_resampled_together_as_on_its_command_line(systems, write, sacrebleu):
    others = [line.swapcase() for line in systems.references]
    files = write("r", systems.references), write("o", others), "-i", write("good", systems.good)
    theirs = sacrebleu(*files, "-m", "bleu", "--confidence", "-f", "json")
    expected = pytest.approx(theirs["confidence_var"], rel=1e-5)
    assert intervals(systems.good, systems.references, metrics=("bleu",), others=[others]) == {"bleu": expected}
    ours = compare(systems.bad, systems.good, systems.references, metrics=("bleu",), others=[others])["bleu"]
    assert (ours.system, ours.system_interval) == (pytest.approx(theirs["score"], rel=1e-5), expected)
    assert ours.signature.startswith("nrefs:2|")


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_the_interval_of_one_system_is_that_of_its_command_line(systems, write, sacrebleu, metric):
    files = write("r", systems.references), "-i", write("good", systems.good)
    theirs = sacrebleu(*files, "-m", metric, "--confidence", "-f", "json")
    ours = intervals(systems.good, systems.references, metrics=(metric,))
    assert ours == {metric: pytest.approx(theirs["confidence_var"], rel=1e-5)}


def test_four_times_as_many_sentences_have_half_the_interval(systems):
    """The error of a mean: 1 / sqrt(n)."""
    one, four = (intervals(systems.good * n, systems.references * n, metrics=("bleu",))["bleu"] for n in (1, 4))
    assert four == pytest.approx(one / 2, rel=0.15)


@pytest.mark.parametrize("number", [FEWEST - 1, MOST + 1])
def test_too_few_sentences_have_no_interval_and_too_many_need_none(number):
    assert intervals(["a b c d"] * number, ["a b c d"] * number) == {}


def test_equal_systems_have_a_p_value_of_1(systems):
    """sacreBLEU gives them the smallest one."""
    ours = compare(systems.good, systems.good, systems.references, metrics=("bleu",), samples=SAMPLES)["bleu"]
    assert (ours.p_value, ours.verdict) == (1.0, "")


def test_several_metrics_at_once_are_the_same_as_one_at_a_time(systems):
    together = compare(systems.bad, systems.good, systems.references, samples=50)
    for metric, one in together.items():
        assert compare(systems.bad, systems.good, systems.references, metrics=(metric,), samples=50)[metric] == one


def test_the_same_lines_give_the_same_answer_and_plain_numbers(systems):
    one, other = (
        compare(systems.bad, systems.good, systems.references, metrics=("bleu", "chrf"), samples=50) for _ in range(2)
    )
    assert one == other
    json.dumps([vars(comparison) for comparison in one.values()])


def test_a_system_is_never_better_than_itself(systems):
    ours = compare(systems.good, systems.good, systems.references, metrics=("bleu",), samples=50)["bleu"]
    assert ours.baseline == ours.system
    assert not ours.significant


def test_a_tiny_difference_is_not_significant(systems):
    changed = [*systems.good[:-1], systems.good[-1] + " heute"]
    ours = compare(changed, systems.good, systems.references, metrics=("bleu",), samples=100)["bleu"]
    assert ours.baseline != ours.system
    assert not ours.significant


def test_a_baseline_of_another_length_is_the_users_mistake(systems):
    with pytest.raises(TmtError, match="the baseline has 79 lines"):
        compare(systems.bad[1:], systems.good, systems.references)
