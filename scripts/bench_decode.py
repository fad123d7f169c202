"""Measures decoding: sentences and output tokens per second, greedy and beam 5, with one thread and with all.

    python scripts/bench_decode.py [--joey PYTHON]            random weights, --size tiny or base, forced length
    python scripts/bench_decode.py --model runs/NAME/model --input sentences.txt [--ctranslate2 EXPORTED]

Without a model, sentences are random ids and each translation has exactly --forced-length tokens, so all programs do
the same work: CTranslate2, if it is installed, with random weights of the same shapes, and JoeyNMT, if --joey names a
Python that has it (bench_train.py says how to install it).

With a model and sentences, CTranslate2 runs on the folder that `tmt export` wrote: directly on tokens ("ctranslate2"),
and from text to text as `tmt translate --engine ctranslate2` does ("exported"). JoeyNMT runs with the weights of the
model, which it must support (--set model.positions=sinusoidal --set model.output_bias=false --set
model.layer_norm_epsilon=1e-6); the number of equal translations is printed.

Each figure is the best of --repeat runs. Measure on a machine without other load.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from flops import SIZES

from transformer_mt.config.decoding import DecodingConfig
from transformer_mt.config.model import ModelConfig
from transformer_mt.decoding.batches import search
from transformer_mt.decoding.model_directory import load_model_directory
from transformer_mt.decoding.request import Request
from transformer_mt.errors import TmtError
from transformer_mt.exporting.origin import is_exported
from transformer_mt.kernels.build import parts_for
from transformer_mt.kernels.linear import store_by_columns
from transformer_mt.model.positions import sinusoidal_positions
from transformer_mt.model.transformer import Transformer
from transformer_mt.runtime.device import keep_freed_memory
from transformer_mt.text.vocabulary import BOS, EOS, MARKS, PAD, UNK

BEAMS = (1, 5)
JOEY_LIMIT, JOEY_POSITIONS = 100, 5000  # most tokens of a translation with a model; rows of its position table
_SWAPPED = {PAD: UNK, UNK: PAD}  # JoeyNMT has these two ids in the other order
_JOEY_NAMES = (  # our name -> JoeyNMT's name, applied in this order
    ("around_cross_attention.norm.", "dec_layer_norm."),
    ("around_feed_forward.norm.", "feed_forward.layer_norm."),
    ("feed_forward.inner.", "feed_forward.pwff_layer.0."),
    ("feed_forward.outer.", "feed_forward.pwff_layer.3."),
    ("cross_attention.", "src_trg_att."),
    ("_att.output.", "_att.output_layer."),
    ("final_norm.", "layer_norm."),
    (".gamma", ".weight"),
    (".beta", ".bias"),
)
_JOEY_SELF = {"encoder": ("layer_norm.", "src_src_att."), "decoder": ("x_layer_norm.", "trg_trg_att.")}
SOURCE_TOKENS = 16  # of a random sentence
Translate = Callable[[int], tuple[int, int]]  # beam -> (sentences, output tokens)
Measured = tuple[float, int, int]  # seconds of the fastest run, sentences, output tokens


def main() -> None:
    options = _arguments()
    keep_freed_memory()
    os.environ.setdefault("CT2_VERBOSE", "-1")
    print(f"{'engine':<12} {'search':<7} {'threads':>7} {'sentences/s':>12} {'tokens/s':>9}")
    threads, work = {1, options.threads or os.cpu_count() or 1}, _work(options)
    with tempfile.TemporaryDirectory() as folder:
        for count in sorted(threads):
            torch.set_num_threads(count)
            for name, translate in _engines(options, work, count, Path(folder)):
                for beam in BEAMS:
                    _print_row(name, beam, count, _best(translate, beam, options.repeat))
            if options.joey:
                _compare_joey(options, work, count, Path(folder))


def _print_row(name: str, beam: int, threads: int, measured: Measured) -> None:
    seconds, sentences, tokens = measured
    search_name = "greedy" if beam == 1 else f"beam {beam}"
    row = f"{name:<12} {search_name:<7} {threads:>7} {sentences / seconds:>12,.1f}"
    print(f"{row} {tokens / seconds:>9,.0f}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="model folder; default: random weights of --size")
    parser.add_argument("--size", choices=SIZES, default="tiny", help="without --model: sizes of the model")
    parser.add_argument("--input", type=Path, help="with --model: a file of sentences")
    parser.add_argument("--ctranslate2", type=Path, help="with --model: the folder that `tmt export` wrote for it")
    parser.add_argument("--joey", type=Path, help="a Python with JoeyNMT installed")
    parser.add_argument("--sentences", type=int, default=512, help="number of sentences; from a file, the first ones")
    parser.add_argument("--forced-length", type=int, default=20, help="without --model: tokens of each translation")
    parser.add_argument(
        "--batch-tokens", type=int, default=DecodingConfig().token_budget, help="source tokens times beam in a batch"
    )
    parser.add_argument("--vocabulary", type=int, default=8_000, help="without --model: size of the vocabulary")
    parser.add_argument("--threads", type=int, help="besides one thread, measure this number; default: all cores")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    if (options.model is None) != (options.input is None):
        parser.error("--model and --input need each other")
    if options.input is not None and not options.input.is_file():
        parser.error(f"no such file: {options.input}")
    if options.joey and options.size != "tiny":
        parser.error("JoeyNMT is compared at --size tiny")
    if options.joey and not shutil.which(options.joey):
        parser.error(f"no such Python: {options.joey}")
    if options.ctranslate2 is not None and not is_exported(options.ctranslate2):
        parser.error(f"not a folder that `tmt export` wrote: {options.ctranslate2}")
    return options


@dataclass(frozen=True)
class Work:
    """The sentences to translate, the model and the settings."""

    model: Transformer
    sources: Sequence[Sequence[int]]
    decoding: DecodingConfig
    words: Sequence[str]
    forced: int | None  # tokens of every translation
    lines: Sequence[str] = ()  # the sources as text, if they come from a file


def _work(options: argparse.Namespace) -> Work:
    if options.model is not None:
        directory = load_model_directory(options.model)
        lines = [line for line in options.input.read_text(encoding="utf-8").split("\n") if line.strip()]
        lines = lines[: options.sentences]
        if not lines:
            raise SystemExit(f"bench_decode: no sentences in {options.input}")
        sources = [directory.source.encode(line)[-directory.config.data.max_length :] for line in lines]
        decoding, words = directory.config.decoding, directory.source.vocabulary.tokens
        if options.joey:  # it has one limit for all sentences
            decoding = decoding.model_copy(update={"max_length_ratio": 0.0, "max_length_offset": JOEY_LIMIT})
        store_by_columns(directory.model)  # as a Translator does
        return Work(directory.model, sources, decoding, words, None, lines)
    torch.manual_seed(0)
    sizes = ModelConfig(**SIZES[options.size], tie_embeddings="all", output_bias=False)
    model = Transformer(sizes, options.vocabulary, options.vocabulary, PAD, parts=parts_for(sizes, "cpu")).eval()
    store_by_columns(model)
    shape = (options.sentences, SOURCE_TOKENS)
    sources = [[*row, EOS] for row in torch.randint(len(MARKS), options.vocabulary, shape).tolist()]
    forced = options.forced_length
    ratio = {"max_length_ratio": 0.0, "max_length_offset": forced, "min_length_ratio": forced / SOURCE_TOKENS}
    words = [*MARKS, *(f"w{index}" for index in range(len(MARKS), options.vocabulary))]
    return Work(model, sources, DecodingConfig(**ratio), words, forced)


def _engines(options: argparse.Namespace, work: Work, threads: int, folder: Path) -> list[tuple[str, Translate]]:
    engines = [("tmt", _ours(work, options))]
    exported = options.ctranslate2
    if options.model is None:
        try:
            exported = _random_ctranslate2(folder, work)
        except ImportError:
            print("CTranslate2 is not installed (pip install ctranslate2), so it is not measured")
    if exported is not None:
        engines.append(_ctranslate2(exported, work, threads, options))
    if exported is not None and work.lines:
        engines.append(("exported", _exported(exported, work, threads, options)))
    return engines


def _ours(work: Work, options: argparse.Namespace) -> Translate:
    def translate(beam: int) -> tuple[int, int]:
        ids = _our_ids(work, options, beam)
        return len(ids), sum(map(len, ids))

    return translate


def _our_ids(work: Work, options: argparse.Namespace, beam: int) -> list[tuple[int, ...]]:
    wanted = work.decoding.model_copy(update={"beam": beam, "n_best": 1, "batch_tokens": options.batch_tokens})
    requests = [Request(source) for source in work.sources]
    return [found[0].ids for found in search([work.model], requests, wanted, scored=beam > 1)]  # as without --scores


def _ctranslate2(folder: Path, work: Work, threads: int, options: argparse.Namespace) -> tuple[str, Translate]:
    import ctranslate2

    engine = ctranslate2.Translator(str(folder), intra_threads=threads, inter_threads=1, compute_type="float32")
    tokens = [[work.words[index] for index in source] for source in work.sources]
    length: dict[str, Any] = {}
    alpha = work.decoding.length_penalty
    if work.forced is not None:
        length = {"min_decoding_length": work.forced, "max_decoding_length": work.forced}

    def translate(beam: int) -> tuple[int, int]:
        budget = {"max_batch_size": max(1, options.batch_tokens // beam), "batch_type": "tokens"}
        results = engine.translate_batch(tokens, beam_size=beam, length_penalty=alpha, **budget, **length)
        ends = (
            0 if work.forced is not None else len(results)
        )  # our ids include the end token, those of CTranslate2 do not
        return len(results), sum(len(result.hypotheses[0]) for result in results) + ends

    return "ctranslate2", translate


def _exported(folder: Path, work: Work, threads: int, options: argparse.Namespace) -> Translate:
    from transformer_mt.decoding.interpreter import Computing
    from transformer_mt.exporting.ctranslate2 import load_engine

    wanted = {"n_best": 1, "batch_tokens": options.batch_tokens}
    engines = {}
    for beam in BEAMS:
        decoding = work.decoding.model_copy(update={**wanted, "beam": beam})
        engines[beam] = load_engine(folder, decoding, Computing("cpu", threads, scored=False))  # as without --scores

    def translate(beam: int) -> tuple[int, int]:
        found = list(engines[beam].translate(work.lines, split=False))
        return len(found), sum(len(one.tokens) + 1 for one in found)

    return translate


def _random_ctranslate2(folder: Path, work: Work) -> Path:
    """A CTranslate2 model as large as ours, with random weights. Raises ImportError if CTranslate2 is not installed."""
    from ctranslate2.specs import TransformerSpec
    from ctranslate2.specs.model_spec import LayerSpec

    ours, words = work.model.config, work.words
    spec = TransformerSpec.from_config((ours.encoder_layers, ours.decoder_layers), ours.n_heads, pre_norm=True)
    d_model, d_ff = ours.d_model, ours.d_ff
    random = np.random.default_rng(0)

    sizes = {"/embeddings": len(words), "/projection": len(words), "/ffn/linear_0": d_ff}
    sizes |= {"/self_attention/linear_0": 3 * d_model, "/attention/linear_1": 2 * d_model}

    def fill(part: Any, path: str) -> None:
        for name, value in list(vars(part).items()):
            if name in ("gamma", "beta"):
                setattr(part, name, np.full(d_model, name == "gamma", dtype=np.float32))
            elif name == "weight":
                rows = next((size for end, size in sizes.items() if path.endswith(end)), d_model)
                columns = d_ff if path.endswith("/ffn/linear_1") else d_model
                part.weight = random.normal(0, 0.05, (rows, columns)).astype(np.float32)
            elif isinstance(value, list):
                for index, item in enumerate(value):
                    fill(item, f"{path}/embeddings" if name == "embeddings" else f"{path}/{name}_{index}")
            elif isinstance(value, LayerSpec):
                fill(value, f"{path}/{name}")

    fill(spec, "")
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = MARKS[UNK], MARKS[BOS], MARKS[EOS]
    spec.config.decoder_start_token = MARKS[BOS]
    spec.validate()
    spec.save(str(folder))
    return folder


def _compare_joey(options: argparse.Namespace, work: Work, threads: int, folder: Path) -> None:
    """JoeyNMT on the same work: its two rows, and with the weights of a model the number of equal translations."""
    weights = None
    if options.model is not None:
        weights = folder / "joey.npz"
        np.savez(weights, **{name: weight.numpy() for name, weight in _as_joey(work.model).items()})
    found = _run_joey(options, work, threads, weights)
    for beam in BEAMS:
        ids = [tuple(_SWAPPED.get(token, token) for token in row) for row in found[str(beam)]["ids"]]
        tokens = sum(map(len, ids)) if work.forced is None else work.forced * len(ids)
        _print_row("joeynmt", beam, threads, (found[str(beam)]["seconds"], len(ids), tokens))
        if weights is not None:
            equal = sum(one == other for one, other in zip(ids, _our_ids(work, options, beam), strict=True))
            print(f"{'':<12} {equal:,} of {len(ids):,} translations are equal to those of tmt")


def _run_joey(options: argparse.Namespace, work: Work, threads: int, weights: Path | None) -> dict[str, Any]:
    config = work.model.config
    values = {
        "threads": threads,
        "repeat": options.repeat,
        "vocabulary": len(work.words),
        "sizes": {"d_model": config.d_model, "n_heads": config.n_heads, "d_ff": config.d_ff}
        | {"layers": config.encoder_layers},
        "weights": weights and str(weights),
        "sources": [[_SWAPPED.get(token, token) for token in source] for source in work.sources],
        "alpha": work.decoding.length_penalty,
        "max_length": work.forced or JOEY_LIMIT,
        "min_length": work.forced or 1,
    }
    program = Path(__file__).with_name("bench_joey_decode.py")
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    command = [str(options.joey), str(program)]
    done = subprocess.run(command, env=environment, input=json.dumps(values), stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"bench_decode: {options.joey} failed with exit code {done.returncode}; is JoeyNMT installed?")
    return json.loads(done.stdout.splitlines()[-1])


def _as_joey(model: Transformer) -> dict[str, torch.Tensor]:
    """The same weights with JoeyNMT's names. Exits if JoeyNMT does not support the model."""
    config, ours = model.config, model.state_dict()
    fitting = {"positions": "sinusoidal", "norm": "pre", "output_bias": False, "tie_embeddings": "all"}
    fitting |= {"layer_norm_epsilon": 1e-6, "activation": "relu", "encoder_layers": config.decoder_layers}
    fitting |= {"scale_embeddings": True, "bias": True, "normalization": "layer", "epsilon_on": "variance"}
    for name, value in fitting.items():
        if getattr(config, name) != value:
            raise SystemExit(f"JoeyNMT does not support this model: model.{name} must be {value}")
    theirs = {}
    for name, weight in ours.items():
        if name.endswith("tokens.weight") or name == "generator.weight":
            order = [_SWAPPED.get(token, token) for token in range(len(weight))]
            for place in ("src_embed.lut", "trg_embed.lut", "decoder.output_layer"):
                theirs[f"{place}.weight"] = weight[order]
            continue
        norm, attention = _JOEY_SELF[name.partition(".")[0]]
        for old, new in (("around_self_attention.norm.", norm), ("self_attention.", attention), *_JOEY_NAMES):
            name = name.replace(old, new)
        if "query_key_value" in name:
            for part, third in zip("qkv", weight.chunk(3), strict=True):
                theirs[name.replace("query_key_value", f"{part}_layer")] = third
        else:
            theirs[name] = weight
    table = sinusoidal_positions(JOEY_POSITIONS, config.d_model)[None]
    return theirs | {"encoder.pe.pe": table, "decoder.pe.pe": table}


def _best(translate: Translate, beam: int, repeat: int) -> Measured:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        sentences, tokens = translate(beam)
        times.append(time.perf_counter() - start)
    return min(times), sentences, tokens


if __name__ == "__main__":
    try:
        main()
    except TmtError as error:
        raise SystemExit(f"bench_decode: {error}") from None
