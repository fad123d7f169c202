// Figure 1 of the paper, drawn again: each box opens the tensors that this model computed for this sentence.

import { h, rove, s, whole } from "./dom.js";
import { heading } from "./parts.js";

const [LEFT, RIGHT, WIDE] = [146, 398, 176];
/** Boxes: what they are called, where they stand, which modules and tensors belong to them. # is the layer. */
const BOXES = [
  { name: "Source ids", x: LEFT, y: 622, kind: "ids", path: "", tensors: ["source", "padding_mask"] },
  { name: "Embedding", x: LEFT, y: 576, kind: "embedding", path: "source_embedding", tensors: ["embedded"] },
  { name: "+ positions", x: LEFT, y: 530, kind: "embedding", path: "source_embedding", tensors: ["positions", "sum"] },
  { name: "Self-attention", x: LEFT, y: 462, kind: "attention", path: "encoder.layers.#.self_attention" },
  { name: "Add & norm", x: LEFT, y: 424, kind: "norm", path: "encoder.layers.#.around_self_attention" },
  { name: "Feed forward", x: LEFT, y: 370, kind: "forward", path: "encoder.layers.#.feed_forward" },
  { name: "Add & norm", x: LEFT, y: 332, kind: "norm", path: "encoder.layers.#.around_feed_forward" },
  { name: "Memory", x: LEFT, y: 262, kind: "ids", path: "encoder" },
  { name: "Target ids", x: RIGHT, y: 622, kind: "ids", path: "", tensors: ["target"] },
  { name: "Embedding", x: RIGHT, y: 576, kind: "embedding", path: "target_embedding", tensors: ["embedded"] },
  { name: "+ positions", x: RIGHT, y: 530, kind: "embedding", path: "target_embedding", tensors: ["positions", "sum"] },
  { name: "Masked self-attention", x: RIGHT, y: 462, kind: "attention", path: "decoder.layers.#.self_attention" },
  { name: "Add & norm", x: RIGHT, y: 424, kind: "norm", path: "decoder.layers.#.around_self_attention" },
  { name: "Cross-attention", x: RIGHT, y: 370, kind: "attention", path: "decoder.layers.#.cross_attention" },
  { name: "Add & norm", x: RIGHT, y: 332, kind: "norm", path: "decoder.layers.#.around_cross_attention" },
  { name: "Feed forward", x: RIGHT, y: 278, kind: "forward", path: "decoder.layers.#.feed_forward" },
  { name: "Add & norm", x: RIGHT, y: 240, kind: "norm", path: "decoder.layers.#.around_feed_forward" },
  { name: "Hidden states", x: RIGHT, y: 172, kind: "ids", path: "decoder" },
  { name: "Linear", x: RIGHT, y: 126, kind: "embedding", path: "generator" },
  { name: "Softmax", x: RIGHT, y: 80, kind: "norm", path: null },
];
const LETTERS = { B: "sentences", S: "source positions", T: "target positions", D: "model width", H: "heads", Q: "query positions", M: "positions attended to", K: "width of a head", F: "feed-forward width", V: "pieces in the vocabulary" };

const LIFT = 46; // what stands above a stack makes room for its last normalisation
const OUTPUTS = { encoder: "memory", decoder: "hidden" };

/** With pre-norm, the normalisation stands below its sub-layer, and the sum above both. A last one may end each stack. */
function boxesOf(isPre, hasFinal) {
  return BOXES.flatMap((box, index) => {
    const [below, above] = [BOXES[index - 1], BOXES[index + 1]];
    if (isPre && box.kind === "norm" && box.path) return { ...box, name: "Norm", y: below.y };
    if (isPre && box.path?.includes("#")) return { ...box, y: above.y };
    if (!hasFinal || box.y > 300 || box.path?.includes("#")) return box;
    const lifted = { ...box, y: box.y - LIFT };
    return box.path in OUTPUTS ? [{ ...box, name: "Final norm", kind: "norm", tensors: [OUTPUTS[box.path]], last: true }, lifted] : lifted;
  });
}

const keyOf = (box) => `${box.x} ${box.path} ${box.tensors} ${box.last}`;
let chosen = keyOf(BOXES[3]);
let layer = 0;

