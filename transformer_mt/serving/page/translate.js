// The view "Translate": two panes, word alignment, alternatives.

import { askJson, Failure, onReturn } from "./api.js";
import { $, announce, h, onPause, rove, say, signed, whole } from "./dom.js";
import { pieces, placed, words } from "./words.js";

const PAUSE = 350; // milliseconds without a key
const REST = 400; // milliseconds without an arrow key
const MOST = 4; // alternatives

let models = [];
let model = null;
let answer = null; // { text: what was translated, lines, after }
let active = 0; // the line whose alternatives are shown
let asking = null; // the request that is on its way
let again = 0; // a timer: the server was busy
let hooks = {};
let typing = null;
let lit = null; // the word of the text that is lit
let resting = 0; // a timer: the cursor moves

export function start(given) {
  hooks = given;
  typing = onPause($("text"), PAUSE, translate);
  $("text").addEventListener("input", edited);
  $("clear").addEventListener("click", () => fill(""));
  $("copy").addEventListener("click", copy);
  $("swap").addEventListener("click", swap);
  $("look").addEventListener("click", () => hooks.look(answer?.lines[active]?.source ?? $("text").value, model));
  $("model").addEventListener("change", () => choose(models.find((one) => key(one) === $("model").value)));
  rove($("hypotheses"), "[role=radio]");
  followWords();
  onReturn(() => model && translate());
  try {
    $("text").value = sessionStorage.getItem("text") ?? "";
  } catch {
    // storage is forbidden
  }
}

export function shown() {}

/** A name for each direction of each model: a model may have several. */
const key = (one) => `${one.name} ${one.source}-${one.target}`;

/** The models that the server has; the chosen one stays if it is among them. */
export function use(found) {
  if (JSON.stringify(found) === JSON.stringify(models)) return;
  models = found;
  say($("problem"));
  const select = $("model");
  select.replaceChildren(...models.map((one) => h("option", { value: key(one) }, `${one.source_name} → ${one.target_name} · ${one.name}`)));
  $("choice").hidden = models.length < 2;
  choose(models.find((one) => model && key(one) === key(model)) ?? models.find((one) => one.default) ?? models[0]);
}

/** Shows a sentence that explains what is wrong. */
export const complain = (text) => say($("problem"), text);

const reverse = () => models.find((one) => one.source === model.target && one.target === model.source);

function choose(one) {
  model = one;
  $("model").value = key(model);
  $("source-name").textContent = model.source_name;
  $("target-name").textContent = model.target_name;
  $("text").lang = $("mirror").lang = model.source;
  $("output").lang = model.target;
  $("text").setAttribute("aria-label", `Text in ${model.source_name}`);
  $("output").setAttribute("aria-label", `Translation in ${model.target_name}`);
  $("text").placeholder = `Write ${model.source_name} here`;
  $("swap").hidden = !reverse();
  $("arrow").hidden = !$("swap").hidden;
  hooks.changed(model);
  edited();
  translate();
  suggest();
}

/** Example sentences: those that the run of this model shows after each epoch. */
async function suggest() {
  const place = $("examples");
  place.hidden = true;
  const wanted = model;
  if (models.filter((one) => one.name === model.name).length > 1) return; // its samples are in any of its languages
  const run = await askJson(`/v1/runs/${encodeURIComponent(model.name)}`).catch(() => null);
  const samples = run?.records.findLast((one) => one.samples?.length)?.samples ?? [];
  if (wanted !== model || !samples.length) return;
  const buttons = samples.slice(0, 3).map((one) => h("button", { class: "chip", lang: model.source, on: { click: () => fill(one.source) } }, one.source));
  place.replaceChildren(h("span", { class: "quiet" }, "Try"), ...buttons);
  place.hidden = Boolean($("text").value.trim());
}

/** Replaces the text, and translates it at once. */
function fill(text) {
  $("text").value = text;
  typing.cancel();
  edited();
  translate();
  $("text").focus();
}

function edited() {
  const text = $("text").value;
  paint(text);
  const length = [...text].length;
  const most = model?.limits.characters ?? 0;
  $("count").textContent = most ? `${whole(length)} / ${whole(most)}` : whole(length);
  $("count").classList.toggle("over", length > most);
  $("clear").hidden = !text;
  $("examples").hidden = Boolean(text.trim()) || !$("examples").childElementCount;
  try {
    sessionStorage.setItem("text", text);
  } catch {
    // storage is forbidden
  }
}

