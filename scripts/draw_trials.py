"""Draws docs/pictures/trials.svg, light and dark, from a finished search: that of the example in docs/tuning.md.

python scripts/draw_trials.py CONFIG SPACE MINUTES [KEY=VALUE ...]      as they were given to tmt tune
"""

from __future__ import annotations

import sys
from pathlib import Path

import transformer_mt as tmt
from transformer_mt.workflows.tuning.results import draw

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"


def main() -> None:
    config, space, minutes, *overrides = sys.argv[1:]
    report = tmt.tune(config, space, float(minutes), overrides=overrides)
    draw(report.trials, report.measure, PICTURES / "trials.svg")
    draw(report.trials, report.measure, PICTURES / "trials-dark.svg", "dark")


if __name__ == "__main__":
    main()
