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

function drawList() {
  const focused = $("list").contains(document.activeElement) ? document.activeElement.dataset.name : null;
  $("list").replaceChildren(...runs.map((run) => {
    const is = run.name === name;
    const facts = [run.source && `${run.source} → ${run.target}`, run.epoch && `epoch ${run.epoch}${run.max_epochs ? ` of ${run.max_epochs}` : ""}`, `${whole(run.step)} updates`];
    return h(
      "button",
      { class: "run", role: "radio", "aria-checked": String(is), tabindex: is || (!name && run === runs[0]) ? 0 : -1, data: { name: run.name }, on: { click: () => choose(run.name) } },
      h("span", { class: "name" }, run.name),
      h("span", { class: `state ${run.state}` }, STATES[run.state]),
      h("span", { class: "facts quiet" }, facts.filter(Boolean).join(" · ")),
      run.best_bleu === null ? null : h("span", { class: "facts quiet" }, `best greedy BLEU ${run.best_bleu.toFixed(2)}`),
    );
  }));
  if (focused) $("list").querySelector(`[data-name="${CSS.escape(focused)}"]`)?.focus();
}

const of = (event, key, some = records) => some.filter((one) => one.event === event && typeof one[key] === "number").map((one) => [one.step, one[key]]);

function drawRun() {
  const focused = document.activeElement?.id;
  const wasOpen = $("table")?.open ?? false;
  const validations = records.filter((one) => one.event === "validation");
  const bleu = of("validation", "bleu");
  const width = $("run").clientWidth;
  const compared = other ? [{ name: other.name, kind: "third", points: of("validation", "loss", other.records), dots: true }] : [];
  const comparedBleu = other ? [{ name: other.name, kind: "third", points: of("validation", "bleu", other.records), dots: true }] : [];
  const parts = [
    h("h2", {}, name, " ", summary ? h("small", { class: `state ${summary.state}` }, STATES[summary.state]) : null),
    summary ? h("p", { class: "explained" }, story()) : null,
    h("div", { class: "charts" },
      chart({ title: "Loss, nats per token", curves: [{ name: "training", kind: "first", points: of("step", "loss") }, { name: "validation", kind: "second", points: of("validation", "loss"), dots: true }, ...compared], width, digits: 3 }),
      bleu.length ? chart({ title: "Greedy BLEU", curves: [{ name: "validation", kind: "second", points: bleu, dots: true }, ...comparedBleu], width, top: 100 }) : null,
    ),
    comparison(),
    ...samples(validations),
    validations.length ? table(validations) : null,
  ];
  $("run").replaceChildren(...parts.filter(Boolean));
  if ($("table")) $("table").open = wasOpen;
  if (focused) document.getElementById(focused)?.focus();
}

/** Another run to draw beside this one. */
function comparison() {
  const others = runs.filter((run) => run.name !== name);
  if (!others.length) return null;
  const select = h("select", { id: "other", on: { change: () => compare(select.value) } }, h("option", { value: "" }, "no other run"), others.map((run) => h("option", { value: run.name, selected: run.name === other?.name }, run.name)));
  return h("p", { class: "quiet" }, h("label", {}, "Compare with ", select), other ? " Losses compare only if both runs have the same vocabulary." : "");
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
function samples(validations) {
  const some = validations.filter((one) => one.samples?.length);
  if (!some.length) return [];
  const place = epoch === null ? some.length - 1 : Math.min(epoch, some.length - 1);
  const range = h("input", { type: "range", id: "epoch", min: 0, max: some.length - 1, value: place, on: { input: () => { epoch = Number(range.value) === some.length - 1 ? null : Number(range.value); drawRun(); } } });
  const one = some[place];
  return [
    h("h3", {}, "Watch it learn"),
    some.length > 1 ? h("label", { class: "quiet epoch" }, `After epoch ${one.epoch ?? "?"}, update ${whole(one.step)} `, range) : null,
    h("div", { class: "samples" }, one.samples.map((sample) => h("div", { class: "sample" },
      h("p", { lang: summary?.source }, sample.source),
      h("p", { class: "said", lang: summary?.target }, sample.translation || "(nothing)"),
      sample.translation === sample.reference ? h("p", { class: "right small" }, "✓ as the reference") : h("p", { class: "quiet small" }, "reference: ", h("span", { lang: summary?.target }, sample.reference)),
    ))),
  ];
}

function table(validations) {
  const cell = (value, digits) => h("td", { class: "number" }, typeof value === "number" ? value.toFixed(digits) : "–");
  const rows = validations.map((one) => h("tr", { class: one.best ? "best" : "" }, h("td", { class: "number" }, String(one.epoch ?? "")), h("td", { class: "number" }, whole(one.step)), cell(one.train_loss, 3), cell(one.loss, 3), cell(one.perplexity, 2), cell(one.bleu, 2), h("td", {}, one.best ? "best so far" : "")));
  const heads = ["epoch", "step", "train loss", "valid loss", "perplexity", "greedy BLEU"];
  return h("details", { id: "table" }, h("summary", {}, "All validations"), h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "All validations" }, h("table", {}, h("thead", {}, h("tr", {}, heads.map((text) => h("th", { class: "number" }, text)), h("td", {}))), h("tbody", {}, rows))));
}