/** The text behind the field: it gives the field its height, and has a place for each word. */
function paint(text) {
  const parts = [...pieces(text)].map((part) => (part.space !== undefined ? part.space : h("span", { class: "word", data: { word: part.number } }, part.word)));
  $("mirror").replaceChildren(...parts, "\n");
}

async function translate() {
  asking?.abort();
  clearTimeout(again);
  const text = $("text").value;
  if (!model) {
    hooks.load(); // it failed before, perhaps for want of a key
    return;
  }
  if (!text.trim()) {
    asking = null;
    answer = null;
    $("output").classList.remove("waiting");
    say($("problem"));
    draw();
    return;
  }
  const length = [...text].length;
  if (length > model.limits.characters) {
    asking = null;
    fail(`The text has ${whole(length)} characters; this server translates ${whole(model.limits.characters)} at once.`);
    return;
  }
  const own = (asking = new AbortController());
  const slow = setTimeout(() => $("output").classList.add("waiting"), 250);
  const body = { text, source: model.source, target: model.target, model: model.name, align: true, n_best: Math.min(MOST, model.beam) };
  try {
    const found = await askJson("/v1/translate", { body, signal: own.signal });
    if (own !== asking) return;
    answer = { text, ...placed(found.translations[0], answer?.lines) };
    active = Math.max(0, answer.lines.findIndex((line) => line.text));
    say($("problem"));
    $("took").textContent = `${whole(Math.max(1, Math.round(1000 * found.seconds)))} ms`;
    draw();
    announce(h("p", { lang: model.target }, translation()), ...notes().map((note) => h("p", {}, note)));
  } catch (error) {
    if (own !== asking || error.name === "AbortError") return;
    if (!(error instanceof Failure)) throw error;
    if (error.kind === "away") say($("problem")); // a banner says it
    else if (error.kind === "busy") {
      complain(`The server is busy. Trying again in ${error.wait} s.`);
      again = setTimeout(translate, 1000 * error.wait);
    } else fail(error.message);
  } finally {
    clearTimeout(slow);
    if (own === asking) $("output").classList.remove("waiting");
  }
}

/** There is no translation of this text; one of another text must not stay beside it. */
function fail(sentence) {
  answer = null;
  $("output").classList.remove("waiting");
  draw();
  complain(sentence);
}

const translation = () => (answer ? answer.lines.map((line) => line.before + chosen(line).text).join("") + answer.after : "");
const chosen = (line) => line.hypotheses[line.chosen] ?? { text: line.text, words: [] };

function draw() {
  const output = $("output");
  const parts = [];
  for (const [index, line] of (answer?.lines ?? []).entries()) {
    parts.push(line.before);
    for (const part of pieces(chosen(line).text)) {
      parts.push(part.space !== undefined ? part.space : h("span", { class: "word", data: { line: index, word: part.number } }, part.word));
    }
  }
  output.replaceChildren(...parts, answer?.after ?? "");
  for (const id of ["copy", "look"]) $(id).hidden = !answer;
  $("look").hidden ||= !model?.inside;
  if (!answer) $("took").textContent = "";
  light(null);
  $("notes").replaceChildren(...notes().map((note) => h("li", {}, note)));
  $("notes").hidden = !$("notes").childElementCount;
  drawAlternatives();
}

function notes() {
  const lines = answer?.lines ?? [];
  return lines.flatMap((line, index) => line.notes.map((note) => (lines.length > 1 ? `Line ${index + 1}: ${note}` : note[0].toUpperCase() + note.slice(1))));
}

