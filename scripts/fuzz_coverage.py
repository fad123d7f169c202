"""Attacks that are guided by coverage: atheris keeps what reaches new lines. `scripts/fuzz --atheris` starts it.

Each file is attacked in a process of its own, because libFuzzer never returns. What survives is what tests/fuzz calls
so; each kind of failure is kept as a file, as `scripts/fuzz` does.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    from tests.fuzz.targets import Target

FILES = {
    "weights": ("model-character", "model/model.safetensors"),
    "config": ("config", "config.yaml"),
    "model-config": ("model-character", "model/config.yaml"),
    "vocabulary": ("model-character", "model/source/vocabulary.txt"),
    "settings": ("model-character", "model/source/tokenizer.json"),
    "pieces": ("model-sentencepiece", "model/source/sentencepiece.model"),
    "spacing": ("model-words", "model/target/spacing.json"),
    "tmx": ("tmx", "a.tmx"),
    "glossary": ("glossary", "terms.tsv"),
}
LONGEST = 1 << 16  # bytes of an attack
FAILURES = ROOT / "fuzz-failures"


def attack(name: str, seconds: float, seed: int, place: Path) -> None:
    """Attack one file until the time is over, then end this process."""
    import atheris

    with atheris.instrument_imports(include=["transformer_mt", "yaml", "markdown_it"]):
        from tests.fuzz.targets import TARGETS, made, survive
    from scripts.fuzz_files import keep

    target_name, file = FILES[name]
    target: Target = next(one for one in TARGETS if one.name == target_name)
    folder, corpus = made(target, place / "files"), place / "corpus"
    corpus.mkdir()
    (corpus / "valid").write_bytes((folder / file).read_bytes())

    seen: set[str] = set()

    def one(content: bytes) -> None:
        try:
            survive(target, folder, (file, content))
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            kind = f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno}"
            if kind not in seen:
                seen.add(kind)
                keep(target, (file, content), FAILURES, kind, "".join(traceback.format_exception(error)))

    options = [f"-max_total_time={seconds:.0f}", f"-seed={seed}", f"-max_len={LONGEST}", "-timeout=60"]
    options += ["-rss_limit_mb=6000", "-verbosity=0", "-print_final_stats=1", f"-artifact_prefix={place}/"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one)
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long for all files together (10)")
    parser.add_argument("--seed", type=int, default=1, help="other seeds, other attacks (1)")
    parser.add_argument("--only", nargs="+", choices=FILES, default=list(FILES), help="some files")
    parser.add_argument("--inside", metavar="FOLDER", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    seconds = 60 * given.minutes / len(given.only)
    if given.inside is not None:
        attack(given.only[0], 60 * given.minutes, given.seed, given.inside)
    ended_badly = 0
    for name in given.only:
        with tempfile.TemporaryDirectory() as place:
            chosen = ["--only", name, "--minutes", str(seconds / 60), "--seed", str(given.seed), "--inside", place]
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            command = [sys.executable, __file__, *chosen]
            ended = subprocess.run(command, capture_output=True, env=environment, check=False)
            said = ended.stderr.decode("utf-8", "replace").splitlines()
            found = [f"{int(line.split()[-1]):,}" for line in said if "number_of_executed_units" in line]
            print(f"{name}: {found[0] if found else 'no'} attacks, exit code {ended.returncode}", flush=True)
            if ended.returncode or not found:
                ended_badly += 1
                print("\n".join(said[-30:]))
                for crash in [*Path(place).glob("crash-*"), *Path(place).glob("timeout-*"), *Path(place).glob("oom-*")]:
                    (FAILURES / "libfuzzer").mkdir(parents=True, exist_ok=True)
                    crash.rename(FAILURES / "libfuzzer" / crash.name)
    kept = len([one for one in FAILURES.glob("*/*") if one.is_dir()])
    print(f"{kept} kinds of failures in {FAILURES}" if kept or ended_badly else "no failures")
    return int(bool(kept or ended_badly))


if __name__ == "__main__":
    sys.exit(main())