export function draw(place, seen) {
  const { shapes } = seen;
  const depth = { encoder: layersOf(shapes, "encoder"), decoder: layersOf(shapes, "decoder") };
  const most = Math.max(depth.encoder, depth.decoder);
  layer = Math.min(layer, most - 1);
  const isPre = shapes.some((one) => one.name === "normalized");
  const boxes = boxesOf(isPre, seen.final_norm);
  if (!boxes.some((box) => keyOf(box) === chosen)) chosen = keyOf(BOXES[3]); // another model may lack it
  const panel = h("div", { class: "tensors", tabindex: 0, role: "group", "aria-label": "Tensors of the chosen part" });
  const svg = s("svg", { class: "figure", viewBox: seen.final_norm ? `2 ${24 - LIFT} 536 ${620 + LIFT}` : "2 24 536 620", role: "radiogroup", "aria-label": "Parts of the Transformer" });
  const show = () => {
    const now = boxes.findIndex((box) => keyOf(box) === chosen);
    svg.querySelectorAll(".box").forEach((box, index) => {
      box.setAttribute("aria-checked", String(index === now));
      box.setAttribute("tabindex", index === now ? "0" : "-1");
    });
    panel.replaceChildren(...tensors(boxes[now], shapes, depth, isPre));
  };
  frame(svg, boxes, depth, shapes, isPre);
  boxes.forEach((box) => svg.append(boxOf(box, () => { chosen = keyOf(box); show(); })));
  rove(svg, ".box", { choose: (box) => box.dispatchEvent(new Event("click")) });
  const select = h("select", { on: { change: () => { layer = Number(select.value); show(); } } }, Array.from({ length: most }, (_, index) => h("option", { value: index, selected: index === layer }, String(index + 1))));
  place.replaceChildren(
    ...heading("Shapes", "figure 1", "Figure 1 of the paper, as this model has it, with the tensors of this sentence. Choose a box to see the tensors that its code makes, as ", h("code", {}, "tmt inspect --shapes"), " lists them."),
    h("div", { class: "shapes" }, svg, h("div", {}, most > 1 ? h("label", { class: "quiet" }, "Layer ", select) : null, panel, legend(shapes))),
  );
  show();
}

const layersOf = (shapes, stack) => new Set(shapes.filter((one) => one.path.startsWith(`${stack}.layers.`)).map((one) => one.path.split(".")[2])).size;

const rowsOf = (box, shapes, number) => (box.path === null ? [] : shapes.filter((one) => one.path === box.path.replace("#", String(number)) && (!box.tensors || box.tensors.includes(one.name))));

function tensors(box, shapes, depth, isPre) {
  const stack = box.path?.split(".")[0];
  const number = Math.min(layer, (depth[stack] ?? 1) - 1);
  const rows = rowsOf(box, shapes, number);
  const where = box.path?.includes("#") ? `${stack}, layer ${number + 1}` : box.x === LEFT ? "encoder side" : "decoder side";
  const notes = [];
  if (box.last) notes.push(isPre ? "With pre-norm, the last sum of a stack is not normalised. So each stack ends with a normalisation of its own, which the paper's figure does not have." : "Each stack of this model ends with a normalisation of its own, which the paper's figure does not have.");
  else if (box.kind === "norm" && box.path) notes.push(isPre ? "This model normalises what a sub-layer reads (pre-norm). In the paper's figure, the sum above the sub-layer is normalised." : "The sum is normalised, as in the paper.");
  if (box.name === "+ positions" && !rows.some((one) => one.name === "positions")) notes.push("This model adds no positions here: it rotates queries and keys instead (rotary positions).");
  if (box.path === null) notes.push("The logits become probabilities. The search does this, not the model.");
  return [
    h("h3", {}, box.name, h("small", { class: "quiet" }, ` ${where}`)),
    rows.length ? h("p", {}, `${rows[0].meaning[0].toUpperCase()}${rows[0].meaning.slice(1)}.`) : null,
    ...notes.map((note) => h("p", {}, note)),
    rows.length ? h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "tensor"), h("th", {}, "letters"), h("th", {}, "shape"))), h("tbody", {}, rows.map((one) => h("tr", {}, h("td", {}, h("code", {}, one.name)), h("td", { class: "shape" }, h("code", {}, `[${one.letters.join(", ")}]`)), h("td", { class: "shape" }, one.shape.map(whole).join(" × ")))))) : null,
  ];
}

