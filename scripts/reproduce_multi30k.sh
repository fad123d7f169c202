#!/usr/bin/env bash
# Trains configs/multi30k-en-de.yaml (or another direction) and prints two kinds of BLEU on both test sets: sacreBLEU on
# cased, detokenised text (13a), and on lower-cased Moses tokens as in papers; each greedy and with beam 5.
#
#   scripts/reproduce_multi30k.sh [en-de|de-en|en-de-diversified|de-en-diversified] [PUBLISHED]
#
# diversified: "Data Diversification" (Nguyen et al. 2020). The en-de model translates the English training sentences, the
# de-en model the German ones, and a third model of the same size is trained with the same number of updates on both
# translations and twice the corpus. It uses no other text and no other model. The three trainings and the translations
# take two hours and a quarter on two cores.
#
# PUBLISHED is a folder with the official NAME.lc.norm.tok.LANG files (or .gz; data/task1/tok of
# github.com/multi30k/dataset). Without it, `tmt evaluate --tokenized` makes them, with the same lines. Training runs in two
# processes; the same command continues an interrupted run.
set -euo pipefail
run=${1:-en-de} published=${2:-}
[ -z "$published" ] || published=$(cd "$published" && pwd) # relative to the folder of the user
cd "$(dirname "${BASH_SOURCE[0]}")/.."

train() { # DIRECTION OPTION...
  torchrun --nproc-per-node 2 -m transformer_mt.cli.main train --config "configs/multi30k-$1.yaml" "${@:2}"
}

translated() { # RUN LANGUAGE FILE: translates the training sentences of a language, unless FILE is newer than the model
  [ "$3" -nt "runs/$1/model/model.safetensors" ] ||
    tmt translate --model "runs/$1/model" --input "data/multi30k/train.$2.gz" --output "$3"
}

train_diversified() { # DIRECTION
  local source=${1%-*} target=${1#*-} folder=data/diversified corpora="{kind: multi30k, weight: 2}" pair
  train en-de
  train de-en
  mkdir -p "$folder"
  translated multi30k-en-de en "$folder/en.de"
  translated multi30k-de-en de "$folder/de.en"
  for pair in "source: data/multi30k/train.$source.gz, target: $folder/$source.$target" \
    "source: $folder/$target.$source, target: data/multi30k/train.$target.gz"; do
    corpora+=", {kind: text, files: {$pair}, split: {validation: 0, test: 0}}"
  done
  train "$1" --set "name=multi30k-$1-diversified" --set "data.corpus=[$corpora]" --set training.max_epochs=16
}

case $run in
  en-de-diversified | de-en-diversified) train_diversified "${run%-diversified}" ;;
  en-de | de-en) train "$run" ;;
  *) echo "usage: $0 [en-de|de-en|en-de-diversified|de-en-diversified] [PUBLISHED]" >&2 && exit 2 ;;
esac
direction=${run%-diversified}
for set in test_2016_flickr test_2017_flickr; do
  references=(--tokenized)
  if [ -n "$published" ]; then
    file=$published/$set.lc.norm.tok.${direction#*-}
    [ -f "$file" ] || file=$file.gz
    references+=(--tokenized-reference "$file")
  fi
  for beam in 1 5; do
    echo "== $run $set beam $beam"
    tmt evaluate --bleu --model "runs/multi30k-$run/model" --split "$set" --beam "$beam" "${references[@]}" | sed -n 1,12p
  done
done
