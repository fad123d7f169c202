"""What `tokenizer.split_digits` does to numbers, codes and addresses that a model has never seen.

    python scripts/measure_digits.py [--pairs 1500] [--threads 1]

Makes strings of a program's interface from templates, English and German, trains the config that `tmt init files`
proposes for them without and with `split_digits`, and translates 500 other strings. A number, code or address of a
reference is wrong if the translation does not have it. Needs about ten minutes.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from tabulate import tabulate

import transformer_mt as tmt
from transformer_mt.evaluation.scores import score

TESTED = 500
TEMPLATES = (
    ("The {thing} {sign} could not be {done}.", "{Ding} {sign} konnte nicht {getan} werden."),
    ("{number} items were {done}.", "{number} Elemente wurden {getan}."),
    ("See https://www.help.example/{number} before the {thing} is {done}.",
     "Siehe https://www.help.example/{number}, bevor {ding} {getan} wird."),
    ("Hex screw M{small}x{number}, pack of {other}", "Sechskantschraube M{small}x{number}, {other} Stück"),
    ("Weight: {small}.{digit} kg, length: {number} mm", "Gewicht: {small},{digit} kg, Länge: {number} mm"),
    ("Error E{number}{digit}: the {thing} was not {done}", "Fehler E{number}{digit}: {ding} wurde nicht {getan}"),
)  # fmt: skip
THINGS = {"file": "die Datei", "picture": "das Bild", "report": "der Bericht", "account": "das Konto",
          "printer": "der Drucker", "invoice": "die Rechnung", "user": "der Benutzer"}  # fmt: skip
DONE = {"deleted": "gelöscht", "saved": "gespeichert", "moved": "verschoben", "printed": "gedruckt"}
SIGNS = ("%s", "{name}", "{0}", "{{user}}", "${item}")
KINDS = {
    "numbers": r"(?<![\w./-])\d+(?:,\d+)?(?![\w./])",
    "codes": r"\b[ME]\d+(?:x\d+)?\b",
    "addresses": r"https:\S+\d",
}


def strings(draw: random.Random) -> Iterator[tuple[str, str]]:
    """English and German, none of them twice."""
    seen = set[str]()
    while True:
        (thing, ding), (done, getan) = draw.choice([*THINGS.items()]), draw.choice([*DONE.items()])
        number, other, small, digit = (
            draw.randint(1, 9999),
            draw.randint(1, 999),
            draw.randint(1, 40),
            draw.randint(0, 9),
        )
        words = {"thing": thing, "ding": ding, "Ding": ding[0].upper() + ding[1:], "done": done, "getan": getan}
        words |= {"sign": draw.choice(SIGNS), "number": number, "other": other, "small": small, "digit": digit}
        english, german = (template.format(**words) for template in draw.choice(TEMPLATES))
        if english not in seen:
            seen.add(english)
            yield english, german


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1500)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    made, rows = strings(random.Random(1)), []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        table = Path("strings.tsv")
        table.write_text("".join(f"{one}\t{other}\n" for one, other in islice(made, arguments.pairs)), encoding="utf-8")
        sources, references = zip(*islice(made, TESTED), strict=True)
        Path("config.yaml").write_text(tmt.propose_config(table, "en", "de").text, encoding="utf-8")
        for split in (False, True):
            name, settings = (
                f"split-{split}",
                [f"tokenizer.split_digits={split}", f"runtime.threads={arguments.threads}"],
            )
            report = tmt.train("config.yaml", overrides=[f"name={name.lower()}", *settings])
            translations = [one.text for one in tmt.load(report.model, threads=arguments.threads).translate(sources)]
            pairs = [*zip(references, translations, strict=True)]
            row = [split, score(translations, references, "de", ["bleu"])["bleu"].value, sum(a == b for a, b in pairs)]
            for pattern in KINDS.values():
                found = [(sign, text) for reference, text in pairs for sign in re.findall(pattern, reference)]
                row.append(f"{sum(sign not in text for sign, text in found)} of {len(found)}")
            rows.append([*row, report.steps, f"{report.seconds / 60:.1f}"])
    heads = ["split_digits", "BLEU", f"equal, of {TESTED}", *(f"wrong {kind}" for kind in KINDS), "updates", "minutes"]
    print(tabulate(rows, heads, tablefmt="github", floatfmt=".2f"))


if __name__ == "__main__":
    main()
