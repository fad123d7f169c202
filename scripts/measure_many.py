"""One model for several directions, compared with a model of each direction in the same number of updates.

    python scripts/measure_many.py --updates 6000 --models many ko-en en-ko en-de de-en ko-de

Trains configs/phrasebook-many.yaml, and the same config for one direction each, with the same sizes and updates. Runs
are in runs/, so a script that was interrupted goes on. Then prints the BLEU of each on the same new test sentences, and
of the directions that the model was not trained for ("zero-shot"), with the share of translations without any letter of
the target's script ("script").
"""

from __future__ import annotations

import argparse
from pathlib import Path

import transformer_mt as tmt
from transformer_mt.config.direction import Direction
from transformer_mt.config.load import load_config
from transformer_mt.config.schema import Config
from transformer_mt.decoding.batches import translate_ids
from transformer_mt.decoding.model_directory import load_model_directory
from transformer_mt.evaluation.scores import score
from transformer_mt.phrasebook import LANGUAGES, generate
from transformer_mt.text.script import foreign_script

CONFIG = Path(__file__).parents[1] / "configs" / "phrasebook-many.yaml"
SEED = 1  # of the test sentences, as in the config


def config_for(name: str, updates: int, pairs: int) -> Config:
    """The config of a model. name: `many`, or its only direction"""
    changes = [f"training.max_steps={updates}", f"data.corpus.train={pairs}", "training.bleu_sentences=0"]
    values = load_config(CONFIG, changes).model_dump(mode="json")
    values["name"] = f"many-{updates}-{name}"
    if name != "many":
        del values["data"]["directions"]
        values["data"] |= Direction.of(name)._asdict()
    return Config.model_validate(values)


def bleu_of(folder: Path, direction: Direction, sentences: int) -> tuple[float, float, str]:
    """BLEU, the share of translations without a letter of the target's script, and the signature of BLEU."""
    model = load_model_directory(folder / "model")
    tags = [direction.tag] if model.config.data.directions is not None else []
    pairs = list(generate(*direction, "test", sentences, SEED))
    ids = [model.source.encode(source, tags) for source, _ in pairs]
    found = translate_ids(model.model, ids, model.config.decoding, first_tag=model.target.first_tag)
    lines = [model.target.decode(one) for one in found]
    bleu = score(lines, [target for _, target in pairs], direction.target, ["bleu"])["bleu"]
    foreign = sum(foreign_script(line, direction.target) for line in lines) / len(lines)
    return bleu.value, foreign, bleu.signature


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    trained = load_config(CONFIG).data.all_directions
    parser.add_argument("--updates", type=int, default=6_000)
    parser.add_argument("--pairs", type=int, default=20_000, help="training pairs of each direction")
    parser.add_argument("--sentences", type=int, default=500, help="test sentences of each direction")
    parser.add_argument("--models", nargs="+", default=["many", *map(str, trained)])
    options = parser.parse_args()
    folders = {}
    for name in options.models:
        folders[name] = tmt.train(config_for(name, options.updates, options.pairs)).run
    print(f"{'direction':<12}{'own model':>11}{'many':>8}{'script':>8}  BLEU")
    for direction in (Direction(one, other) for one in LANGUAGES for other in LANGUAGES if one != other):
        own, many, signature = "-", ("-", "-"), "-"
        if str(direction) in folders:
            bleu, _, signature = bleu_of(folders[str(direction)], direction, options.sentences)
            own = f"{bleu:.2f}"
        if "many" in folders:
            bleu, foreign, signature = bleu_of(folders["many"], direction, options.sentences)
            many = f"{bleu:.2f}", f"{foreign:.1%}"
        zero = "" if direction in trained else "   zero-shot"
        print(f"{direction!s:<12}{own:>11}{many[0]:>8}{many[1]:>8}  {signature}{zero}")


if __name__ == "__main__":
    main()