function legend(shapes) {
  const sizes = {};
  for (const one of shapes) one.letters.forEach((letter, index) => (sizes[letter] = one.shape[index]));
  const some = Object.keys(LETTERS).filter((letter) => letter in sizes && !"BQM".includes(letter));
  return h("p", { class: "quiet small legend" }, some.map((letter, index) => [index ? ", " : "", h("b", {}, letter), ` = ${whole(sizes[letter])} ${LETTERS[letter]}`]), ". B: one sentence. Q and M: positions that look, and that are looked at.");
}

function boxOf(box, choose) {
  const sublayer = box.path?.split(".around_")[1]; // of which it is the normalisation
  const name = `${box.x === LEFT ? "Encoder" : "Decoder"}: ${box.name}${sublayer ? ` of ${sublayer.replace("_", "-")}` : ""}`;
  return s(
    "g",
    { class: `box ${box.kind}`, role: "radio", "aria-label": name, on: { click: choose, keydown: (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), choose()) } },
    s("rect", { x: box.x - WIDE / 2, y: box.y - 15, width: WIDE, height: 30, rx: 6 }),
    s("text", { x: box.x, y: box.y, "text-anchor": "middle", "dominant-baseline": "central" }, box.name),
  );
}

/** Arrows, the boxes around the layers, and the shapes that flow. */
function frame(svg, boxes, depth, shapes, isPre) {
  const arrow = (...points) => svg.append(s("path", { class: "arrow", d: `M${points.map(([x, y]) => `${x} ${y}`).join("L")}` }));
  svg.append(s("defs", {}, s("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, s("path", { d: "M0 0 8 4 0 8z" }))));
  for (const [x, top, n] of [[LEFT, 298, depth.encoder], [RIGHT, 206, depth.decoder]]) {
    svg.append(s("rect", { class: "stack", x: x - 106, y: top, width: 212, height: 492 - top, rx: 12 }), s("text", { class: "times", x: x + (x === LEFT ? -110 : 110), y: top + 26, "text-anchor": x === LEFT ? "end" : "start" }, `${n} ×`));
  }
  for (const x of [LEFT, RIGHT]) {
    const ys = boxes.filter((box) => box.x === x).map((box) => box.y).sort((a, b) => b - a);
    ys.slice(1).forEach((y, index) => arrow([x, ys[index] - 15], [x, y + 16]));
  }
  for (const [x, side] of [[LEFT, -1], [RIGHT, 1]]) {
    const ys = boxes.filter((box) => box.x === x && box.path?.includes("#")).map((box) => box.y).sort((a, b) => b - a);
    for (let index = 0; index < ys.length; index += 2) {
      const [from, to] = [ys[index] + 21, isPre ? ys[index + 1] - 24 : ys[index + 1]];
      arrow([x, from], [x + side * 98, from], [x + side * 98, to], [x + side * (isPre ? 8 : WIDE / 2 + 1), to]);
      if (isPre) svg.append(s("circle", { class: "sum", cx: x, cy: to, r: 7 }), s("path", { class: "sum", d: `M${x - 4} ${to}h8M${x} ${to - 4}v8` }));
    }
  }
  const at = (name) => boxes.find((box) => box.name === name).y;
  arrow([LEFT + WIDE / 2, at("Memory")], [272, at("Memory")], [272, at("Cross-attention")], [RIGHT - WIDE / 2 - 1, at("Cross-attention")]);
  arrow([RIGHT, at("Softmax") - 15], [RIGHT, at("Softmax") - 32]);
  svg.append(s("text", { class: "flows", x: RIGHT, y: at("Softmax") - 40, "text-anchor": "middle" }, "probabilities of the next piece"));
  const shapeOf = (path, name) => shapes.find((one) => one.path === path && one.name === name)?.shape.map(whole).join(" × ") ?? "";
  svg.append(s("text", { class: "flows", x: LEFT, y: at("Memory") - 22, "text-anchor": "middle" }, shapeOf("encoder", "memory")), s("text", { class: "flows", x: RIGHT + 8, y: at("Linear") - 20 }, shapeOf("generator", "logits")), s("text", { class: "flows", x: RIGHT + 8, y: at("Hidden states") + 28 }, shapeOf("decoder", "hidden")));
}
