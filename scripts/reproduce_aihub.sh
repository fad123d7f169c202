#!/usr/bin/env bash
# Trains configs/aihub-ko-en.yaml on the AI Hub workbooks in data/aihub, in both directions, with SentencePiece and with
# words (soynlp for Korean, spaCy for English). Prints BLEU and chrF on the test split, which is the same for all four.
#
#   scripts/reproduce_aihub.sh [pieces-ko-en words-ko-en pieces-en-ko words-en-ko] [-- OPTION...]     default: all four
#
# OPTIONs are passed to `tmt train`, for example: -- --set runtime.threads=1
#
# AI Hub requires a registration at aihub.or.kr. The figures of docs/results.md are of two workbooks with 21,500 pairs.
source "$(dirname "${BASH_SOURCE[0]}")/names.sh"

for run in ${names:-pieces-ko-en words-ko-en pieces-en-ko words-en-ko}; do
  direction=${run#*-}
  source=${direction%-*} target=${direction#*-}
  changes=(--set name="aihub-$run" --set data.source="$source" --set data.target="$target")
  if [ "${run%%-*}" = words ]; then
    ko='{kind: soynlp, min_frequency: 2}' en='{kind: spacy, min_frequency: 2}'
    changes+=(--set "tokenizer={source: ${!source}, target: ${!target}}")
  fi
  echo "== $run"
  tmt train --config configs/aihub-ko-en.yaml "${changes[@]}" "$@"
  tmt evaluate --bleu --chrf --model "runs/aihub-$run/model"
done
