#!/usr/bin/env bash
# Trains configs/multi30k-en-de.yaml (or the direction given) and reports both yardsticks on both test sets: sacreBLEU on
# cased, detokenised text (13a), and lower-cased Moses tokens as in papers; each greedy and with a beam of 5.
#
#   scripts/reproduce_multi30k.sh [en-de|de-en|en-de-diversified] [PUBLISHED]
#
# en-de-diversified: after "Data Diversification" (Nguyen et al. 2020), a model of the same size, trained with as many
# updates, on more than the corpus: two English-German models (seeds 1 and 2) translate the training sources, a
# German-English one the training targets, and a fourth model trains on the corpus, twice, and the three translations. No
# text and no model comes from elsewhere; the four trainings and the translating take three hours on two cores.
#
# PUBLISHED is a folder with the official NAME.lc.norm.tok.LANG files (or .gz; data/task1/tok of github.com/multi30k/dataset);
# without it the references are brought into that form by `tmt evaluate --tokenized`, which gives the same lines. Two processes
# train; a run that was interrupted goes on.
set -euo pipefail
run=${1:-en-de} published=${2:-}
[ -z "$published" ] || published=$(cd "$published" && pwd) # from where the user stands
cd "$(dirname "${BASH_SOURCE[0]}")/.."

train() { # DIRECTION OPTION...
  torchrun --nproc-per-node 2 -m transformer_mt.cli.main train --config "configs/multi30k-$1.yaml" "${@:2}"
}

translated() { # RUN LANGUAGE FILE: the training sentences of a language by a run's model; anew if it was trained anew
  [ "$3" -nt "runs/$1/model/model.safetensors" ] ||
    tmt translate --model "runs/$1/model" --input "data/multi30k/train.$2.gz" --output "$3"
}

train_diversified() {
  local folder=data/diversified corpora="{kind: multi30k, weight: 2}" pair
  train en-de
  train en-de --set seed=2 --set name=multi30k-en-de-2
  train de-en
  mkdir -p "$folder"
  translated multi30k-en-de en "$folder/1.de"
  translated multi30k-en-de-2 en "$folder/2.de"
  translated multi30k-de-en de "$folder/1.en"
  for pair in "data/multi30k/train.en.gz, target: $folder/1.de" "data/multi30k/train.en.gz, target: $folder/2.de" \
    "$folder/1.en, target: data/multi30k/train.de.gz"; do
    corpora+=", {kind: text, files: {source: $pair}, split: {validation: 0, test: 0}}"
  done
  train en-de --set name=multi30k-en-de-diversified --set data.corpus="[$corpora]" --set training.max_epochs=14
}

case $run in
  en-de-diversified) train_diversified ;;
  en-de | de-en) train "$run" ;;
  *) echo "usage: $0 [en-de|de-en|en-de-diversified] [PUBLISHED]" >&2 && exit 2 ;;
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
