#!/usr/bin/env bash
# Compares back-translation with training on real pairs alone: 2,000 German-English pairs of Multi30k, and 6,000 other
# English captions of its training split. Both models get 500 updates. Prints the scores on test_2016_flickr.
#
#   scripts/measure_synthesis.sh FOLDER [MULTI30K]
#
# FOLDER gets the files and runs; MULTI30K has the .gz files (default: data/multi30k). The same command goes on.
set -euo pipefail
folder=${1:?a folder for files and runs} multi30k=$(realpath "${2:-data/multi30k}")
mkdir -p "$folder" && cd "$folder"
for language in de en; do
  zcat "$multi30k/train.$language.gz" | sed -n 1,2000p > "small.$language"
done
zcat "$multi30k/train.en.gz" | sed -n 2001,8000p > other.en
cat > small.yaml <<YAML
name: small
data:
  source: de
  target: en
  corpus:
    kind: text
    train: {source: small.de, target: small.en}
    validation: {source: $multi30k/val.de.gz, target: $multi30k/val.en.gz}
    test: {source: $multi30k/test_2016_flickr.de.gz, target: $multi30k/test_2016_flickr.en.gz}
tokenizer: {kind: sentencepiece, algorithm: bpe, vocab_size: 2000, shared: true}
model: {d_model: 128, n_heads: 4, d_ff: 256, encoder_layers: 3, decoder_layers: 3, positions: rotary, dropout: 0.2, tie_embeddings: all}
training:
  optimizer: muon
  weight_decay: 0.1
  batch_tokens: 2048
  schedule: cosine
  learning_rate: 0.01
  warmup_steps: 50
  max_steps: 500
  validate_every: 50
runtime: {precision: fast}
decoding: {beam: 5, length_penalty: 1.0}
YAML
tmt train --config small.yaml
tmt synthesize back --config small.yaml --set 'synthesis.text=[other.en]'
