#!/usr/bin/env bash
# Trains configs/multi30k-en-de.yaml (or another direction) and prints two kinds of BLEU on both test sets: sacreBLEU on
# cased, detokenised text (13a), and on lower-cased Moses tokens as in papers; each greedy and with beam 5.
#
#   scripts/reproduce_multi30k.sh [en-de|de-en|en-de-diversified|de-en-diversified] [PUBLISHED]
#
# diversified: `tmt synthesize diversify` (docs/synthesis.md). TEACHERS models of each direction (default 1) translate the
# training sentences of their source language, and a model of the same size is trained on the corpus and all translations,
# with about 13,500 updates (8,000 in a normal training): 28 epochs, or fewer with more teachers. It uses no other text and
# no other model.
#
# PUBLISHED is a folder with the official NAME.lc.norm.tok.LANG files (or .gz; data/task1/tok of
# github.com/multi30k/dataset). Without it, `tmt evaluate --tokenized` makes them, with the same lines. Training runs in two
# processes; the same command continues an interrupted run.
set -euo pipefail
run=${1:-en-de} published=${2:-} teachers=${TEACHERS:-1}
[ -z "$published" ] || published=$(cd "$published" && pwd) # relative to the folder of the user
cd "$(dirname "${BASH_SOURCE[0]}")/.."

train() { # DIRECTION
  torchrun --nproc-per-node 2 -m transformer_mt train --config "configs/multi30k-$1.yaml"
}

diversify() { # DIRECTION; as many real pairs as synthetic ones, and about as many updates for any number of TEACHERS
  torchrun --nproc-per-node 2 -m transformer_mt.cli.main synthesize diversify --config "configs/multi30k-$1.yaml" \
    --set "synthesis.teachers=$teachers" --set "synthesis.real_weight=$((2 * teachers))" \
    --set "synthesis.epochs=$(((28 + teachers - 1) / teachers))"
}

case $run in
  en-de-diversified | de-en-diversified) diversify "${run%-diversified}" ;;
  en-de | de-en) train "$run" ;;
  *) echo "usage: $0 [en-de|de-en|en-de-diversified|de-en-diversified] [PUBLISHED]" >&2 && exit 2 ;;
esac
direction=${run%-diversified} folder=runs/multi30k-${run/%diversified/diversify}
for set in test_2016_flickr test_2017_flickr; do
  references=(--tokenized)
  if [ -n "$published" ]; then
    file=$published/$set.lc.norm.tok.${direction#*-}
    [ -f "$file" ] || file=$file.gz
    references+=(--tokenized-reference "$file")
  fi
  for beam in 1 5; do
    echo "== $run $set beam $beam"
    tmt evaluate --bleu --model "$folder/model" --split "$set" --beam "$beam" "${references[@]}" | sed -n 1,12p
  done
done
