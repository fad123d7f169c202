// Attention: small maps of all heads, one of them large, and lines from a token to what it attends to.

import { ofWeight, raster, shade } from "./colours.js";
import { h, piece, rove, s } from "./dom.js";
import { heading } from "./parts.js";

const NAMES = {
  encoder: ["Encoder", "the sentence looks at itself"],
  cross: ["Decoder to encoder", "the translation looks at the sentence"],
  decoder: ["Decoder", "the translation looks at what is written so far"],
};
let chosen = null; // { kind, layer, head }
let followed = null; // the row whose lines are shown; null: all

/** The attributes of the tokens of a block: which language the rows are in, and which the columns. */
const rowOf = (block, model) => ({ lang: block.kind === "encoder" ? model.source : model.target });
const columnOf = (block, model) => ({ lang: block.kind === "decoder" ? model.target : model.source });

/** Draws this part. The head that was chosen stays chosen. */
export function draw(place, seen, model) {
  const blocks = seen.attention;
  if (!blocks.some((one) => chosen?.kind === one.kind && chosen.layer === one.layer && chosen.head <= one.heads.length)) chosen = first(blocks);
  followed = null;
  const large = h("div", { class: "large" });
  const maps = h("div", { class: "maps", role: "radiogroup", "aria-label": "Heads" });
  const show = () => {
    for (const button of maps.querySelectorAll("button")) {
      const is = button.dataset.name === nameOf(chosen);
      button.setAttribute("aria-checked", String(is));
      button.tabIndex = is ? 0 : -1;
    }
    drawLarge(large, blocks.find((one) => one.kind === chosen.kind && one.layer === chosen.layer), model);
  };
  for (const kind of Object.keys(NAMES)) maps.append(group(kind, blocks.filter((one) => one.kind === kind), (which) => { chosen = which; followed = null; show(); }));
  rove(maps, "button", { columns: () => blocks[0].heads.length + 1 });
  place.replaceChildren(
    ...heading("Attention", "section 3.2", "Each head gives every token weights that add up to 1: how much it takes from each other token. Choose a head, then a token to follow. The title says what the head mostly does in this sentence."),
    h("div", { class: "attention" }, maps, large),
  );
  show();
}

/** Of the last layer of cross-attention, the head that looks least at the end token. */
function first(blocks) {
  const block = blocks.filter((one) => one.kind === "cross").at(-1);
  const ends = block.heads.map((map) => map.reduce((sum, row) => sum + row.at(-1), 0));
  return { kind: "cross", layer: block.layer, head: ends.indexOf(Math.min(...ends)) };
}

const nameOf = ({ kind, layer, head }) => `${kind} ${layer} ${head}`;

/** The weights of a head; the one after the last is the mean of all. */
function weights(block, head) {
  if (head < block.heads.length) return block.heads[head];
  return block.heads[0].map((row, y) => row.map((_, x) => block.heads.reduce((sum, one) => sum + one[y][x], 0) / block.heads.length));
}

const headName = (block, head) => (head < block.heads.length ? `head ${head + 1}` : "mean");

function group(kind, blocks, choose) {
  const [title, explained] = NAMES[kind];
  const rows = blocks.map((block) => {
    const buttons = [...block.heads, null].map((_, head) => {
      const canvas = h("canvas", { "aria-hidden": "true" });
      raster(canvas, weights(block, head), ofWeight);
      const habit = habitOf(block, head);
      return h(
        "button",
        { role: "radio", class: "map", "aria-label": `${title}, layer ${block.layer}, ${headName(block, head)}: ${habit}`, title: `Layer ${block.layer}, ${headName(block, head)}: ${habit}`, data: { name: nameOf({ ...block, head }) }, on: { click: () => choose({ kind, layer: block.layer, head }) } },
        canvas,
        h("span", { "aria-hidden": "true" }, headName(block, head)),
      );
    });
    return h("div", { class: "layer" }, h("span", { class: "quiet" }, `Layer ${block.layer}`), h("div", { class: "heads" }, buttons));
  });
  return h("div", { class: "kind" }, h("h3", {}, title, h("small", { class: "quiet" }, ` ${explained}`)), rows);
}

