"""Every page is held to the program: commands, options, files, links, pictures, configs and Python exist as written."""

from __future__ import annotations

import json
import re
import shlex
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import torch
import typer
import yaml

from transformer_mt.cli.main import COMMANDS
from transformer_mt.config.choices import CHOICES
from transformer_mt.config.load import load_config
from transformer_mt.config.reference import keys_at
from transformer_mt.config.schema import Config
from transformer_mt.config.training import TrainingConfig
from transformer_mt.kernels.build import build_model

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = "https://github.com/transformer-mt/transformer_mt"
# Addresses of our own files: what stands before the path in the repository.
OURS = (
    f"{REPOSITORY}/blob/main/",
    f"{REPOSITORY}/tree/main/",
    f"{REPOSITORY}/raw/main/",
    "https://raw.githubusercontent.com/transformer-mt/transformer_mt/main/",
)
SITE = "https://transformer-mt.github.io/transformer_mt/"


def _words(command: str) -> list[str]:
    """The words of the first command of a pipe that is ours, from its name on; `...` and comments left out."""
    typed = re.split(r"\s+#\s", command)[0]
    ours = next(
        (
            part
            for part in re.split(r"\s(?:\||&&|;|>|<|2>)\s", typed)
            if re.search(r"\btmt |transformer_mt|scripts/", part) and not part.startswith("docker build")
        ),
        typed,
    )
    words = shlex.split(ours.replace("<(", "("), comments=False)
    return [word for word in words if word not in ("...", "…")]


def _command_options(name: str) -> dict[str, bool]:
    """Each option of a command, and whether a value follows it."""
    app = typer.Typer()
    app.command(name)(getattr(import_module(f"transformer_mt.cli.{name}"), name))
    command = typer.main.get_command(app)
    options = {
        option: not one.is_flag
        for one in command.params
        if hasattr(one, "is_flag")
        for option in (*one.opts, *one.secondary_opts)
    }
    return {"--help": False, "-h": False, **options}


def test_options_of_a_command_exist(command: str) -> None:
    words = _words(command)
    ours = [
        number
        for number, word in enumerate(words)
        if word == "tmt" or word.endswith(("/tmt", "transformer_mt", "transformer_mt.cli.main"))
    ]
    if not ours:
        return  # a script: see the next test
    arguments = words[ours[0] + 1 :]
    if not arguments or arguments[0].startswith("-"):
        assert set(arguments) <= {"--help", "-h", "--version", "--install-completion", "--show-completion"}, command
        return
    name = arguments[0]
    assert name in COMMANDS, f"no command {name}: {command}"
    options = _command_options(name)
    given = [word.partition("=")[0] for word in arguments[1:] if re.match(r"--?[a-zA-Z]", word)]
    assert [option for option in given if option not in options] == [], f"unknown in `{command}`"
    for option, value in pairwise(arguments):
        if option == "--set" and "=" in value:
            _assert_key_exists(value.partition("=")[0].split("."), command)


def _assert_key_exists(path: list[str], where: str) -> None:
    """Of a section that has a `kind`, the keys of all kinds exist: a command does not show the config it changes."""
    section: list[str | int] = list(path[:-1])
    known: set[str] = set()
    for kind in (None, *CHOICES["tokenizer"], *CHOICES["corpus"]):
        values: dict[Any, Any] = {"kind": kind}
        for part in reversed(section):
            values = {part: values}
        with suppress(KeyError):
            known |= set(keys_at(section, values))
    assert path[-1] in known, f"no key {'.'.join(path)}: {where}"


def test_options_of_a_script_exist(command: str) -> None:
    words = _words(command)
    scripts = [number for number, word in enumerate(words) if re.fullmatch(r"(?:\./)?scripts/\w+\.py", word)]
    if not scripts:
        return
    source = (ROOT / words[scripts[0]]).read_text(encoding="utf-8")
    missing = [
        word
        for word in words[scripts[0] + 1 :]
        if word.startswith("--") and f'"{word.partition("=")[0]}"' not in source
    ]
    assert missing == [], command


