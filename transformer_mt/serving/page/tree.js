// The beam search, step by step: what was considered, what stayed, what ended, and what greedy search would have said.

import { h, piece, s, signed } from "./dom.js";
import { heading, logarithm, percent } from "./parts.js";

const COLUMN = 118;
const ROW = 27;
const BOX = 70;
const SECONDS = 0.9; // of a step, while it plays

let playing = 0;

export function draw(place, seen, model) {
  clearInterval(playing);
  const { tree } = seen;
  const last = tree.nodes.at(-1).step;
  let step = last;
  const svg = paint(seen);
  const scroll = h("div", { class: "scroll tree", tabindex: 0, role: "group", "aria-label": "The tree of the search. Left and right arrows go from step to step." }, svg);
  const range = h("input", { type: "range", min: 0, max: last, value: step, "aria-label": "Step of the search", on: { input: () => { stop(); go(Number(range.value)); } } });
  const button = (label, text, press, extra = {}) => h("button", { class: "icon", "aria-label": label, on: { click: press }, ...extra }, text);
  const play = button("Play the search", "▶", () => (playing ? stop() : run()), { id: "play" });
  const told = h("p", { class: "told", "aria-live": "polite" });
  const beam = h("div", { class: "in-beam", tabindex: 0, role: "group", "aria-label": "Hypotheses after this step" });

  const stop = () => {
    clearInterval(playing);
    playing = 0;
    play.textContent = "▶";
    play.setAttribute("aria-label", "Play the search");
  };
  const run = () => {
    if (step === last) go(0);
    play.textContent = "❚❚";
    play.setAttribute("aria-label", "Stop");
    playing = setInterval(() => {
      go(step + 1);
      if (step === last) stop();
    }, 1000 * SECONDS);
  };
  const go = (wanted) => {
    step = Math.min(Math.max(wanted, 0), last);
    range.value = String(step);
    range.setAttribute("aria-valuetext", `step ${step} of ${last}`);
    reveal(svg, tree, step, last);
    tell(told, beam, seen, model, step, last);
    const right = (step + 1) * COLUMN + 20;
    if (right > scroll.scrollLeft + scroll.clientWidth || right < scroll.scrollLeft + COLUMN) scroll.scrollTo({ left: right - scroll.clientWidth });
  };
  scroll.addEventListener("keydown", (event) => {
    const wanted = { ArrowRight: step + 1, ArrowLeft: step - 1, Home: 0, End: last }[event.key];
    if (event.key === " ") playing ? stop() : run();
    else if (wanted === undefined) return;
    else {
      stop();
      go(wanted);
    }
    event.preventDefault();
  });
  const width = tree.beam === 1 ? "With a beam of 1, this is greedy search." : `The ${2 * tree.beam} likeliest extensions of each step are shown: at most ${tree.beam} stay.`;
  place.replaceChildren(
    ...heading("Beam search", "section 6.1", `The decoder gives a probability to every next piece. The search extends all hypotheses of its beam by every piece, and keeps the likeliest ones. ${width}`),
    h("div", { class: "controls" }, button("First step", "⇤", () => { stop(); go(0); }), button("Step back", "←", () => { stop(); go(step - 1); }), play, button("Next step", "→", () => { stop(); go(step + 1); }), button("Last step", "⇥", () => { stop(); go(last); }), range),
    scroll,
    h("p", { class: "key small" }, h("span", { class: "swatch best" }, "the result"), h("span", { class: "swatch kept" }, "in the beam"), h("span", { class: "swatch done" }, "ended, with its score"), h("span", { class: "swatch dropped" }, "dropped, or led nowhere")),
    told,
    beam,
    ...results(seen, model),
  );
  go(last);
  scroll.scrollLeft = 0;
}

/** All nodes: a column for each step, the likeliest at the top. A node knows whether its branch led to a result. */
function paint({ tree }) {
  const ranks = [];
  const at = tree.nodes.map((node) => {
    const rank = (ranks[node.step] = (ranks[node.step] ?? -1) + 1);
    return { x: 10 + node.step * COLUMN, y: 40 + rank * ROW };
  });
  const fruitful = new Set(tree.done.flatMap((one) => one.path));
  const best = new Set(tree.done[0].path);
  const last = tree.nodes.at(-1).step;
  for (const [index, node] of tree.nodes.entries()) if (node.fate === "unfinished") for (let one = index; one; one = tree.nodes[one].parent) fruitful.add(one);
  const height = 40 + Math.max(...ranks.map((rank) => rank + 1)) * ROW;
  const svg = s("svg", { width: 10 + last * COLUMN + BOX + 14, height, role: "img", "aria-label": "Hypotheses, from left to right; the text below says the same" });
  for (let step = 1; step <= last; step += 1) svg.append(s("text", { class: "caption", x: 10 + step * COLUMN + BOX / 2, y: 12, "text-anchor": "middle" }, String(step)));
  const edges = s("g", { class: "edges" });
  const boxes = s("g");
  svg.append(edges, boxes);
  tree.nodes.forEach((node, index) => {
    const { x, y } = at[index];
    const look = best.has(index) || (index === 0) ? "best" : node.fate === "done" ? "done" : node.fate === "dropped" ? "dropped" : fruitful.has(index) ? "kept" : "dead";
    if (index) {
      const from = at[node.parent];
      const [x1, x2] = [from.x + BOX, x];
      edges.append(s("path", { class: look, data: { node: index }, d: `M${x1} ${from.y}C${x1 + 20} ${from.y} ${x2 - 24} ${y} ${x2} ${y}` }));
      edges.append(s("text", { class: `probability ${look}`, data: { node: index }, x: x2 - 3, y: y - 4, "text-anchor": "end" }, percent(Math.exp(node.log_p)).replace(" %", "")));
    }
    const text = index === 0 ? "start" : node.score !== null ? `✓ ${signed(node.score)}` : node.token === "</s>" ? "end" : piece(node.token);
    boxes.append(s("g", { class: `node ${look}`, data: { node: index } }, s("title", {}, `${piece(node.token)}: probability ${percent(Math.exp(node.log_p))}, log-probability of the whole ${logarithm(node.log_probability)}`), s("rect", { x, y: y - 10, width: BOX, height: 20, rx: 5 }), s("text", { x: x + BOX / 2, y, "text-anchor": "middle", "dominant-baseline": "central" }, text.length > 9 ? `${text.slice(0, 8)}…` : text)));
  });
  return svg;
}

