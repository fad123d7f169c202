// The view "Runs": what trains and what has trained, with curves and samples, live.

import { askJson, Failure, follow, onReturn } from "./api.js";
import { chart } from "./chart.js";
import { $, h, rove, say, whole } from "./dom.js";

const AGAIN = 5000; // milliseconds between two looks at the list
const STATES = { training: "training", finished: "finished", quiet: "no news" };

let runs = [];
let name = null; // of the chosen run
let records = [];
let summary = null;
let stream = null; // of the chosen run, while this view can be seen
let timer = 0;
let isShown = false;
let epoch = null; // whose samples are shown; null: the newest
let other = null; // { name, records } of a run to compare with

export function start() {
  rove($("list"), "[role=radio]");
  $("other").addEventListener("change", () => compare($("other").value));
  $("epoch").addEventListener("input", () => {
    const range = $("epoch");
    epoch = range.value === range.max ? null : Number(range.value);
    drawSamples();
  });
  onReturn(() => isShown && shown(true));
}

/** A browser has few connections to a server: only the page that can be seen holds one. */
export function shown(is) {
  isShown = is;
  clearTimeout(timer);
  stream?.abort();
  stream = null;
  if (!is) return;
  list();
  if (name) hear();
}

async function list() {
  clearTimeout(timer);
  try {
    ({ runs } = await askJson("/v1/runs"));
    say($("runs-problem"), runs.length ? "" : "There are no runs yet. In the folder where this server was started:  tmt train --config configs/quickstart.yaml");
    if (!runs.some((run) => run.name === name)) name = null;
    if (name === null && runs.length) choose(runs[0].name);
    const own = runs.find((run) => run.name === name);
    if (!stream && own && !(own.state === "finished" && summary?.state === "finished")) hear();
    drawList();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    if (error.kind !== "away") say($("runs-problem"), error.message);
  }
  if (isShown) timer = setTimeout(list, AGAIN);
}

function choose(wanted) {
  if (wanted === name) return;
  name = wanted;
  [records, summary, epoch, other] = [[], null, null, null];
  drawList();
  hear();
}

async function hear() {
  stream?.abort();
  const own = (stream = new AbortController());
  try {
    await follow(`/v1/runs/${encodeURIComponent(name)}/events`, (event, data) => {
      if (own !== stream) return;
      if (event === "all") records = data;
      else if (event === "more") records = records.concat(data);
      else if (event === "state") {
        summary = data;
        runs = runs.map((run) => (run.name === data.name ? data : run));
        drawList();
      }
      if (event !== "end") drawRun();
    }, own.signal);
  } catch (error) {
    if (error.name === "AbortError" || own !== stream) return;
    if (!(error instanceof Failure)) console.error(error); // the next look at the list tries again
    else if (error.kind !== "away") say($("runs-problem"), error.message);
  }
  if (own === stream) stream = null; // the run is finished, or the server is away: the list looks again
}

/** The buttons stay while their contents change: one of them may have the focus. */
function drawList() {
  const place = $("list");
  const buttons = runs.map((run) => {
    const is = run.name === name;
    const facts = [run.source && `${run.source} → ${run.target}`, run.epoch && `epoch ${run.epoch}${run.max_epochs ? ` of ${run.max_epochs}` : ""}`, `${whole(run.step)} updates`];
    const button = place.querySelector(`[data-name="${CSS.escape(run.name)}"]`) ?? h("button", { class: "run", role: "radio", data: { name: run.name }, on: { click: () => choose(run.name) } });
    button.setAttribute("aria-checked", String(is));
    button.tabIndex = is || (!name && run === runs[0]) ? 0 : -1;
    button.replaceChildren(
      h("span", { class: "name" }, run.name),
      h("span", { class: `state ${run.state}` }, STATES[run.state]),
      h("span", { class: "facts quiet" }, facts.filter(Boolean).join(" · ")),
      ...(run.best_bleu === null ? [] : [h("span", { class: "facts quiet" }, `best greedy BLEU ${run.best_bleu.toFixed(2)}`)]),
    );
    return button;
  });
  if (buttons.length === place.children.length && buttons.every((button, index) => button === place.children[index])) return;
  const focused = document.activeElement;
  place.replaceChildren(...buttons);
  if (place.contains(focused)) focused.focus();
}

const of = (event, key, some = records) => some.filter((one) => one.event === event && typeof one[key] === "number").map((one) => [one.step, one[key]]);

