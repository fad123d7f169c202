"""The tutorial's commands, in its order, in an empty folder: each ends well and makes what the page says.

They are executed as they stand in docs/tutorial.md, with the edits of its two YAML blocks, but for one reduction: a
training has 6 updates, and its model searches greedily for short translations (`REDUCED`). So translations and scores
differ from the page and are not compared; what does not depend on training is.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
REDUCED = "".join(
    f" --set {setting}"
    for setting in (
        "training.max_steps=6",
        "training.bleu_sentences=4",
        "decoding.beam=1",
        "decoding.max_length_ratio=0.5",
        "decoding.max_length_offset=3",
    )
)


def _edited(text: str, changes: dict[str, Any]) -> str:
    """A config with new values on the lines of their keys, as a person edits it."""
    for key, value in changes.items():
        if isinstance(value, dict):
            text = _edited(text, value)
        elif not re.search(rf"^ +{key}: {value}\b", text, re.M):
            text, found = re.subn(rf"^( +{key}: )\S+", rf"\g<1>{value}", text, flags=re.M)
            assert found == 1, f"{key} stands on {found} lines"
    return text


def _merged(below: Any, above: Any) -> Any:
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return {**below, **{key: _merged(below.get(key), value) for key, value in above.items()}}


class Reader:
    """Somebody who follows the page. printed: what each command wrote on stdout and stderr."""

    def __init__(self, folder: Path, shell: Any) -> None:
        self.folder, self.shell, self.printed = folder, shell, dict[str, str]()
        (folder / "scripts").symlink_to(ROOT / "scripts")

    def run(self, command: str) -> None:
        typed = command + REDUCED if command.startswith("tmt train") else command
        code, self.printed[command] = self.shell(["bash", "-c", typed], self.folder)
        assert code == 0, f"$ {typed}\n{self.printed[command]}"

    def edit(self, block: str) -> None:
        """The first YAML block changes six lines of my.yaml; the second makes more.yaml of it."""
        values, mine = yaml.safe_load(block), self.folder / "my.yaml"
        text = mine.read_text(encoding="utf-8")
        if "name" not in values:
            new = _edited(text, values)
            assert sum(old != line for old, line in zip(text.splitlines(), new.splitlines(), strict=True)) == 6
            mine.write_text(new, encoding="utf-8")
        else:
            more = yaml.safe_dump(_merged(yaml.safe_load(text), values))
            (self.folder / "more.yaml").write_text(more, encoding="utf-8")

    def shown_is_printed(self, command: str, shown: str) -> None:
        """All lines that the page shows stand in the output, in their order."""
        printed = [line.rstrip() for line in self.printed[command].splitlines()]
        for line in (line.rstrip() for line in shown.splitlines() if line.strip() not in ("", "...")):
            assert line in printed, f"$ {command}\nshows\n{line}\nbut prints\n{self.printed[command]}"
            printed = printed[printed.index(line) + 1 :]


@pytest.fixture
def tutorial(all_blocks: Any) -> list[Any]:
    return [block for block in all_blocks if block.page.name == "tutorial.md"]


def test_the_tutorial_can_be_followed(tutorial: list[Any], tmp_path: Path, run: Any) -> None:
    pytest.importorskip("ctranslate2")
    folder = tmp_path / "folder"
    folder.mkdir()
    reader = Reader(folder, run)
    for block in tutorial:
        if block.kind == "yaml":
            reader.edit(block.text)
        elif block.kind == "console":
            for command, shown in block.commands():
                reader.run(command)
                if command.startswith(("python", "tmt prepare")):
                    reader.shown_is_printed(command, shown)

    printed = reader.printed
    for name in ("my-translator", "more-data", "small-vocabulary"):
        assert (folder / "runs" / name / "model" / "model.safetensors").exists(), name
        assert any((folder / "runs" / name / "plots").iterdir()), name
    assert any((folder / "data" / "prepared" / "my-translator" / "plots").iterdir())
    assert len((folder / "letters.en").read_text(encoding="utf-8").splitlines()) == 2
    assert "\nBLEU|nrefs:1|case:mixed|eff:no|tok:13a|" in printed["tmt evaluate --bleu"], "after the name of the model"
    assert "194 sentences of test" in printed["tmt evaluate --bleu"]
    (compared,) = (text for command, text in printed.items() if "--baseline" in command)
    assert re.search(r"^BLEU +\d+\.\d\d ± \d+\.\d\d +\d+\.\d\d ± \d+\.\d\d", compared, re.M)
    assert (folder / "served" / "model.bin").exists()


def test_validation_and_test_stay_the_same_with_more_data(tutorial: list[Any], tmp_path: Path) -> None:
    """What step 8 says of the second table, of which 100 rows are also in the first."""
    from transformer_mt.config.load import load_config
    from transformer_mt.data.prepare import prepare

    rows = [(f"{number} eins", f"{number} one") for number in range(1200)]
    for name, part in (("sentences", rows[:400]), ("more", rows[300:])):
        text = "".join(f"{one}\t{other}\n" for one, other in [("german", "english"), *part])
        (tmp_path / f"{name}.tsv").write_text(text, encoding="utf-8")
    values = yaml.safe_load((ROOT / "configs" / "files.yaml").read_text(encoding="utf-8"))
    splits, training = [], []
    for block in (block for block in tutorial if block.kind == "yaml"):
        values = _merged(values, yaml.safe_load(block.text))
        values["tokenizer"] = {"kind": "character", "shared": True}
        values["data"] |= {"prepared": str(tmp_path), "workers": 1}
        file = tmp_path / "config.yaml"
        file.write_text(yaml.safe_dump(values).replace("data/", f"{tmp_path}/"), encoding="utf-8")
        prepared = prepare(load_config(file), False, lambda *_: None)
        splits.append([prepared.raw(split) for split in ("validation", "test")])
        training.append(prepared.report.splits["train"].pairs)
    assert splits[0] == splits[1]
    assert training == [400 - 20 - 20, 400 - 20 - 20 + 900 - 100]
