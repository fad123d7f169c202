#!/usr/bin/env bash
# Trains configs/aihub-ko-en.yaml on the AI Hub workbooks in data/aihub, in both directions, with SentencePiece and with
# words (soynlp for Korean, spaCy for English). Prints BLEU and chrF on the test split, which is the same for all.
#
#   scripts/reproduce_aihub.sh [NAME...] [-- OPTION...]
#
# NAMEs: pieces-ko-en words-ko-en pieces-en-ko words-en-ko (the default), diversified-ko-en diversified-en-ko. OPTIONs are
# passed to tmt, for example: -- --set runtime.threads=1. An interrupted run goes on. A folder in runs/ that has a run with
# other settings is refused; PREFIX=NAME (default aihub) gives all runs other names.
#
# diversified: `tmt synthesize diversify` (docs/synthesis.md). TEACHERS models of each direction (1 to 4, default 2), which
# differ by their seed, translate the training sentences of their source language, and a model of the same size is trained
# on the corpus and all translations; half of what it sees are real pairs. Both directions have the same teachers.
#
# AI Hub requires a registration at aihub.or.kr. The figures of docs/results.md are of two workbooks with 21,500 pairs.
source "$(dirname "${BASH_SOURCE[0]}")/names.sh"
teachers=${TEACHERS:-2} prefix=${PREFIX:-aihub}
[[ $teachers =~ ^[1-4]$ ]] || { echo "$0: TEACHERS must be 1 to 4, not $teachers" >&2 && exit 2; }
for run in $names; do
  [[ $run =~ ^(pieces|words|diversified)-(ko-en|en-ko)$ ]] && continue
  echo "$0: unknown name $run; use pieces-, words- or diversified- with ko-en or en-ko" >&2 && exit 2
done

pieces() { # RUN DIRECTION SEED [OPTION...]
  local run=$1 direction=$2 seed=$3
  shift 3
  tmt train --config configs/aihub-ko-en.yaml "$@" --set name="$run" --set seed="$seed" \
    --set data.source="${direction%-*}" --set data.target="${direction#*-}"
}

for run in ${names:-pieces-ko-en words-ko-en pieces-en-ko words-en-ko}; do
  direction=${run#*-} folder=runs/$prefix-$run
  echo "== $run"
  case $run in
    pieces-*) pieces "$prefix-$run" "$direction" 1 "$@" ;;
    words-*)
      ko='{kind: soynlp, min_frequency: 2}' en='{kind: spacy, min_frequency: 2}'
      source=${direction%-*} target=${direction#*-}
      pieces "$prefix-$run" "$direction" 1 "$@" --set "tokenizer={source: ${!source}, target: ${!target}}"
      ;;
    diversified-*)
      models=
      for teacher in ko-en en-ko; do
        for seed in $(seq "$teachers"); do
          name=$prefix-pieces-$teacher
          [ "$seed" = 1 ] || name+=-$seed
          pieces "$name" $teacher $seed "$@"
          models+=${models:+, }runs/$name
        done
      done
      tmt synthesize diversify --config configs/aihub-ko-en.yaml "$@" --set name="$prefix-$direction-$teachers" \
        --set data.source="${direction%-*}" --set data.target="${direction#*-}" --set "synthesis.models=[$models]" \
        --set "synthesis.real_weight=$((2 * teachers))" --set "synthesis.epochs=$((10 - 2 * teachers))"
      folder=runs/$prefix-$direction-$teachers-diversify
      ;;
  esac
  tmt evaluate --bleu --chrf --model "$folder/model"
done