function drawAlternatives() {
  const line = answer?.lines[active];
  const some = line?.hypotheses ?? [];
  $("alternatives").hidden = some.length < 2;
  const isOne = (answer?.lines ?? []).filter((one) => one.text).length < 2;
  $("of-line").replaceChildren(...(isOne ? [] : [`Of line ${active + 1}: `, h("span", { lang: model.source }, line.source)]));
  const best = some[0]?.score ?? 0;
  const rows = some.map((one, index) => {
    const is = index === line.chosen;
    const bar = h("span", { class: "bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", String(Math.exp(Math.min(0, one.score - best))));
    return h(
      "button",
      { class: "hypothesis", role: "radio", "aria-checked": String(is), tabindex: is ? 0 : -1, on: { click: () => pick(index) } },
      h("span", { class: "said", lang: model.target }, one.text),
      bar,
      h("span", { class: "score" }, signed(one.score)),
    );
  });
  $("hypotheses").replaceChildren(...rows);
}

function pick(index) {
  answer.lines[active].chosen = index;
  const focused = $("hypotheses").contains(document.activeElement);
  draw();
  announce(h("p", { lang: model.target }, chosen(answer.lines[active]).text));
  if (focused) $("hypotheses").querySelector("[aria-checked=true]").focus();
}

async function copy() {
  const button = $("copy");
  try {
    await navigator.clipboard.writeText(translation());
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren($("output"));
    button.textContent = "Selected: press Ctrl+C";
  }
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

/** The other direction, with the translation as the text. */
function swap() {
  const text = translation();
  const other = reverse();
  if (text) $("text").value = text;
  answer = null;
  choose(other);
}

// Words light up on both sides.

function followWords() {
  const output = $("output");
  const over = (event) => {
    const word = event.target.closest?.(".word");
    if (word) light({ line: Number(word.dataset.line), word: Number(word.dataset.word) });
  };
  output.addEventListener("pointerover", over);
  output.addEventListener("pointerdown", over);
  output.addEventListener("pointerleave", () => light(null));
  output.addEventListener("blur", () => light(null));
  output.addEventListener("focus", () => output.matches(":focus-visible") && move(0));
  output.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    if (!(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    event.preventDefault();
    move(steps[event.key]);
  });
  const field = $("text");
  field.addEventListener("pointermove", (event) => {
    const word = document.elementsFromPoint(event.clientX, event.clientY).find((one) => one.matches("#mirror .word"));
    lightSource(word ? Number(word.dataset.word) : null);
  });
  field.addEventListener("pointerleave", () => lightSource(null));
  field.addEventListener("keyup", (event) => {
    clearTimeout(resting);
    if (!/^(Arrow|Home$|End$)/.test(event.key)) return;
    resting = setTimeout(() => lightSource(words(`${field.value.slice(0, field.selectionStart)}x`).length - 1), REST);
  });
}

/** From the lit word to the next one. */
function move(step) {
  const all = [...$("output").querySelectorAll(".word")];
  if (!all.length) return;
  const place = all.findIndex((one) => one.classList.contains("at"));
  const next = all[Math.min(Math.max(place + step, 0), all.length - 1)];
  light({ line: Number(next.dataset.line), word: Number(next.dataset.word) });
}

const isCurrent = () => answer && answer.text === $("text").value;

function mark(sources, targets, at) {
  for (const word of $("mirror").querySelectorAll(".word")) word.classList.toggle("lit", sources.has(Number(word.dataset.word)));
  for (const word of $("output").querySelectorAll(".word")) {
    const name = `${word.dataset.line} ${word.dataset.word}`;
    word.classList.toggle("lit", targets.has(name));
    word.classList.toggle("at", name === at);
  }
}

/** Words that belong together: an arrow for eyes, a word for ears. */
function link(own, sign, said, others) {
  $("link").replaceChildren(own, h("span", { "aria-hidden": "true" }, ` ${sign} `), h("span", { class: "sr" }, ` ${said} `), others);
}

/** Lights a word of the translation and the words of the text that it comes from. */
function light(at) {
  lit = null;
  if (!at || !answer) {
    mark(new Set(), new Set());
    $("link").textContent = "";
    return;
  }
  const line = answer.lines[at.line];
  if (at.line !== active) {
    active = at.line;
    drawAlternatives();
  }
  const pairs = chosen(line).words ?? [];
  const from = pairs.filter(([, target]) => target === at.word).map(([source]) => source);
  const name = `${at.line} ${at.word}`;
  mark(new Set(isCurrent() ? from.map((word) => line.sourceWord + word) : []), new Set([name]), name);
  const of = words(line.source);
  const own = words(chosen(line).text)[at.word];
  link(h("b", { lang: model.target }, own), "←", "comes from", from.length ? h("b", { lang: model.source }, from.map((word) => of[word]).join(" ")) : "no single word of the text");
}

/** Lights a word of the text and the words that it became. */
function lightSource(number) {
  if (number === lit) return; // what is said is said once
  if (number === null || !isCurrent()) {
    light(null);
    return;
  }
  lit = number;
  const index = answer.lines.findLastIndex((one) => one.sourceWord <= number && words(one.source).length);
  const line = answer.lines[index];
  if (!line) return;
  const own = number - line.sourceWord;
  const to = (chosen(line).words ?? []).filter(([source]) => source === own).map(([, target]) => target);
  mark(new Set([number]), new Set(to.map((word) => `${index} ${word}`)));
  const target = words(chosen(line).text);
  link(h("b", { lang: model.source }, words(line.source)[own] ?? ""), "→", "becomes", to.length ? h("b", { lang: model.target }, to.map((word) => target[word]).join(" ")) : "no single word of the translation");
}
