// Words as the server counts them: what stands between white space, in Python's sense.

const WORD = /[^\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g;

export const words = (text) => text.match(WORD) ?? [];

/** The text in pieces: words (with their number) and the white space between them. */
export function* pieces(text) {
  let end = 0;
  let number = 0;
  for (const found of text.matchAll(WORD)) {
    if (found.index > end) yield { space: text.slice(end, found.index) };
    yield { word: found[0], number: number++ };
    end = found.index + found[0].length;
  }
  if (end < text.length) yield { space: text.slice(end) };
}

/** The lines of an answer with the number of their first words on both sides, and what stands before and after each. */
export function placed(answer, earlier = []) {
  const lines = [];
  const chosen = new Map(); // of each source, the texts that are shown now, line by line
  for (const line of earlier) chosen.set(line.source, [...(chosen.get(line.source) ?? []), line.hypotheses?.[line.chosen]?.text]);
  let [source, end] = [0, 0];
  for (const line of answer.lines) {
    const at = answer.text.indexOf(line.text, end);
    const start = at < 0 ? end : at;
    const before = chosen.get(line.source)?.shift();
    const same = (line.hypotheses ?? []).findIndex((one) => one.text === before);
    lines.push({ ...line, before: answer.text.slice(end, start), sourceWord: source, chosen: Math.max(same, 0) });
    end = start + line.text.length;
    source += words(line.source).length;
  }
  return { lines, after: answer.text.slice(end) };
}
