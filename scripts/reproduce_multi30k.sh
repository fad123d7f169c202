#!/usr/bin/env bash
# Trains configs/multi30k-en-de.yaml (or the direction given) and reports both yardsticks on both test sets: sacreBLEU on
# cased, detokenised text (13a), and lower-cased Moses tokens as in papers; each greedy and with a beam of 5.
#
#   scripts/reproduce_multi30k.sh [en-de|de-en|en-de-diversified|de-en-diversified] [PUBLISHED]
#
# diversified: after "Data Diversification" (Nguyen et al. 2020), a model of the same size, trained with as many updates, on
# more than the corpus: the en-de model translates the English training sentences, the de-en model the German ones, and a
# third model trains on the corpus, twice, and both translations. No text and no model comes from elsewhere; the three
# trainings and the translating take two hours and a quarter on two cores.
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
