// The frame of the page: tabs, colours, and which model is used.

import { askJson, Failure, onReturn } from "./api.js";
import { $, rove } from "./dom.js";
import * as inside from "./inside.js";
import * as runs from "./runs.js";
import * as translate from "./translate.js";

const VIEWS = { translate, inside, runs };
const tabs = [...document.querySelectorAll("[role=tab]")];

/** Shows a view; others are told that they are hidden. */
export function show(name, { push = true } = {}) {
  const wanted = name in VIEWS ? name : "translate";
  for (const tab of tabs) {
    const view = tab.getAttribute("aria-controls");
    const is = view === wanted;
    tab.setAttribute("aria-selected", String(is));
    tab.tabIndex = is ? 0 : -1;
    $(view).hidden = !is;
    if (is) document.title = `${tab.textContent} · transformer_mt`;
  }
  if (push && location.hash !== `#${wanted}`) history.pushState(null, "", `#${wanted}`);
  for (const [view, module] of Object.entries(VIEWS)) module.shown(view === wanted && !document.hidden);
}

const current = () => tabs.find((tab) => tab.getAttribute("aria-selected") === "true").getAttribute("aria-controls");

function colours() {
  const button = $("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const tell = () => {
    button.setAttribute("aria-pressed", String(isDark()));
    document.dispatchEvent(new Event("colours"));
  };
  button.addEventListener("click", () => {
    const next = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem("theme", next);
    } catch {
      // it holds until the page is left
    }
    tell();
  });
  system.addEventListener("change", tell);
  tell();
}

/** The models of the server; waits until there is one. */
async function load() {
  try {
    const { models } = await askJson("/v1/models");
    translate.use(models);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    if (error.kind !== "away") translate.complain(error.message);
    if (error.kind === "busy") setTimeout(load, 1000 * error.wait);
  }
}

for (const tab of tabs) tab.addEventListener("click", () => show(tab.getAttribute("aria-controls")));
rove(document.querySelector("[role=tablist]"), "[role=tab]");
addEventListener("hashchange", () => show(location.hash.slice(1), { push: false }));
document.addEventListener("visibilitychange", () => VIEWS[current()].shown(!document.hidden));
onReturn(load); // it may have other models now
translate.start({ look: (text, model) => { inside.open(text, model); show("inside"); $("tab-inside").focus(); }, changed: inside.use, load });
inside.start();
runs.start();
colours();
show(location.hash.slice(1), { push: false });
load();