/** Fills the places of index.html. What can have the focus stays: a reader may hold the slider while the run trains. */
function drawRun() {
  $("run").hidden = false;
  const validations = records.filter((one) => one.event === "validation");
  const bleu = of("validation", "bleu");
  const width = $("run").clientWidth;
  const compared = other ? [{ name: other.name, kind: "third", points: of("validation", "loss", other.records), dots: true }] : [];
  const comparedBleu = other ? [{ name: other.name, kind: "third", points: of("validation", "bleu", other.records), dots: true }] : [];
  $("run-name").replaceChildren(name, " ", summary ? h("small", { class: `state ${summary.state}` }, STATES[summary.state]) : "");
  $("story").textContent = summary ? story() : "";
  $("charts").replaceChildren(
    chart({ title: "Loss, nats per token", curves: [{ name: "training", kind: "first", points: of("step", "loss") }, { name: "validation", kind: "second", points: of("validation", "loss"), dots: true }, ...compared], width, digits: 3 }),
    bleu.length ? chart({ title: "Greedy BLEU", curves: [{ name: "validation", kind: "second", points: bleu, dots: true }, ...comparedBleu], width, top: 100 }) : "",
  );
  drawComparison();
  drawSamples();
  drawTable(validations);
}

/** Another run to draw beside this one. */
function drawComparison() {
  const select = $("other");
  const others = runs.map((run) => run.name).filter((one) => one !== name);
  const known = [...select.options].slice(1).map((option) => option.value);
  if (String(others) !== String(known)) select.replaceChildren(h("option", { value: "" }, "no other run"), ...others.map((one) => h("option", { value: one }, one)));
  select.value = other?.name ?? "";
  $("compared").textContent = other ? "Losses compare only if both runs have the same vocabulary." : "";
  $("comparison").hidden = !others.length;
}

async function compare(wanted) {
  try {
    other = wanted ? { name: wanted, records: (await askJson(`/v1/runs/${encodeURIComponent(wanted)}`)).records } : null;
    drawRun();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    if (error.kind !== "away") say($("runs-problem"), error.message);
  }
}

function story() {
  const done = records.findLast((one) => one.event === "finished");
  const speed = of("step", "tokens_per_second").at(-1)?.[1];
  const last = records.at(-1);
  const time = last?.time ? new Date(1000 * last.time) : null;
  if (summary.state === "finished" && done) return `Finished: ${done.reason}; ${whole(summary.step)} updates in ${clock(done.seconds)}.`;
  const so = `${whole(summary.step)} updates so far${speed ? `, ${whole(Math.round(speed))} target tokens per second` : ""}.`;
  return summary.state === "training" ? so : `${so} No news since ${time?.toLocaleString()}: it was stopped, or it computes something long. The same tmt train command continues it.`;
}

const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.round(seconds % 60)).padStart(2, "0")} minutes`;

/** The same sentences after each epoch: one sees the model learn. */
function drawSamples() {
  const some = records.filter((one) => one.event === "validation" && one.samples?.length);
  for (const id of ["learning", "samples"]) $(id).hidden = !some.length;
  $("epochs").hidden = some.length < 2;
  if (!some.length) return;
  const last = some.length - 1;
  const place = Math.min(epoch ?? last, last);
  Object.assign($("epoch"), { max: last, value: place });
  const one = some[place];
  $("after").textContent = `After epoch ${one.epoch ?? "?"}, update ${whole(one.step)}`;
  $("samples").replaceChildren(...one.samples.map((sample) => h("div", { class: "sample" },
    h("p", { lang: summary?.source }, sample.source),
    h("p", { class: "said", lang: summary?.target }, sample.translation || "(nothing)"),
    sample.translation === sample.reference ? h("p", { class: "right small" }, "✓ as the reference") : h("p", { class: "quiet small" }, "reference: ", h("span", { lang: summary?.target }, sample.reference)),
  )));
}

function drawTable(validations) {
  const cell = (value, digits) => h("td", { class: "number" }, typeof value === "number" ? value.toFixed(digits) : "–");
  $("validations").replaceChildren(...validations.map((one) => h("tr", { class: one.best ? "best" : "" }, h("td", { class: "number" }, String(one.epoch ?? "")), h("td", { class: "number" }, whole(one.step)), cell(one.train_loss, 3), cell(one.loss, 3), cell(one.perplexity, 2), cell(one.bleu, 2), h("td", {}, one.best ? "best so far" : ""))));
  $("table").hidden = !validations.length;
}
