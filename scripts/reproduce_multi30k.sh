#!/usr/bin/env bash
# Trains configs/multi30k-en-de.yaml (or the direction given) and reports both yardsticks on both test sets: sacreBLEU on
# cased, detokenised text (13a), and lower-cased Moses tokens as in papers; each greedy and with a beam of 5.
#
#   scripts/reproduce_multi30k.sh [en-de|de-en|en-de-diversified|de-en-diversified] [PUBLISHED]
#
# Diversified: after "Data Diversification" (Nguyen et al. 2020), a model of the same size, trained as long, on more than
# the corpus: two models of this direction (seeds 1 and 2) translate the training sources, one of the other direction the
# training targets, and a fourth model trains on the corpus, twice, and the three translations. No other text is used;
# all four trainings and the translating take three hours.
#
# PUBLISHED is a folder with the official NAME.lc.norm.tok.LANG files (or .gz; data/task1/tok of github.com/multi30k/dataset);
# without it the references are brought into that form by `tmt evaluate --tokenized`, which gives the same lines. Two processes
# train; a run that was interrupted goes on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
run=${1:-en-de} published=${2:-}
direction=${run%-diversified}
source=${direction%-*} target=${direction#*-}

train() { # DIRECTION OPTION...
  torchrun --nproc-per-node 2 -m transformer_mt.cli.main train --config "configs/multi30k-$1.yaml" "${@:2}"
}

translated() { # RUN LANGUAGE FILE: the training sentences of a language, by a run's model; once
  [ -f "$3" ] || tmt translate --model "runs/$1/model" --input "data/multi30k/train.$2.gz" --output "$3"
}

train_diversified() {
  local own=multi30k-$direction other=multi30k-$target-$source folder=data/diversified/$direction
  train "$direction"
  train "$direction" --set seed=2 --set name="$own-2"
  train "$target-$source"
  mkdir -p "$folder"
  translated "$own" "$source" "$folder/1.$target"
  translated "$own-2" "$source" "$folder/2.$target"
  translated "$other" "$target" "$folder/1.$source"
  local corpora="{kind: multi30k, weight: 2}" pair whole="split: {validation: 0, test: 0}"
  for pair in "data/multi30k/train.$source.gz, target: $folder/1.$target" \
    "data/multi30k/train.$source.gz, target: $folder/2.$target" \
    "$folder/1.$source, target: data/multi30k/train.$target.gz"; do
    corpora+=", {kind: text, files: {source: $pair}, $whole}"
  done
  train "$direction" --set name="$own-diversified" --set data.corpus="[$corpora]" --set training.max_epochs=14
}

if [ "$run" = "$direction" ]; then train "$direction"; else train_diversified; fi
for set in test_2016_flickr test_2017_flickr; do
  references=(--tokenized)
  if [ -n "$published" ]; then
    file=$published/$set.lc.norm.tok.$target
    [ -f "$file" ] || file=$file.gz
    references+=(--tokenized-reference "$file")
  fi
  for beam in 1 5; do
    echo "== $run $set beam $beam"
    tmt evaluate --bleu --model "runs/multi30k-$run/model" --split "$set" --beam "$beam" "${references[@]}" | sed -n 1,12p
  done
done
