"""What is attacked: each target has files that are valid, strategies that damage one of them, and a use of the files.

An attack survives if the use succeeds, or raises a TmtError that can be printed and is of bearable length; within
SECONDS of CPU time and MEMORY bytes more than before.
"""

from __future__ import annotations

import io
import json
import resource
import shutil
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from hypothesis import strategies as st

from tests.fuzz import strategies as damage
from tests.fuzz.strategies import Case
from transformer_mt.config.choices import choice
from transformer_mt.config.load import load_config
from transformer_mt.config.runs import TRAINED_ON
from transformer_mt.config.schema import Config
from transformer_mt.corpora import parts
from transformer_mt.corpora.parts import Texts
from transformer_mt.data.reading import Cleaner
from transformer_mt.data.trained_on import TrainedOn
from transformer_mt.decoding.glossary import Glossary
from transformer_mt.decoding.model_directory import (
    WEIGHTS,
    ModelDirectory,
    load_model_directory,
    save_model_directory,
)
from transformer_mt.decoding.translator import Translator
from transformer_mt.errors import TmtError
from transformer_mt.kernels.build import build_model
from transformer_mt.runtime.weights import named_weights, save_weights
from transformer_mt.text.codec import Codec, Segmenter, load_codecs
from transformer_mt.text.vocabulary import Vocabulary
from transformer_mt.workflows.documents import translate_document
from transformer_mt.workflows.parents import parent_of
from transformer_mt.workflows.starting import load_parent

SECONDS, MEMORY = 20, 1 << 30  # of CPU time; bytes of address space
LONGEST_MESSAGE = 10_000  # characters
ROOT = Path(__file__).resolve().parents[2]
CONFIG = (ROOT / "configs" / "quickstart.yaml").read_bytes()
SENTENCES = ["The cat sleeps.", "A small dog eats the bread.", "I don't know (yet).", 'She said: "no"!'] * 5
PAIRS = [(one, one.upper()) for one in SENTENCES]


@dataclass(frozen=True)
class Target:
    """files: written once; cases: damaged ones of them; use: of the folder, must end or raise TmtError."""

    name: str
    files: Callable[[Path], None]
    cases: Callable[[Path], st.SearchStrategy[Case]]
    use: Callable[[Path], Any]


@contextmanager
def limited(seconds: int = SECONDS, memory: int = MEMORY) -> Iterator[None]:
    """Limits the CPU time and the growth of the address space of this process."""

    def too_slow(*_: Any) -> None:
        raise AssertionError(f"more than {seconds} seconds of CPU time")

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGPROF, too_slow)
    resource.setrlimit(resource.RLIMIT_AS, (used + memory, hard))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGPROF, handler)


