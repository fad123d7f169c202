// The positional encodings of this very model: a heat map, and how alike two positions are.

import { askJson, Failure } from "./api.js";
import { raster } from "./colours.js";
import { h, s } from "./dom.js";
import { heading } from "./parts.js";

const NAMES = { sinusoidal: "sines and cosines, as in the paper", learned: "a vector for each position, which this model has learned" };
const known = new Map(); // by the name of the model
let at = 8; // the position that is compared with the others

export async function draw(place, model, seen) {
  try {
    if (!known.has(model.name)) known.set(model.name, askJson(`/v1/models/${encodeURIComponent(model.name)}/positions`));
    paint(place, await known.get(model.name), seen);
  } catch (error) {
    known.delete(model.name);
    if (!(error instanceof Failure)) throw error;
    place.replaceChildren(h("p", { class: "problem" }, error.message));
  }
}

function paint(place, found, seen) {
  const { kind, values, width } = found;
  if (!values) {
    place.replaceChildren(...heading("Positions", "section 3.5", `This model has no table of positions. It has rotary positions: inside self-attention, each pair of the ${width} coordinates of queries and keys is rotated by an angle that grows with the position, so that their product depends on the distance of two tokens.`));
    return;
  }
  const reach = kind === "sinusoidal" ? 1 : Math.max(...values.flat().map(Math.abs), 1e-6);
  const canvas = h("canvas", { class: "heat", role: "img", "aria-label": `Encodings of ${values.length} positions with ${width} coordinates` });
  raster(canvas, values, (value) => (value / reach + 1) / 2, true);
  const read = h("p", { class: "read", "aria-live": "polite" });
  const range = h("input", { type: "range", min: 0, max: values.length - 1, value: Math.min(at, values.length - 1), on: { input: () => compare(Number(range.value)) } });
  const chart = h("div", {});
  const line = h("div", { class: "line" });
  const compare = (position) => {
    at = position;
    range.value = String(position);
    const products = values.map((row) => row.reduce((sum, value, index) => sum + value * values[position][index], 0));
    chart.replaceChildren(likeness(products, position));
    line.style.setProperty("--at", String((position + 0.5) / values.length));
    const token = seen.source_pieces[position]?.token;
    read.textContent = `Position ${position}${token ? `, where this sentence has “${token.replaceAll("▁", "␣")}”` : ""}`;
  };
  const point = (event) => {
    const box = canvas.getBoundingClientRect();
    const y = Math.min(values.length - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * values.length)));
    const x = Math.min(width - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * width)));
    compare(y);
    read.textContent += `; coordinate ${x} is ${values[y][x].toFixed(2)}`;
  };
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerdown", point);
  place.replaceChildren(
    ...heading("Positions", "section 3.5", `Attention has no order of its own. This model adds to each embedding a vector that depends on the position only: ${NAMES[kind]}. Each row is a position, each column one of ${width} coordinates.`),
    h("div", { class: "positions" }, h("div", {}, h("div", { class: "map" }, canvas, line), h("p", { class: "key small" }, h("span", { class: "scale" }), `−${reach.toFixed(reach < 1 ? 2 : 0)} to ${reach.toFixed(reach < 1 ? 2 : 0)}`)), h("div", {}, h("h3", {}, "How alike are two positions?"), h("label", { class: "quiet" }, "Position ", range), chart, read, h("p", { class: "quiet small" }, kind === "sinusoidal" ? "The dot product of the chosen position with all others: highest with itself, and lower with distance. A head that looks at neighbours can use this." : "The dot product of the chosen position with all others. This model learned its positions, so the curve may have any form; positions that no training sentence reached stay random."))),
  );
  compare(Math.min(at, values.length - 1));
}

function likeness(products, position) {
  const [width, height] = [360, 150];
  const [low, high] = [Math.min(0, ...products), Math.max(...products)];
  const x = (index) => 8 + (index / Math.max(1, products.length - 1)) * (width - 16);
  const y = (value) => height - 20 - ((value - low) / (high - low || 1)) * (height - 32);
  return s(
    "svg",
    { class: "likeness", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Dot products of position ${position} with positions 0 to ${products.length - 1}` },
    s("path", { class: "axis", d: `M8 ${y(0)}H${width - 8}` }),
    s("path", { class: "curve", d: `M${products.map((value, index) => `${x(index).toFixed(1)} ${y(value).toFixed(1)}`).join("L")}` }),
    s("circle", { cx: x(position), cy: y(products[position]), r: 4 }),
    s("text", { class: "caption", x: 8, y: height - 4 }, "0"),
    s("text", { class: "caption", x: width - 8, y: height - 4, "text-anchor": "end" }, `position ${products.length - 1}`),
  );
}
