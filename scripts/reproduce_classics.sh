#!/usr/bin/env bash
# Trains the classic implementations of configs/classics as far as a CPU allows, and reports each in its own metric.
#
#   scripts/reproduce_classics.sh [NAME...]     default: revisited-de-en annotated replication-multi30k
#
# revisited-de-en       loss, perplexity and BLEU over lower-cased spaCy words (published: 1.671, 5.316, 36.52)
# replication-multi30k  validation loss (published: 2.039 for PyTorch's, 2.825 for the handmade one)
# annotated             its copy task
# handmade-ko-en        AI Hub workbooks in data/aihub (published: 2.390 and 15.31 with all 115,000 pairs)
# hyunwoongko-en-de     base size: hours on a CPU
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for name in "${@:-revisited-de-en annotated replication-multi30k}"; do
  for classic in $name; do
    echo "== $classic"
    [ "$classic" != annotated ] || [ -d data/copy ] || python scripts/make_copy_task.py
    tmt train --config "configs/classics/$classic.yaml"
    tmt evaluate --bleu --model "runs/$classic/model"
  done
done
