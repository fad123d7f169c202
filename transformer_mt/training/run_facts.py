"""What a run records of each of its starts: versions, machine and corpus; and whether the corpus is still the same."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from transformer_mt.config.load import CONFIG, load_config
from transformer_mt.config.runs import FACTS
from transformer_mt.config.schema import Config
from transformer_mt.errors import without_credentials

PACKAGES = ("torch", "numpy", "sentencepiece", "spacy", "soynlp", "torchtext", "sacrebleu", "safetensors")
SETTINGS, PARENT = "config", "parent"  # in run.json: all keys, and a checksum of the weights to start from
FROM_STEP = "from_step"  # in run.json: the step of the checkpoint that this start resumed from; 0 for a new run


def starts_of(run: Path) -> list[dict[str, Any]]:
    """Facts about each start of a run, oldest first; empty if there is no file yet, or if it is damaged."""
    with suppress(OSError, ValueError, RecursionError):
        recorded = json.loads((run / FACTS).read_text(encoding="utf-8"))
        return [one for one in recorded if isinstance(one, dict)] if isinstance(recorded, list) else []
    return []


def config_of_run(run: Path) -> Config | None:
    """The config of the last start of a run; None if there was none.

    run.json has it, since config.yaml may have been edited, and be the new config. Older versions, and later ones with
    other keys, are read from config.yaml. Raises TmtError if that cannot be read.
    """
    with suppress(KeyError, ValueError):
        return Config.model_validate((starts_of(run) or [{}])[-1][SETTINGS])
    return load_config(run / CONFIG) if (run / CONFIG).exists() else None


def changed_files(old: Mapping[str, Any], facts: Mapping[str, Any]) -> list[str]:
    """The files of a corpus that have other contents, are new, are gone, or are read in another order.

    old, facts: with the key `corpus` of `Prepared.identity`. Files may have moved. Empty if `old` is damaged
    """
    before, now = corpus_files_of(old), corpus_files_of(facts)
    if not before or [one for _, one in before] == [one for _, one in now]:
        return []
    counts_before, counts_now = (Counter(one for _, one in files) for files in (before, now))
    new, gone = counts_now - counts_before, counts_before - counts_now
    changed = [one[0] for one in now if one[1] in new and one not in before]
    changed += [one[0] for one in before if one[1] in gone and one not in now]
    return list(dict.fromkeys(changed)) or ["the same files, in another order or number"]


def corpus_files_of(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Path and contents of each corpus file, in the order in which they are read; empty if the facts are damaged.

    The contents are a checksum, or of a file at an address without one, what is known of it.
    """
    try:
        return [
            (str(file["path"]), str(file["sha256"] or f"{file['path']} {file.get('version')} {file.get('size')}"))
            for file in facts["corpus"]
        ]
    except (TypeError, KeyError):
        return []


def other_code(history: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> list[str]:
    """The commit and the packages of this start that differ from those that the run began with, as `torch 2.9 -> 2.13`.

    history: the starts so far; those before a start from step 0 left nothing behind. Unknown versions count as equal.
    """
    began: Mapping[str, Any] = next((one for one in reversed(history) if not one.get(FROM_STEP)), {})
    before, now = versions_of(began), versions_of(facts)
    return [f"{name} {before[name]} -> {new}" for name, new in now.items() if before.get(name, new) != new]


def batches_of_updates(history: Sequence[Mapping[str, Any]]) -> set[int]:
    """How many batches an update had, of all processes together, in the starts of a run."""
    found = set[int]()
    for one in history:
        with suppress(KeyError, TypeError, ValueError):
            found.add(int(one["processes"]) * int(one[SETTINGS]["training"]["accumulate"]))
    return found


def versions_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The commit of the program, as `git`, and the versions of packages; without those that are unknown."""
    packages = facts.get("packages")
    found = {"git": facts.get("git"), **(packages if isinstance(packages, dict) else {})}
    return {name: one for name, one in found.items() if one not in (None, "none", "not installed")}


def facts_of(
    corpus: list[dict[str, Any]],
    tokenizers: str = "",
    processes: int = 1,
    launchers: Sequence[str] = (),
    device: str = "",
) -> dict[str, Any]:
    """What is needed to repeat a run, besides its config: versions, git state, machine, command, corpus checksums.

    corpus:    its files, each with `path` and `sha256`
    tokenizers: their checksum
    processes: number of training processes
    launchers: see `launcher`
    device:    with its threads and the number format, as `Machine.describe` says it
    """
    packages = dict.fromkeys(("transformer_mt", *PACKAGES), "not installed")
    for name in packages:
        with suppress(PackageNotFoundError):
            packages[name] = version(name)
    return {
        "started": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "command": [without_credentials(argument) for argument in sys.argv],
        "processes": processes,
        **({"launchers": list(launchers)} if launchers else {}),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "device": device,
        "packages": packages,
        "git": _git_state(),
        "corpus": corpus,
        "tokenizers": tokenizers,
    }


def launcher() -> str:
    """Identifies the `torchrun` that started this process; empty without one.

    It stays the same if `torchrun` starts its processes again.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return ""
    parent = os.getppid()
    try:  # field 22 is the time when it started; the name in field 2 may have spaces
        started = Path(f"/proc/{parent}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    except (OSError, IndexError):  # no Linux
        started = ""
    return f"{platform.node()} {parent} {started}".strip()


def _processor() -> str:
    """The name of the processor; empty if the system does not say it."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        return next(line for line in lines if line.startswith("model name")).partition(":")[2].strip()
    return platform.processor()


def _git_state(package: Path = Path(__file__).parents[1]) -> str:
    """The commit of the code, with `+changes` if files of the package are changed or new; `none` if it is not in git.

    A package that was installed into the folder of another project is not in the repository of that project.
    """
    with suppress(OSError, subprocess.SubprocessError):
        if _git(package, "ls-files", "--error-unmatch", "__init__.py"):
            changes = "+changes" if _git(package, "status", "--porcelain", ".") else ""
            return f"{_git(package, 'describe', '--always')}{changes}"
    return "none"


def _git(folder: Path, *arguments: str) -> str:
    """What git prints. Raises OSError without git, SubprocessError if it fails."""
    command = ["git", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