/** Shows the first steps only. Until the end, nobody knows which branches are dead. */
function reveal(svg, tree, step, last) {
  svg.classList.toggle("whole", step === last);
  for (const element of svg.querySelectorAll("[data-node]")) {
    const node = tree.nodes[Number(element.dataset.node)];
    element.classList.toggle("later", node.step > step);
    element.classList.toggle("now", node.step === step);
  }
}

const textOf = (tree, index) => {
  const tokens = [];
  for (let one = index; tree.nodes[one].parent !== null; one = tree.nodes[one].parent) tokens.unshift(tree.nodes[one].token);
  return tokens.filter((token) => token !== "</s>").join("").replaceAll("▁", " ").trim();
};

function tell(told, place, seen, model, step, last) {
  const { tree } = seen;
  const here = tree.nodes.map((node, index) => ({ ...node, index })).filter((node) => node.step === step);
  const live = here.filter((node) => node.fate === "extended" || node.fate === "unfinished");
  const done = here.filter((node) => node.fate === "done");
  const dropped = here.length - live.length - done.length;
  const sentences = [step === 0 ? "Before the first step, there is only the start token." : `Step ${step} of ${last}: ${live.length} ${live.length === 1 ? "hypothesis stays" : "hypotheses stay"} in the beam, ${done.length ? `${done.length} ended, ` : ""}${dropped} ${dropped === 1 ? "is" : "are"} dropped.`];
  if (step === last) sentences.push(ending(tree, live.length));
  told.textContent = sentences.join(" ");
  const rows = [...done, ...live].map((node) => h("tr", { class: node.fate === "done" ? "done" : "" }, h("td", { lang: model.target }, textOf(tree, node.index) || "(start)"), h("td", {}, node.fate === "done" ? "ended" : "in the beam"), h("td", { class: "number" }, logarithm(node.log_probability))));
  place.replaceChildren(h("table", {}, h("caption", { class: "sr" }, `Hypotheses after step ${step}`), h("thead", {}, h("tr", {}, h("th", {}, "after this step"), h("th", {}, "state"), h("th", { class: "number" }, "log-probability"))), h("tbody", {}, rows)));
}

/** Why the search stopped. */
function ending(tree, open) {
  if (!open) return "The search stops here: nothing is left to extend.";
  if (tree.done.length >= tree.beam) return `The search stops here: ${tree.done.length === 1 ? "a hypothesis has" : `${tree.done.length} hypotheses have`} ended, and the beam is ${tree.beam} wide.`;
  return `The search stops here: what is left in the beam cannot become better than the best hypothesis any more.`;
}

function results({ tree, greedy }, model) {
  const row = (one, index) => h("tr", { class: index === 0 ? "first" : "" }, h("td", { lang: model.target }, one.text || "(nothing)", one.stopped ? h("span", { class: "quiet" }, " (stopped at the longest length)") : null), h("td", { class: "number" }, String(one.tokens.length)), h("td", { class: "number" }, logarithm(one.log_probability)), h("td", { class: "number" }, one.penalty.toFixed(2)), h("td", { class: "number" }, h("b", {}, logarithm(one.score))));
  const best = tree.done[0];
  const same = greedy.text === best.text;
  const verdict = tree.beam === 1 ? [] : [
    h("h3", {}, "What greedy search would have said"),
    h("p", { class: "greedy" }, h("strong", { lang: model.target }, greedy.text || "(nothing)"), ` with a score of ${logarithm(greedy.score)}: `, same ? "the same. Always taking the likeliest next piece was enough here." : best.score > greedy.score ? `the beam found a translation with a better score, ${logarithm(best.score)}. Each piece of the greedy one was the likeliest at its step, but the whole is less probable.` : "better than that of the beam, which dropped it, or stopped before it ended. A beam search does not always find the best translation."),
  ];
  return [
    h("h3", {}, tree.done.length === 1 ? "The finished hypothesis" : `The ${tree.done.length} finished hypotheses`),
    h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Finished hypotheses" }, h("table", { class: "results" }, h("thead", {}, h("tr", {}, h("th", {}, "text"), h("th", { class: "number" }, "pieces"), h("th", { class: "number" }, "log-probability"), h("th", { class: "number" }, "÷ penalty"), h("th", { class: "number" }, "= score"))), h("tbody", {}, tree.done.map(row)))),
    h("p", { class: "quiet small" }, tree.length_penalty ? `A longer translation has more factors below 1, so its log-probability is lower. The penalty ((5 + pieces) / 6)^${tree.length_penalty} makes up for it.` : "This model has no length penalty: the score is the log-probability."),
    ...verdict,
  ];
}
