#!/usr/bin/env bash
# Checks that a refactoring changed no result: trains and translates with two commits and compares the results bit by bit.
#
#   scripts/prove_refactoring.sh BEFORE [AFTER]      AFTER: a commit; default: the working tree
#
# Compares, for the quickstart and for multi30k-en-de (in float32 and in the precision of the config), 200 updates each:
#   - all losses in metrics.jsonl, and the weights and optimizer state of the last checkpoint
#   - 1,000 test sentences, translated greedily and with beam 5, by each commit with its own model: the texts must be
#     identical; the scores may differ by 0.001, because sums in another order are rounded differently
# Then AFTER translates the same sentences with the models of BEFORE, and continues one of its runs.
#
# MULTI30K=FOLDER   the Multi30k files (default: data/multi30k); without them, only the quickstart is compared
# MODEL=FOLDER      a trained model folder, for more translations to compare
# UPDATES=200       number of updates
# PYTHON=python     a Python with the dependencies of both commits
# SCRATCH=FOLDER    folder for the results, which is kept (default: a temporary folder)
set -Eeuo pipefail
[ $# -ge 1 ] || { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p;}' "$0"; exit 2; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
before=$1 after=${2:-} updates=${UPDATES:-200} python=${PYTHON:-python}
multi30k=${MULTI30K:-$root/data/multi30k} scratch=${SCRATCH:-$(mktemp -d)}
export OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
mkdir -p "$scratch"
scratch=$(cd "$scratch" && pwd)
[ ! -d "$multi30k" ] || multi30k=$(cd "$multi30k" && pwd)
[ -z "${MODEL:-}" ] || MODEL=$(cd "$MODEL" && pwd)
[ "$updates" -ge 100 ] || { echo "prove_refactoring.sh: UPDATES=$updates is too few to compare; use at least 100" >&2; exit 2; }
commit=$(git -C "$root" rev-parse --verify --quiet "$before^{commit}") || { echo "prove_refactoring.sh: unknown commit $before" >&2; exit 2; }
trap 'tail -n 5 "$scratch"/*/*.log >&2 || true; echo "prove_refactoring.sh: failed; the logs are in $scratch" >&2' ERR

checkout() { # NAME COMMIT: the files of a commit, or of the working tree, in scratch/NAME/code
  mkdir -p "$scratch/$1/code"
  if [ -n "$2" ]; then
    git -C "$root" archive "$2" | tar -x -C "$scratch/$1/code"
  else
    git -C "$root" ls-files -z --cached --others --exclude-standard |
      (cd "$root" && while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done) |
      (cd "$root" && tar -c --null -T -) | tar -x -C "$scratch/$1/code"
  fi
}

tmt() { # NAME ARGUMENT...: runs `tmt` with the code of one of the two
  (cd "$scratch/$1" && PYTHONPATH=$scratch/$1/code "$python" -m transformer_mt.cli.main "${@:2}")
}

work() { # NAME
  local run config folder
  tmt "$1" train --config code/configs/quickstart.yaml --set training.max_steps="$updates" --set data.workers=1 \
    --set training.validate_every=100 --run-dir quickstart >"$scratch/$1/quickstart.log" 2>&1
  "$python" - "$scratch/$1" <<'PY'
import sys, pathlib
folder = pathlib.Path(sys.argv[1])
text = next(folder.glob("data/prepared/quickstart/test/source.txt"))
(folder / "quickstart.txt").write_bytes(text.read_bytes())
PY
  if [ -d "$multi30k" ]; then
    gunzip -c "$multi30k/test_2016_flickr.en.gz" >"$scratch/$1/multi30k.txt"
    for run in float32 fast; do
      tmt "$1" train --config code/configs/multi30k-en-de.yaml --set "data.corpus.directory=$multi30k" \
        --set training.max_steps="$updates" --set "runtime.precision=$run" --set training.validate_every=100 \
        --set data.workers=1 --run-dir "multi30k-$run" >"$scratch/$1/multi30k-$run.log" 2>&1
    done
  fi
  for run in quickstart multi30k-float32 multi30k-fast; do
    folder=$scratch/$1/$run
    [ -d "$folder" ] || continue
    translate "$1" "$folder/model" "${run%-*}" "$run"
  done
  [ -z "${MODEL:-}" ] || translate "$1" "$MODEL" "${MODEL_TEXT:-quickstart}" given
}

translate() { # NAME MODEL TEXT LABEL
  local beam
  for beam in 1 5; do
    tmt "$1" translate --model "$2" --input "$scratch/before/$3.txt" --beam "$beam" --scores --threads 1 \
      --output "$scratch/$1/$4.beam$beam" 2>/dev/null
  done
}

compare() {
  "$python" - "$scratch" <<'PY'
import hashlib, json, pathlib, sys
scratch = pathlib.Path(sys.argv[1])
bad = 0

def say(what, same):
    global bad
    bad += not same
    print(f"{'identical' if same else 'DIFFERENT':10} {what}")

def losses(run):
    keys = ("step", "loss", "smoothed_loss", "learning_rate", "perplexity", "bleu")
    records = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [[record.get(key) for key in keys] for record in records if record["event"] in ("step", "validation")]

def digest(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()

def compare(one, other, what):
    lines, others = ([line.split("\t", 1) for line in file.read_text().splitlines()] for file in (one, other))
    far = max(abs(float(line[0]) - float(its[0])) for line, its in zip(lines, others))
    same = [text for _, text in lines] == [text for _, text in others] and far < 0.001
    say(f"{one.name}: {what} ({len(lines):,} translations; largest difference of a score {far:.4f})", same)

for before in sorted((scratch / "before").glob("*/metrics.jsonl")):
    run = before.parent.name
    after = scratch / "after" / run
    say(f"{run}: {len(losses(before.parent))} records of losses", losses(before.parent) == losses(after))
    for name in ("model", "optimizer"):
        files = [sorted(one.glob(f"checkpoints/step-*/{name}.safetensors"))[-1] for one in (before.parent, after)]
        say(f"{run}: {name}.safetensors of the last checkpoint", digest(files[0]) == digest(files[1]))
for before in sorted((scratch / "before").glob("*.beam*")):
    compare(before, scratch / "after" / before.name, "each commit's own model")
for before in sorted((scratch / "before").glob("*.beam*")):
    old = scratch / "old-models" / before.name
    if old.exists():
        compare(before, old, "the older commit's model in the newer one")
resumed = scratch / "after" / "resumed" / "metrics.jsonl"
if resumed.exists():
    say("quickstart: a run of the older commit, resumed by the newer one", '"event": "resumed"' in resumed.read_text())
sys.exit(1 if bad else 0)
PY
}

if [ "$(cat "$scratch/before/done" 2>/dev/null)" != "$commit $updates" ]; then # else SCRATCH has the results of an earlier run
  rm -rf "$scratch/before"
  checkout before "$before"
  work before
  echo "$commit $updates" >"$scratch/before/done"
fi
rm -rf "$scratch/after" "$scratch/old-models"
checkout after "$after"
work after
mkdir "$scratch/old-models"
for run in quickstart multi30k-float32 multi30k-fast; do
  [ -d "$scratch/before/$run" ] || continue
  for beam in 1 5; do
    tmt after translate --model "$scratch/before/$run/model" --input "$scratch/before/${run%-*}.txt" --beam $beam --scores \
      --threads 1 --output "$scratch/old-models/$run.beam$beam" 2>/dev/null
  done
done
cp -r "$scratch/before/quickstart" "$scratch/after/resumed"
tmt after train --config code/configs/quickstart.yaml --set training.max_steps=$((updates + 20)) --set data.workers=1 \
  --set training.validate_every=100 --run-dir resumed >"$scratch/after/resumed.log" 2>&1
compare