/** What a head mostly does in this sentence, in a few words. */
export function habitOf(block, head) {
  const map = weights(block, head);
  const last = map[0].length - 1;
  const share = (place) => {
    let [sum, count] = [0, 0];
    map.forEach((row, y) => {
      const x = place(y);
      if (x < 0 || x > last) return;
      sum += row[x];
      count += 1;
    });
    return count ? sum / count : 0;
  };
  const habits = [];
  if (block.kind !== "cross") {
    habits.push([share((y) => y), "its own place"], [share((y) => y - 1), "the token before"]);
    if (block.kind === "encoder") habits.push([share((y) => y + 1), "the token after"]);
  }
  if (block.kind === "decoder") habits.push([share((y) => (y > 0 ? 0 : -1)), "the start token"]);
  else habits.push([share(() => last), "the end token"]);
  const [most, name] = habits.reduce((best, one) => (one[0] > best[0] ? one : best));
  if (most >= 0.4) return `${name} (${Math.round(100 * most)} %)`;
  const sharp = map.reduce((sum, row) => sum + Math.max(...row), 0) / map.length;
  return sharp >= 0.6 ? "one token at a time" : sharp >= 0.35 ? "a few tokens" : "many tokens";
}

function drawLarge(place, block, model) {
  const map = weights(block, chosen.head);
  const read = h("p", { class: "read", "aria-live": "polite" });
  const rest = `${NAMES[block.kind][0]}, layer ${block.layer}, ${headName(block, chosen.head)}`;
  const tell = (y, x) => {
    if (y === null) read.replaceChildren(h("span", { class: "quiet" }, ...(followed === null ? ["Point at a cell, or choose a token."] : best(map, block, model, followed))));
    else read.replaceChildren(h("b", rowOf(block, model), piece(block.rows[y])), " → ", h("b", columnOf(block, model), piece(block.columns[x])), ` ${map[y][x].toFixed(3)}`);
  };
  const again = () => {
    matrix.replaceWith((matrix = drawMatrix(block, map, model, rest, tell, follow)));
    lines.replaceWith((lines = drawLines(block, map, model, follow)));
    tell(null);
  };
  const follow = (y) => {
    followed = y === followed ? null : y;
    again();
  };
  let matrix = drawMatrix(block, map, model, rest, tell, follow);
  let lines = drawLines(block, map, model, follow);
  tell(null);
  const isOpen = place.querySelector("details")?.open ?? false;
  place.replaceChildren(
    h("h3", {}, rest, h("small", { class: "quiet" }, ` mostly ${habitOf(block, chosen.head)}`)),
    h("div", { class: "pair" }, h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "The map of this head" }, matrix), h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Lines of this head" }, lines)),
    read,
    h("p", { class: "key small" }, s("svg", { class: "weights", width: 250, height: 34, role: "img", "aria-label": "Colours of the weights 0.01, 0.1, 0.25, 0.5 and 1" }, [0.01, 0.1, 0.25, 0.5, 1].map((weight, index) => [s("rect", { x: index * 50, y: 1, width: 46, height: 13, fill: shade(weight) }), s("text", { class: "caption", x: index * 50 + 23, y: 29, "text-anchor": "middle" }, String(weight))]))),
    h("details", { open: isOpen }, h("summary", {}, "Weights as a table"), h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Weights as a table" }, drawTable(block, map, model, rest))),
  );
}

/** What one would see by pointing at each cell, for those who do not point. */
function drawTable(block, map, model, label) {
  const row = (token, y) => h("tr", {}, h("th", { scope: "row", ...rowOf(block, model) }, piece(token)), map[y].map((weight) => h("td", { class: "number" }, weight.toFixed(3))));
  const heads = block.columns.map((token) => h("th", { scope: "col", class: "number", ...columnOf(block, model) }, piece(token)));
  return h("table", {}, h("caption", { class: "sr" }, `${label}: how much each row looks at each column`), h("thead", {}, h("tr", {}, h("td", {}), heads)), h("tbody", {}, block.rows.map(row)));
}

/** The strongest weights of a row, as the parts of a sentence. */
function best(map, block, model, y) {
  const order = map[y].map((weight, x) => [weight, x]).sort(([a], [b]) => b - a).slice(0, 3).filter(([weight]) => weight >= 0.02);
  const found = order.flatMap(([weight, x], place) => [place ? ", " : "", h("span", columnOf(block, model), piece(block.columns[x])), ` (${weight.toFixed(2)})`]);
  return [h("span", rowOf(block, model), piece(block.rows[y])), " looks at ", ...found];
}

const cut = (token, most = 9) => (token.length > most ? `${token.slice(0, most - 1)}…` : token);

