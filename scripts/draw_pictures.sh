#!/usr/bin/env bash
# Draws the pictures of the documentation, light and dark, into docs/pictures from runs/quickstart, which
# ./scripts/quickstart trains. The same run gives the same files, byte for byte.
#
#   ./scripts/draw_pictures.sh              TMT="python -m transformer_mt.cli.main" names another tmt
#
# terminal.svg is a recording: python scripts/record_terminal.py docs/pictures/terminal.svg
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

read -ra tmt <<< "${TMT:-tmt}"
run=runs/quickstart
pictures=docs/pictures
sentence="실례지만 백화점에서 램프를 몇 개 샀습니까?"
mkdir -p "$pictures"

for theme in light dark; do
  end=.svg
  [[ $theme == light ]] || end=-dark.svg
  draw() { "${tmt[@]}" "$@" --theme "$theme"; }

  draw plot --run $run --output "$pictures/learning-curves$end"
  draw plot --config configs/quickstart.yaml --output "$pictures/data$end"
  draw evaluate --bleu --model $run --plot "$pictures/score-by-length$end" > /dev/null
  for name in encoder=encoder.2 decoder=decoder.2 cross=cross.2 mean=cross.2.mean; do
    file=$pictures/attention-${name%=*}$end
    draw translate --model $run "$sentence" --attention "$file" --attention-of "${name#*=}"
  done
done
