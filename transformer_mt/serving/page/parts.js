// Pieces that several parts of the view "Inside" share.

import { h, signed } from "./dom.js";

/** The heading of a part, with the place in the paper, and what it explains. */
export const heading = (text, section, ...explained) => [
  h("h2", { tabindex: -1 }, text, " ", h("small", { class: "quiet" }, section)),
  h("p", { class: "explained" }, ...explained),
];

/** A probability in few letters. */
export function percent(probability) {
  if (probability >= 0.9995) return "100 %";
  if (probability >= 0.0995) return `${(100 * probability).toFixed(0)} %`;
  return probability >= 0.001 ? `${(100 * probability).toFixed(1)} %` : "< 0.1 %";
}

export const logarithm = (value) => signed(value, 2);
