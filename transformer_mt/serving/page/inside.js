// The view "Inside": asks the server about one sentence, and hands the answer to the pictures.

import { askJson, Failure, onReturn } from "./api.js";
import * as attention from "./attention.js";
import { $, announce, h, onPause, piece, rove, say, whole } from "./dom.js";
import * as figure from "./figure.js";
import { heading, percent } from "./parts.js";
import * as positions from "./positions.js";
import * as tree from "./tree.js";

const PAUSE = 700; // milliseconds without a key
const WIDEST = 8;
const PARTS = { pieces: "Pieces", attention: "Attention", search: "Beam search", shapes: "Shapes", positions: "Positions" };

let model = null;
let asking = null;
let again = 0;
let seen = null; // the answer that is shown
let asked = ""; // the sentence and the beam that it belongs to
let isShown = false;
let taken = ""; // the sentence that was taken from the view Translate

export function start() {
  $("beam").append(...Array.from({ length: WIDEST }, (_, index) => h("option", {}, String(index + 1))));
  $("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    look();
  });
  $("beam").addEventListener("change", look);
  onPause($("sentence"), PAUSE, look);
  rove($("which"), "button", { choose: () => {} });
  const links = Object.entries(PARTS).map(([id, name]) => h("a", { href: `#${id}`, on: { click: (event) => { event.preventDefault(); $(id).scrollIntoView(); $(id).querySelector("h2").focus({ preventScroll: true }); } } }, name));
  document.querySelector(".contents").append(...links);
  onReturn(() => isShown && look());
  document.addEventListener("colours", () => seen && draw());
}

/** The model has changed. */
export function use(one) {
  asking?.abort();
  asking = null;
  clearTimeout(again);
  model = one;
  asked = "";
  $("sentence").lang = model.source;
  $("inside-language").textContent = `in ${model.source_name}`;
  $("beam").value = String(Math.min(model.beam, WIDEST));
  say($("inside-problem"), model.inside ? "" : "This model runs with CTranslate2, which does not show what happens inside. Start the server without --engine ctranslate2 to see it.");
  for (const field of $("ask").elements) field.disabled = !model.inside;
  $("seen").hidden = true;
  if (isShown) prepare();
}

/** Takes a sentence from another view. */
export function open(text, one) {
  if (one !== model) use(one);
  $("sentence").value = taken = text;
}

export function shown(is) {
  isShown = is;
  if (is) prepare();
}

async function prepare() {
  if (!model?.inside) return;
  const field = $("sentence");
  const offered = $("text").value.trim().split("\n")[0];
  if (!field.value.trim() || (field.value === taken && offered)) field.value = taken = offered || (await example());
  if ($("sentence").value.trim()) look();
}

async function example() {
  const run = await askJson(`/v1/runs/${encodeURIComponent(model.name)}`).catch(() => null);
  return run?.records.findLast((one) => one.samples?.length)?.samples[0].source ?? "";
}

async function look() {
  clearTimeout(again);
  const text = $("sentence").value;
  const beam = Number($("beam").value);
  const name = `${beam} ${text}`;
  asking?.abort(); // its answer would not fit the field any more
  asking = null;
  $("seen").removeAttribute("aria-busy");
  if (!model?.inside || !text.trim()) return;
  if (name === asked) {
    say($("inside-problem"));
    return;
  }
  const own = (asking = new AbortController());
  $("seen").setAttribute("aria-busy", "true");
  try {
    const body = { text, source: model.source, target: model.target, model: model.name, beam };
    const found = await askJson("/v1/inside", { body, signal: own.signal });
    if (own !== asking) return;
    [seen, asked] = [found, name];
    say($("inside-problem"));
    draw();
    announce(h("p", {}, "The model translates: ", h("span", { lang: model.target }, seen.text || "(nothing)")), ...seen.notes.map((note) => h("p", {}, note)));
  } catch (error) {
    if (own !== asking || error.name === "AbortError") return;
    if (!(error instanceof Failure)) throw error;
    if (error.kind === "busy") again = setTimeout(look, 1000 * error.wait);
    if (error.kind !== "away") say($("inside-problem"), error.message);
  } finally {
    if (own === asking) $("seen").removeAttribute("aria-busy");
  }
}

function draw() {
  $("seen").hidden = false;
  const says = $("says");
  says.replaceChildren(h("span", { lang: model.source }, seen.sentence), h("span", { class: "quiet" }, " → "), h("strong", { lang: model.target }, seen.text || "(nothing)"));
  const others = seen.sentences.length > 1 ? seen.sentences : [];
  $("which").replaceChildren(
    h("span", { class: "quiet" }, `The first of ${seen.sentences.length} sentences. Another one:`),
    ...others.filter((one) => one !== seen.sentence).map((one) => h("button", { class: "chip", lang: model.source, on: { click: () => { $("sentence").value = one; look(); } } }, one)),
  );
  $("which").hidden = !others.length;
  drawPieces();
  attention.draw($("attention"), seen, model);
  tree.draw($("search"), seen, model);
  figure.draw($("shapes"), seen, model);
  positions.draw($("positions"), model, seen);
}

function drawPieces() {
  const before = $("pieces").querySelector("input")?.checked ?? false;
  const box = h("input", { type: "checkbox", id: "ids", checked: before, on: { change: () => $("pieces").classList.toggle("with-ids", box.checked) } });
  const path = seen.tree.done[0].path;
  const row = (title, pieces, language, log_p) => [
    h("h3", {}, title),
    h("ol", { class: "pieces", lang: language }, pieces.map((one, index) => {
      const probability = log_p && index < path.length ? Math.exp(seen.tree.nodes[path[index]].log_p) : null;
      return h("li", { class: one.token === "</s>" ? "mark" : "" }, h("span", { class: "token" }, piece(one.token)), h("span", { class: "id" }, String(one.id)), probability === null ? null : h("span", { class: "quiet probability" }, percent(probability)));
    })),
  ];
  $("pieces").classList.toggle("with-ids", before);
  $("pieces").replaceChildren(
    ...heading("Pieces", "section 5.1", `The model reads pieces from a vocabulary of ${whole(seen.vocabulary.source)}, and writes pieces from one of ${whole(seen.vocabulary.target)}. ␣ begins a word; </s> ends the sentence. Below each written piece: how probable it was after the ones before it.`),
    ...row(`Read: ${seen.source_pieces.length} pieces`, seen.source_pieces, model.source, false),
    ...row(`Written: ${seen.target_pieces.length} pieces`, seen.target_pieces, model.target, true),
    h("label", { class: "check" }, box, " Show the numbers of the pieces"),
    ...seen.notes.map((note) => h("p", { class: "notes" }, note)),
  );
}
