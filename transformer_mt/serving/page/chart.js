// Line charts of training: axes with round numbers, and the values under the pointer.

import { h, s, whole } from "./dom.js";

const HEIGHT = 260;
const [LEFT, RIGHT, TOP, BOTTOM] = [46, 14, 14, 30];

/** Round numbers between two values, about `count` of them. */
export function ticks(low, high, count = 5) {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= raw - 1e-12);
  const found = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + 1e-9; value += step) found.push(Number(value.toPrecision(12)));
  return found;
}

/** The highest value to show: the losses of the first updates would flatten the rest. */
export function ceiling(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const usual = sorted[Math.floor(0.95 * (sorted.length - 1))] ?? 1;
  const highest = sorted.at(-1) ?? 1;
  return sorted.length > 20 && highest > 1.5 * usual ? 1.3 * usual : highest;
}

/**
 * A chart. curves: { name, kind, points: [[x, y], ...], dots }, kind is a class.
 * width: pixels that it may take; top: the largest possible value.
 */
export function chart({ title, curves, width, top = Infinity, digits = 2 }) {
  const WIDTH = Math.max(280, Math.min(560, width));
  const all = curves.flatMap((one) => one.points);
  const figure = h("figure", { class: "chart" }, h("figcaption", {}, h("b", {}, title), " ", curves.map((one) => h("span", { class: `swatch ${one.kind}` }, one.name))));
  if (!all.length) {
    figure.append(h("p", { class: "quiet" }, "Nothing is measured yet."));
    return figure;
  }
  const last = Math.max(1, ...all.map(([x]) => x));
  const high = Math.min(1.04 * top, 1.05 * ceiling(all.map(([, y]) => y))) || 1;
  const x = (value) => LEFT + (value / last) * (WIDTH - LEFT - RIGHT);
  const y = (value) => HEIGHT - BOTTOM - (Math.min(value, high) / high) * (HEIGHT - TOP - BOTTOM);
  const svg = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}: ${curves.map((one) => `${one.name} ${one.points.length ? one.points.at(-1)[1].toFixed(digits) : "not yet"}`).join(", ")} at update ${whole(last)}. The table of all validations has their values.` });
  for (const value of ticks(0, high)) svg.append(s("path", { class: "grid", d: `M${LEFT} ${y(value)}H${WIDTH - RIGHT}` }), s("text", { class: "caption", x: LEFT - 6, y: y(value), "text-anchor": "end", "dominant-baseline": "central" }, String(value)));
  for (const value of ticks(0, last, 4)) svg.append(s("text", { class: "caption", x: x(value), y: HEIGHT - 10, "text-anchor": value === 0 ? "start" : x(value) > WIDTH - 40 ? "end" : "middle" }, whole(value)));
  for (const one of curves) {
    if (one.points.length) svg.append(s("path", { class: `curve ${one.kind}`, d: `M${one.points.map(([a, b]) => `${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("L")}` }));
    if (one.dots && one.points.length <= 60) svg.append(...one.points.map(([a, b]) => s("circle", { class: one.kind, cx: x(a), cy: y(b), r: 3.2 })));
  }
  const read = h("p", { class: "read small quiet" }, `update 0 to ${whole(last)}`);
  const rule = s("path", { class: "rule", d: "" });
  svg.append(rule);
  const point = (event) => {
    const box = svg.getBoundingClientRect();
    const wanted = ((((event.clientX - box.left) / box.width) * WIDTH - LEFT) / (WIDTH - LEFT - RIGHT)) * last;
    const near = curves.filter((one) => one.points.length).map((one) => [one, one.points.reduce((best, each) => (Math.abs(each[0] - wanted) < Math.abs(best[0] - wanted) ? each : best))]);
    rule.setAttribute("d", `M${x(near[0][1][0])} ${TOP}V${HEIGHT - BOTTOM}`);
    read.textContent = near.map(([one, [step, value]]) => `${one.name} ${value.toFixed(digits)} (update ${whole(step)})`).join("   ");
  };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerleave", () => {
    rule.setAttribute("d", "");
    read.textContent = `update 0 to ${whole(last)}`;
  });
  figure.append(svg, read);
  return figure;
}
