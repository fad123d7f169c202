"""What splitting lines into sentences does to BLEU, on a split of the data of a model.

    python scripts/measure_splitting.py runs/multi30k-de-en --split test_2016_flickr

A line of a corpus is a segment, which may have several sentences; a model may have learned such segments as one. The
script prints how many lines of the split have several sentences, and BLEU with and without splitting:
of all lines, and of the lines with several sentences.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import transformer_mt as tmt
from transformer_mt.data.prepared import Prepared, prepared_folder
from transformer_mt.evaluation.scores import score
from transformer_mt.text.sentences import sentences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--split", default="test")
    arguments = parser.parse_args()
    translator = tmt.load(arguments.model, device="cpu")
    data = translator.config.data
    prepared = Prepared.open(prepared_folder(translator.config))
    sources, references = prepared.raw(arguments.split)
    places = [number for number, line in enumerate(sources) if len(sentences(line, data.source)) > 1]
    print(f"{arguments.split}: {len(places):,} of {len(sources):,} lines")
    whole = [one.text for one in translator.translate(sources, split=False)]
    joined = [one.text for one in translator.translate(sources)]
    for name, some in (("all lines", range(len(sources))), ("lines of several sentences", places)):
        if some:
            right = [references[place] for place in some]
            scores = [
                score([lines[place] for place in some], right, data.target, ("bleu",))["bleu"].value
                for lines in (whole, joined)
            ]
            print(f"{name}: BLEU {scores[0]:.2f} as one sentence, {scores[1]:.2f} split")


if __name__ == "__main__":
    main()
