#!/usr/bin/env bash
# Trains the classic implementations in configs/classics as far as a CPU allows, and prints each in its own metric.
#
#   scripts/reproduce_classics.sh [NAME...] [-- OPTION...]     default: revisited-de-en annotated replication-multi30k
#
# OPTIONs are passed to `tmt train`, for example: -- --set runtime.threads=1 --set runtime.precision=fast
#
# revisited-de-en       loss, perplexity and BLEU over lower-cased spaCy words (published: 1.671, 5.316, 36.52)
# replication-multi30k  validation loss (published: 2.039 with PyTorch's layers, 2.825 with handmade ones)
# annotated             its copy task
# handmade-ko-en        AI Hub workbooks in data/aihub (published: 2.390 and 15.31 on 92,000 training pairs, of 115,000)
# hyunwoongko-en-de     base size, takes days on a CPU; -- --set training.max_minutes=40 stops it early (published:
#                       validation loss 3.205 after 1,000 epochs)
source "$(dirname "${BASH_SOURCE[0]}")/names.sh"

for classic in ${names:-revisited-de-en annotated replication-multi30k}; do
  split=test
  case $classic in
    revisited-de-en) published="loss 1.671, perplexity 5.316, BLEU 36.52" ;;
    replication-multi30k) published="validation loss 2.039 with PyTorch's layers, 2.825 with handmade ones" split=validation ;;
    annotated) published="no figure" ;;
    handmade-ko-en) published="loss 2.390, BLEU 15.31, on 92,000 pairs" ;;
    hyunwoongko-en-de) published="validation loss 3.205 after 1,000 epochs" split=validation ;;
    *) published="nothing" ;;
  esac
  echo "== $classic (published: $published)"
  [ "$classic" != annotated ] || [ -d data/copy ] || python scripts/make_copy_task.py
  tmt train --config "configs/classics/$classic.yaml" "$@"
  tmt evaluate --bleu --model "runs/$classic/model" --split "$split"
done