def survive(target: Target, folder: Path, case: Case) -> str:
    """Attack with one damaged file; the folder is valid before and after. Returns what was said, "" if nothing.

    Raises what a user must never see: any exception that is not a TmtError, and AssertionError for a bad message.
    """
    name, content = case
    file = folder / name
    before = file.read_bytes() if file.exists() else None
    file.write_bytes(content)
    try:
        with limited(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.use(folder)
    except TmtError as error:
        return _checked(error)
    finally:
        if before is None:
            file.unlink()
        else:
            file.write_bytes(before)
    return ""


def _checked(error: TmtError) -> str:
    """What the error says. Raises AssertionError if it cannot be printed, is very long, or speaks of Python."""
    said = str(error)
    assert error.exit_code == 2, said
    assert len(said) < LONGEST_MESSAGE, f"a message of {len(said)} characters: {said[:300]}"
    said.encode("utf-8")
    assert not any(sign in said for sign in ("Traceback", "sys.set_int", "object at 0x")), said
    return said


def _only(**files: bytes | str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        for name, content in files.items():
            (folder / name.replace("__", ".")).write_bytes(content if isinstance(content, bytes) else content.encode())

    return write


def _case(name: str, strategy: st.SearchStrategy[bytes]) -> st.SearchStrategy[Case]:
    return strategy.map(lambda content: (name, content))


# Configs


def _config_cases(folder: Path) -> st.SearchStrategy[Case]:
    return _case("config.yaml", damage.yaml_bytes(CONFIG))


def _read_config(folder: Path) -> None:
    load_config(folder / "config.yaml")


def _override_cases(folder: Path) -> st.SearchStrategy[Case]:
    keys = ["seed", "name", "model.d_model", "data.corpus.files", "training.schedule", "data.corpus.0.weight", "x", ""]
    key = st.sampled_from(keys) | st.lists(st.sampled_from([*"ab0", "model", "²", "-1"]), max_size=60).map(".".join)
    value = damage.odd_values().map(json.dumps) | st.sampled_from(
        [one.decode("utf-8", "replace") for one in damage.SNIPPETS]
    )
    one = st.tuples(key, value).map("=".join) | st.text(max_size=20)
    many = st.lists(one, min_size=1, max_size=3).map(lambda some: json.dumps(some).encode())
    return _case("overrides.json", many)


def _override(folder: Path) -> None:
    load_config(folder / "config.yaml", json.loads((folder / "overrides.json").read_bytes()))


# Corpora


def _table(separator: str) -> bytes:
    return "".join(f"{one}{separator}{other}\n" for one, other in PAIRS).replace('"', '""').encode()


def _csv() -> bytes:
    return "".join('"{}","{}"\n'.format(*(side.replace('"', '""') for side in pair)) for pair in PAIRS).encode()


def _jsonl() -> bytes:
    return "".join(json.dumps({"source": one, "target": other}) + "\n" for one, other in PAIRS).encode()


def _json() -> bytes:
    return json.dumps({"n": 3, "data": [{"source": one, "target": other} for one, other in PAIRS]}).encode()


def _tmx() -> bytes:
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{one} <ph>x</ph></seg></tuv><tuv xml:lang="de"><seg>{other}</seg></tuv></tu>'
        for one, other in PAIRS
    )
    return f'<?xml version="1.0"?>\n<tmx version="1.4"><header/><body>{units}</body></tmx>'.encode()


def _xlsx() -> bytes:
    from openpyxl import Workbook

    book, made = Workbook(), io.BytesIO()
    for row in [("source", "target"), *PAIRS]:
        book.active.append(row)
    book.save(made)
    return made.getvalue()


def _parquet() -> bytes:
    import pyarrow
    from pyarrow import parquet

    made = io.BytesIO()
    columns = dict(zip(("source", "target"), map(list, zip(*PAIRS, strict=True)), strict=True))
    parquet.write_table(pyarrow.table(columns), made)
    return made.getvalue()


def _aihub() -> bytes:
    return json.dumps({"data": [{"ko": one, "en": other} for one, other in PAIRS]}).encode()


def _read_corpus(kind: str, options: dict[str, Any], languages: tuple[str, str], folder: Path) -> None:
    cls = choice("corpus", kind)
    names = {key: str(folder / value) if key == "files" else value for key, value in options.items()}
    if kind == "text":
        names["files"] = {"source": str(folder / "a.txt"), "target": str(folder / "b.txt")}
    corpus = cls(cls.Options(kind=kind, **names), *languages)
    corpus.fetch()
    clean = Cleaner(load_config(ROOT / "configs" / "quickstart.yaml").data.cleaning, *languages, trains=True)
    for split in corpus.splits():
        pairs = list(islice(corpus.read(split), 200_000))
        clean(Texts.of(pairs[:200]))
        with (
            mock.patch.object(parts, "RANGE_BYTES", 300),
            suppress(UnicodeDecodeError),
        ):  # of a line, which is then named
            for part in (part for entry in corpus.entries(split) for part in corpus.parts(entry)):
                if part.spans is not None:
                    clean(corpus.read_range(part))  # as `prepare` reads large files


def _corpus(kind: str, name: str, made: Callable[[], bytes], form: str = "bytes", **options: Any) -> Target:
    languages = ("ko", "en") if kind == "aihub" else ("en", "de")

    def cases(folder: Path) -> st.SearchStrategy[Case]:
        original = (folder / name).read_bytes()
        forms = {"bytes": damage.mutated, "zip": damage.zip_bytes, "json": damage.json_bytes}
        return _case(name, forms[form](original))

    def files(folder: Path) -> None:
        (folder / name).write_bytes(made())
        (folder / "b.txt").write_bytes("\n".join(SENTENCES).encode())

    return Target(kind, files, cases, partial(_read_corpus, kind, {"files": name, **options}, languages))


def _look_cases(folder: Path) -> st.SearchStrategy[Case]:
    made = {
        "a.tsv": _table("\t"),
        "a.csv": _csv(),
        "a.jsonl": _jsonl(),
        "a.json": _json(),
        "a.tmx": _tmx(),
        "a.txt": b"a\nb\n",
    }
    return st.one_of(_case(name, damage.mutated(content)) for name, content in made.items())


def _look(folder: Path) -> None:
    from transformer_mt.workflows.proposal.discover import discover

    files = [file for file in folder.iterdir() if file.suffix != ".keep"]
    if files:
        discover(files, None, None)


# Models


def _codec(tokenizer: dict[str, Any], language: str) -> Codec:
    values = load_config(ROOT / "configs" / "quickstart.yaml").model_dump(mode="json")
    config = Config.model_validate({**values, "tokenizer": {"source": tokenizer, "target": tokenizer}})
    segmenter = Segmenter(config.source_tokenizer, language)
    segmenter.train(SENTENCES * 10)
    words = Counter(token for sentence in SENTENCES for token in segmenter.tokenize(sentence))
    inventory = segmenter.tokenizer.inventory()
    return Codec(segmenter, Vocabulary(inventory) if inventory else Vocabulary.count(words))


KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "character": ({"kind": "character"}, {"kind": "whitespace", "case": "true"}),
    "sentencepiece": ({"kind": "sentencepiece", "vocab_size": 48, "character_coverage": 0.98},) * 2,
    "words": ({"kind": "soynlp"}, {"kind": "spacy"}),
}


