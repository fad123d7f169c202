#!/usr/bin/env bash
# Trains configs/multi30k-en-de.yaml (or the direction given) and reports both yardsticks on both test sets: sacreBLEU on
# cased, detokenised text (13a), and lower-cased Moses tokens as in papers; each greedy and with a beam of 5.
#
#   scripts/reproduce_multi30k.sh [en-de|de-en] [PUBLISHED]
#
# PUBLISHED is a folder with the official NAME.lc.norm.tok.LANG files (or .gz; data/task1/tok of github.com/multi30k/dataset);
# without it the references are brought into that form by `tmt evaluate --tokenized`, which gives the same lines. Two processes
# train; a run that was interrupted goes on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
direction=${1:-en-de} published=${2:-}
model=runs/multi30k-$direction/model

torchrun --nproc-per-node 2 -m transformer_mt.cli.main train --config "configs/multi30k-$direction.yaml"
for set in test_2016_flickr test_2017_flickr; do
  references=(--tokenized)
  if [ -n "$published" ]; then
    file=$published/$set.lc.norm.tok.${direction#*-}
    [ -f "$file" ] || file=$file.gz
    references+=(--tokenized-reference "$file")
  fi
  for beam in 1 5; do
    echo "== $direction $set beam $beam"
    tmt evaluate --bleu --model "$model" --split "$set" --beam "$beam" "${references[@]}" | sed -n 1,12p
  done
done