def test_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    names = set(re.findall(r"(?<![\w/])(?:configs|scripts)/[a-z0-9_./-]+[a-z0-9]", text))
    prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S)
    names |= set(re.findall(r"`((?:transformer_mt|tests|docs)/[A-Za-z0-9_./-]+\w)`", prose))
    assert [name for name in sorted(names) if not (ROOT / name).exists()] == []


def _anchors(page: Path) -> set[str]:
    """The anchors of a page: its headings as GitHub and mkdocs write them, and explicit ones."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    anchors = set(re.findall(r'\b(?:id|name)="([^"]+)"', text)) | set(re.findall(r"\{[^}\n]*#([\w-]+)[^}\n]*\}", text))
    for heading in re.findall(r"^#+ (.+?)\s*(?:\{.*\})?$", text, re.M):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "").lower()
        github = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        anchors |= {github, re.sub(r"-+", "-", github)}
    return anchors


def _target(page: Path, link: str) -> tuple[Path, str] | None:
    """File and anchor of a link to something of ours; None for an address elsewhere."""
    address, _, anchor = link.partition("#")
    for prefix in OURS:
        if address.startswith(prefix):
            return ROOT / address.removeprefix(prefix), anchor
    if address.startswith(SITE):
        name = address.removeprefix(SITE) or "index.html"
        return ROOT / "docs" / re.sub(r"\.html$", ".md", name), anchor
    if re.match(r"[a-z]+:", address):
        return None
    return (page.parent / unquote(address) if address else page), anchor


def test_links_lead_to_files_and_anchors(page: Path) -> None:
    text = re.sub(r"^ *```.*?^ *```|`[^`\n]+`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    links = [
        *re.findall(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)", text),
        *re.findall(r'\b(?:href|src|srcset)="([^"]+)"', text),
    ]
    dead = []
    for link in links:
        target = _target(page, link)
        if target is None:
            continue
        file, anchor = target
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in _anchors(file)):
            dead.append(link)
    assert dead == []


def test_pictures_exist_and_have_a_description(page: Path) -> None:
    text = re.sub(r"^ *```.*?^ *```|`[^`\n]+`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for described, link in re.findall(r"!\[([^]]*)\]\(\s*([^)\s]+)", text):
        target = _target(page, link)
        assert target is None or target[0].stat().st_size > 500, link
        assert described.strip(), f"a picture without words: {link}"


WHOLE = {"name", "data", "tokenizer", "model", "training"}
# What a fragment stands in: a config that is whole, with sections that it replaces key by key.
BASE = {
    "name": "base",
    "data": {"source": "en", "target": "de", "corpus": {"kind": "phrasebook"}},
    "tokenizer": {"kind": "character", "shared": True},
    "model": {},
    "training": {"max_epochs": 1},
}


def _merged(below: Any, above: Any) -> Any:
    """Mappings key by key; a section of another kind replaces the one there is."""
    if (
        not isinstance(below, dict)
        or not isinstance(above, dict)
        or above.get("kind", below.get("kind")) != below.get("kind")
        or ("kind" in below and "source" in above)  # a tokenizer for each side instead of one
    ):
        return above
    if "directions" in above:
        below = {key: value for key, value in below.items() if key not in ("source", "target")}
    return {**below, **{key: _merged(below.get(key), value) for key, value in above.items()}}


def test_a_config_of_a_page_is_accepted(yaml_block: Any, tmp_path: Path) -> None:
    if yaml_block.text.startswith("{{ code "):
        return  # a whole file, which has tests of its own
    try:
        values = yaml.safe_load(re.sub(r"^\s*\.\.\.$", "", yaml_block.text, flags=re.M))
    except yaml.YAMLError as error:
        pytest.fail(f"{yaml_block.place} is no YAML: {error}")
    assert isinstance(values, dict), yaml_block.place
    if not set(values) & {*WHOLE, "decoding", "runtime", "seed"}:
        return  # YAML of something else (docker, a workflow)
    if not set(values) >= WHOLE:
        values = _merged(BASE, values)
    file = tmp_path / "page.yaml"
    file.write_text(json.dumps(values), encoding="utf-8")
    load_config(file)


def test_python_of_a_page_compiles(python_block: Any) -> None:
    try:
        compile(python_block.text, python_block.place, "exec")
    except SyntaxError:
        compile(f"{{{python_block.text}}}", python_block.place, "eval")  # a line of a table


def test_the_base_model_is_that_of_the_paper(all_blocks: Any, tmp_path: Path) -> None:
    keys = next(block.text for block in all_blocks if block.kind == "yaml" and "37000" in block.text)
    file = tmp_path / "base.yaml"
    file.write_text("name: base\ndata: {source: en, target: de, corpus: {kind: multi30k}}\n" + keys, encoding="utf-8")
    config = load_config(file)
    d, f, words = 512, 2048, 37_000  # table 3, base
    norms, attention, feed_forward = 2 * d, 4 * (d * d + d), 2 * d * f + d + f
    encoder, decoder = attention + feed_forward + 2 * norms, 2 * attention + feed_forward + 3 * norms
    with torch.device("meta"):
        model = build_model(config, words, words, device="meta")
    assert sum(weight.numel() for weight in model.parameters()) == words * d + 6 * (encoder + decoder)
    training = config.training
    assert (training.optimizer, training.betas, training.epsilon) == ("adam", (0.9, 0.98), 1e-9)
    assert (training.schedule, training.warmup_steps, training.label_smoothing) == ("noam", 4000, 0.1)
    assert (config.model.dropout, config.decoding.beam, config.decoding.length_penalty) == (0.1, 4, 0.6)


def test_the_keys_beside_those_of_other_toolkits_exist() -> None:
    """In the first column of docs/migrating.md: with the value, or in brackets the default, that stands beside them."""
    text = (ROOT / "docs" / "migrating.md").read_text(encoding="utf-8")
    defaults = {name: Config.model_fields[name].default for name in ("model", "decoding")}
    defaults["training"] = TrainingConfig.model_construct()
    checked = 0
    for section, rows in re.findall(r"^## Keys of `(\w+)`\n(.*?)(?=^## )", text, re.M | re.S):
        for cell in re.findall(r"^\| (`.*?) \|", rows, re.M):
            for name, value in re.findall(r"`([\w.]+)(?:: ([\w.]+))?`", cell):
                place, key = name.rsplit(".", 1) if "." in name else (section, name)
                assert key in keys_at(place.split(".")), cell
                if value and "default" in cell:
                    assert str(getattr(defaults[section], key)).lower() == value, cell
            if bracket := re.search(r"\(([\d., e-]+)\)", cell):
                key = re.findall(r"`(\w+)", cell)[0]
                default = getattr(defaults[section], key)
                numbers = list(default) if isinstance(default, tuple) else [default]
                assert numbers == [float(one) for one in bracket[1].split(",")], cell
                checked += 1
    assert checked == 9


FAMILIES = {"tokenizer": "data", "corpus": "data", "schedule": "training", "optimizer": "training"}
FAMILIES["search"] = "translating"


@pytest.mark.parametrize(("family", "file"), FAMILIES.items())
def test_each_choice_is_on_the_page_of_its_family(family: str, file: str) -> None:
    text = (ROOT / "docs" / f"{file}.md").read_text(encoding="utf-8")
    named = {*re.findall(rf"`(\w+)`|\b(?:kind|{family}): (\w+)", text)}
    missing = [name for name in CHOICES[family] if not {(name, ""), ("", name)} & named]
    assert not missing, f"docs/{file}.md says nothing of {family} {', '.join(missing)}: add a line"