function drawMatrix(block, map, model, label, tell, follow) {
  const [rows, columns] = [block.rows.length, block.columns.length];
  const size = Math.max(13, Math.min(25, Math.floor(280 / columns), Math.floor(480 / rows)));
  const [left, top, right] = [76, 74, 30];
  const svg = s("svg", { class: "matrix", width: left + columns * size + right, height: top + rows * size + 8, role: "img", "aria-label": `${label}: rows are the tokens that look, columns what they look at` });
  block.columns.forEach((token, x) => svg.append(s("text", { class: "token", ...columnOf(block, model), x: 0, y: 0, transform: `translate(${left + (x + 0.72) * size} ${top - 6}) rotate(-60)` }, cut(piece(token)))));
  block.rows.forEach((token, y) => {
    const dim = followed !== null && followed !== y;
    svg.append(s("text", { class: `token row${dim ? " dim" : ""}`, ...rowOf(block, model), x: left - 6, y: top + (y + 0.5) * size, "text-anchor": "end", "dominant-baseline": "central", on: { click: () => follow(y) } }, cut(piece(token))));
    block.columns.forEach((_, x) => svg.append(s("rect", { class: dim ? "cell dim" : "cell", x: left + x * size, y: top + y * size, width: size - 1, height: size - 1, fill: shade(map[y][x]), data: { y, x } })));
  });
  svg.addEventListener("pointerover", (event) => event.target.matches(".cell") && tell(Number(event.target.dataset.y), Number(event.target.dataset.x)));
  svg.addEventListener("pointerleave", () => tell(null));
  svg.addEventListener("click", (event) => event.target.matches(".cell") && follow(Number(event.target.dataset.y)));
  return svg;
}

function drawLines(block, map, model, follow) {
  const [rows, columns] = [block.rows.length, block.columns.length];
  const step = 24; // pixels: a finger meets one token
  const [left, right] = [96, 236];
  const height = Math.max(rows, columns) * step + 30;
  const offset = (count) => 26 + ((Math.max(rows, columns) - count) * step) / 2;
  const y1 = (y) => offset(rows) + (y + 0.5) * step;
  const y2 = (x) => offset(columns) + (x + 0.5) * step;
  const svg = s("svg", { class: "lines", width: 332, height, role: "group", "aria-label": "Tokens to follow, with lines to what they look at" });
  svg.append(s("text", { class: "caption", x: left, y: 14, "text-anchor": "end" }, "looks"), s("text", { class: "caption", x: right, y: 14 }, "at"));
  for (let y = 0; y < rows; y += 1) {
    for (let x = 0; x < columns; x += 1) {
      const weight = map[y][x];
      if (weight < 0.03 || (followed !== null && followed !== y)) continue;
      const middle = (left + right) / 2;
      svg.append(s("path", { d: `M${left + 4} ${y1(y)}C${middle} ${y1(y)} ${middle} ${y2(x)} ${right - 4} ${y2(x)}`, "stroke-opacity": (followed === null ? 0.75 : 1) * Math.min(1, 0.08 + weight), "stroke-width": 0.8 + 5 * weight }));
    }
  }
  block.rows.forEach((token, y) => {
    const is = followed === y;
    svg.append(s("text", { class: `token row${is ? " at" : followed === null ? "" : " dim"}`, ...rowOf(block, model), x: left, y: y1(y), "text-anchor": "end", "dominant-baseline": "central", role: "button", tabindex: 0, "aria-pressed": String(is), "aria-label": piece(token), on: { click: () => follow(y), keydown: (event) => press(event, svg, y, follow) } }, cut(piece(token), 11)));
  });
  block.columns.forEach((token, x) => {
    const weight = followed === null ? 1 : map[followed][x];
    svg.append(s("text", { class: `token${followed !== null && weight < 0.1 ? " dim" : ""}`, ...columnOf(block, model), x: right, y: y2(x), "dominant-baseline": "central" }, cut(piece(token), 11)));
  });
  return svg;
}

/** Enter follows a token; arrows go to the next one. */
function press(event, svg, y, follow) {
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  const next = y + (steps[event.key] ?? 0);
  if (event.key !== "Enter" && event.key !== " " && !(event.key in steps)) return;
  event.preventDefault();
  const place = svg.closest(".large");
  if (event.key in steps && !svg.querySelectorAll(".row")[next]) return;
  if (event.key in steps) follow(next);
  else follow(y);
  place.querySelectorAll(".lines .row")[event.key in steps ? next : y].focus();
}