def _write_model(kinds: str, folder: Path) -> None:
    source, target = KINDS[kinds]
    config = Config.model_validate(
        {
            "name": "tiny",
            "data": {"source": "ko", "target": "en", "corpus": {"kind": "phrasebook"}, "max_length": 24},
            "tokenizer": {"source": source, "target": target},
            "model": {"d_model": 16, "n_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1},
            "training": {"max_epochs": 1},
            "decoding": {"max_length_ratio": 1.0, "max_length_offset": 5, "beam": 2},
        }
    )
    codecs = _codec(source, "ko"), _codec(target, "en")
    torch.manual_seed(3)
    model = build_model(config, len(codecs[0]), len(codecs[1]))
    save_model_directory(folder / "model", config, named_weights(model), codecs)
    save_weights(named_weights(model), folder / "model" / WEIGHTS)  # an attacker writes no checksums
    (folder / "terms.tsv").write_text("cat\tCat\n", encoding="utf-8")
    (folder / "lines.txt").write_text("cat\n", encoding="utf-8")


_HUGE_NUMBERS = [b"1000000000000000000", b"1048576", b"100000", b"16384", b"999"]


def _model_cases(folder: Path) -> st.SearchStrategy[Case]:
    strategies = []
    for file in sorted((folder / "model").rglob("*")):
        if file.is_file() and not file.name.startswith("."):
            name, content = file.relative_to(folder).as_posix(), file.read_bytes()
            if file.suffix == ".json":
                strategy = damage.json_bytes(content)
            elif file.suffix == ".yaml":
                strategy = damage.yaml_bytes(content) | damage.mutated(content, _HUGE_NUMBERS)
            elif file.suffix == ".model":
                strategy = damage.sentencepiece_bytes(content)
            elif file.suffix == ".safetensors":
                strategy = damage.safetensors_bytes(content)
            else:
                strategy = damage.mutated(content)
            strategies.append(_case(name, strategy))
    return st.one_of(strategies)


def _load_model(folder: Path) -> None:
    loaded = load_model_directory(folder / "model")
    Translator([loaded]).translate(["cat 고양이"])


def _write_parent(folder: Path) -> None:
    _write_model("sentencepiece", folder)
    hashes = {side: np.arange(1, 9, dtype=np.uint64) for side in ("source", "target")}
    (folder / "model" / TRAINED_ON).write_bytes(TrainedOn.of_blocks([hashes]).to_bytes())
    own = (folder / "model" / "config.yaml").read_text(encoding="utf-8")
    (folder / "mine.yaml").write_text(own, encoding="utf-8")


def _start_from(folder: Path) -> None:
    """What a training does with a model to start from, without the training."""
    config = load_config(folder / "mine.yaml", [f"training.start_from={folder / 'model'}"])
    config = config.model_copy(update={"model": load_config(folder / "model" / "config.yaml").model})  # as if left out
    parent = parent_of(config, folder / "run")
    assert parent is not None
    parent.identity()
    own = TrainedOn.of_blocks([{side: np.arange(5, dtype=np.uint64) for side in ("source", "target")}])
    both = own.with_parent(parent.trained_on)
    both.to_bytes()
    both.seen(np.arange(3, dtype=np.uint64))
    codecs = []
    for codec in load_codecs(folder / "model"):
        tokenizer = codec.segmenter.tokenizer
        tokenizer.extend(["zebras zigzag 가나다", "zebras zigzag"] * 3, 6)
        codecs.append(Codec(codec.segmenter, Vocabulary(tokenizer.inventory() or [])))
    model = build_model(config, len(codecs[0]), len(codecs[1]))
    load_parent(model, config, parent, (codecs[0], codecs[1]))
    loaded = ModelDirectory(folder / "model", config, model.eval(), codecs[0], codecs[1])
    Translator([loaded]).translate(["zebras 고양이"])


_loaded: dict[Path, Translator] = {}


def _translator(folder: Path) -> Translator:
    if folder not in _loaded:
        _loaded[folder] = Translator([load_model_directory(folder / "model")])
    return _loaded[folder]


def _translate(folder: Path) -> None:
    lines = (folder / "lines.txt").read_bytes().decode("utf-8", "replace").split("\n")
    for answer in _translator(folder).translate(lines, align=True):
        answer.text.encode()


def _glossary(folder: Path) -> None:
    glossary = Glossary.load(folder / "terms.tsv")
    glossary.terms("cat and dog")


MARKDOWN = b"""# A *title*\n\nText with `code` and [a link](http://a.b "t").\n\n- item\n  1. inner\n\n> quote\n
| a | b |\n|---|---|\n| c | d |\n\n```py\ncode\n```\n<div>x</div>\n\n[^1]: note\n"""
HTML = b"<!DOCTYPE html><html><head><title>T</title></head><body><p>A <b>cat</b> &amp; dog<br>x</p></body></html>"
SUBTITLES = (
    b"1\n00:00:01,000 --> 00:00:02,000\n{\\an8}A <i>cat</i>\nruns\n\n2\n00:00:02,000 --> 00:00:03,000\nto the dog.\n\n"
    b"3\n00:00:03,000 --> 00:00:04,000\n- One.\n- Two.\n"
)


def _document_cases(folder: Path) -> st.SearchStrategy[Case]:
    texts = {"a.md": MARKDOWN, "a.html": HTML, "a.txt": b"One.\n\nTwo\tthree.\n> four\n", "a.srt": SUBTITLES}
    return st.one_of(_case(name, damage.mutated(text)) for name, text in texts.items())


def _document(folder: Path) -> None:
    for file in folder.glob("a.*"):
        translate_document(file, _translator(folder)).text.encode()


def _sentence_cases(folder: Path) -> st.SearchStrategy[Case]:
    return _case("lines.txt", damage.sentences())


# Requests. The name of a file says where its body is sent.

BODIES = {
    "v1.json": b'{"text": ["cat", "a dog"], "n_best": 2, "align": true, "split": false, "beam": 2}',
    "libretranslate.json": b'{"q": ["cat"], "source": "ko", "target": "en", "format": "text", "alternatives": 1}',
    "libretranslate.form": b"q=cat+and%20dog&source=ko&target=en&format=html",
    "detect.json": b'{"q": "cat"}',
}
PATHS = {"v1": "/v1/translate", "libretranslate": "/translate", "detect": "/detect"}
TYPES = {".json": "application/json", ".form": "application/x-www-form-urlencoded"}


def _request_cases(folder: Path) -> st.SearchStrategy[Case]:
    return st.one_of(
        _case(name, damage.json_bytes(body) if name.endswith(".json") else damage.mutated(body))
        for name, body in BODIES.items()
    )


def _request(folder: Path) -> None:
    """Raises what the application raises, and AssertionError unless a refusal is JSON with one sentence."""
    import asyncio

    import httpx

    from transformer_mt.serving.app import make_app
    from transformer_mt.serving.limits import Limits
    from transformer_mt.serving.models import Models, serve_directions

    limits = Limits(body=20_000, characters=2_000, sentences=50, queue=200, seconds=30)
    bodies = [(file, file.read_bytes()) for file in sorted(folder.glob("*.*")) if file.name in BODIES]

    async def ask() -> list[httpx.Response]:
        models = Models(serve_directions(_translator(folder), limits))
        app = httpx.ASGITransport(make_app(models, limits))
        try:
            async with httpx.AsyncClient(transport=app, base_url="http://fuzz") as client:
                return [
                    await client.post(PATHS[file.stem], content=body, headers={"Content-Type": TYPES[file.suffix]})
                    for file, body in bodies
                ]
        finally:
            await models.close()

    for answer in asyncio.run(ask()):
        said = answer.json()
        if answer.status_code != 200:
            assert 400 <= answer.status_code < 500, answer.text
            assert set(said) == {"error"}
            assert 5 < len(said["error"]) < 500, said
            assert "Traceback" not in said["error"]


def model_target(kinds: str) -> Target:
    """Models with tokenizers of these KINDS."""
    return Target(f"model-{kinds}", partial(_write_model, kinds), _model_cases, _load_model)


TARGETS = [
    Target("config", _only(config__yaml=CONFIG), _config_cases, _read_config),
    Target("overrides", _only(config__yaml=CONFIG, overrides__json=b"[]"), _override_cases, _override),
    _corpus("csv", "a.csv", _csv),
    _corpus("tsv", "a.tsv", lambda: _table("\t")),
    _corpus("jsonl", "a.jsonl", _jsonl),
    _corpus("json", "a.json", _json, "json"),
    _corpus("text", "a.txt", lambda: "\n".join(SENTENCES).encode()),
    _corpus("tmx", "a.tmx", _tmx),
    _corpus("xlsx", "a.xlsx", _xlsx, "zip", source_column="source", target_column="target"),
    _corpus("parquet", "a.parquet", _parquet),
    _corpus("aihub", "a.json", _aihub, "json"),
    Target("looking", _only(), _look_cases, _look),
    *(model_target(kinds) for kinds in KINDS),
    Target(
        "glossary",
        _only(terms__tsv="cat\tKatze\n# note\na dog\tein Hund\n"),
        lambda folder: _case("terms.tsv", damage.mutated(b"cat\tKatze\n# note\na dog\tein Hund\n")),
        _glossary,
    ),
    Target("start-from", _write_parent, _model_cases, _start_from),
    Target("sentences", partial(_write_model, "sentencepiece"), _sentence_cases, _translate),
    Target("requests", partial(_write_model, "character"), _request_cases, _request),
    Target("documents", partial(_write_model, "sentencepiece"), _document_cases, _document),
]


def made(target: Target, folder: Path) -> Path:
    """A new folder with the valid files of a target."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    target.files(folder)
    return folder
