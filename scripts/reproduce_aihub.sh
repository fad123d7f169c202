#!/usr/bin/env bash
# Trains configs/aihub-ko-en.yaml on the AI Hub workbooks in data/aihub: SentencePiece against words (soynlp for Korean,
# spaCy for English), in both directions, and reports BLEU and chrF on the test split, the same in all four.
#
#   scripts/reproduce_aihub.sh [pieces-ko-en words-ko-en pieces-en-ko words-en-ko] [-- OPTION...]     default: all four
#
# OPTIONs are `tmt train`'s, as in -- --set runtime.threads=1
#
# AI Hub's corpus of 115,000 pairs needs a sign-up at aihub.or.kr; fewer workbooks train on fewer pairs.
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
