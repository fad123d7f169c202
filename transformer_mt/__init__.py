"""transformer_mt: "Attention Is All You Need" written by hand, and trained as a translator.

    import transformer_mt as tmt

    config = tmt.load_config("my.yaml")
    tmt.prepare(config).report                         # pairs kept and dropped, lengths, unknown words
    report = tmt.train(config)                         # continues an interrupted run
    translator = tmt.load(report.model)                # a run or model folder
    translator.translate("...").text                   # one sentence
    [one.text for one in translator.translate(["...", "..."])]
    translator.score("...", "...").token_scores        # log-probabilities of a given translation
    tmt.evaluate(report.model).scores["bleu"]
    tmt.compare_runs().lines                           # runs side by side, with means over seeds
    tmt.export("exported", report.model)               # for CTranslate2
    tmt.convert("opus-mt-de-en", "models/de-en")       # a model to start from (training.start_from)
    tmt.tune(config, "space.yaml", minutes=60).best    # a config with better hyper-parameters

A name is imported when it is first used, so `import transformer_mt` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from transformer_mt.config.load import load_config as load_config
    from transformer_mt.config.schema import Config as Config
    from transformer_mt.decoding.choosing import Wanted as Wanted
    from transformer_mt.decoding.forced import PairScore as PairScore
    from transformer_mt.decoding.glossary import Glossary as Glossary
    from transformer_mt.decoding.interpreter import Computing as Computing
    from transformer_mt.decoding.terms import Term as Term
    from transformer_mt.decoding.translation import Hypothesis as Hypothesis
    from transformer_mt.decoding.translation import Translation as Translation
    from transformer_mt.decoding.translator import Translator as Translator
    from transformer_mt.errors import InterruptionError as InterruptionError
    from transformer_mt.errors import TmtError as TmtError
    from transformer_mt.workflows.average import average as average
    from transformer_mt.workflows.compare import compare_runs as compare_runs
    from transformer_mt.workflows.convert import convert as convert
    from transformer_mt.workflows.documents import translate_document as translate_document
    from transformer_mt.workflows.evaluate import evaluate as evaluate
    from transformer_mt.workflows.evaluate import evaluate_directions as evaluate_directions
    from transformer_mt.workflows.export import export as export
    from transformer_mt.workflows.plot import plot as plot
    from transformer_mt.workflows.prepare import prepare as prepare
    from transformer_mt.workflows.propose import propose_config as propose_config
    from transformer_mt.workflows.score import score as score
    from transformer_mt.workflows.synthesize import synthesize as synthesize
    from transformer_mt.workflows.test_sets import TestFiles as TestFiles
    from transformer_mt.workflows.train import train as train
    from transformer_mt.workflows.translate import draw_attention as draw_attention
    from transformer_mt.workflows.translate import load as load
    from transformer_mt.workflows.tune import tune as tune

_HOMES = {
    "Computing": "decoding.interpreter",
    "Config": "config.schema",
    "Glossary": "decoding.glossary",
    "Hypothesis": "decoding.translation",
    "InterruptionError": "errors",
    "PairScore": "decoding.forced",
    "Term": "decoding.terms",
    "TestFiles": "workflows.test_sets",
    "TmtError": "errors",
    "Translation": "decoding.translation",
    "Translator": "decoding.translator",
    "Wanted": "decoding.choosing",
    "average": "workflows.average",
    "compare_runs": "workflows.compare",
    "convert": "workflows.convert",
    "draw_attention": "workflows.translate",
    "evaluate": "workflows.evaluate",
    "evaluate_directions": "workflows.evaluate",
    "export": "workflows.export",
    "load": "workflows.translate",
    "load_config": "config.load",
    "plot": "workflows.plot",
    "prepare": "workflows.prepare",
    "propose_config": "workflows.propose",
    "score": "workflows.score",
    "synthesize": "workflows.synthesize",
    "train": "workflows.train",
    "translate_document": "workflows.documents",
    "tune": "workflows.tune",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
