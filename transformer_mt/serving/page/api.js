// Talks to the server: one kind of error, the key, and whether the server is there at all.

import { $, h, say } from "./dom.js";

/** kind: away (no answer), busy (come back in `wait` seconds), refused (with a sentence), broken. */
export class Failure extends Error {
  constructor(kind, message, wait = 0) {
    super(message);
    Object.assign(this, { kind, wait });
  }
}

let key = remembered();
let asking = null;
let declined = false; // the user gave no key: what asks again and again must not open the dialog
for (const act of ["click", "input"]) addEventListener(act, () => (declined = false), true);

function remembered() {
  try {
    return sessionStorage.getItem("key") ?? "";
  } catch {
    return "";
  }
}

// Relative to the page, because a proxy may serve it under a path of its own.
const address = (path) => `.${path}`;

/** The response to a request. Raises Failure, or AbortError if `signal` says so. */
export async function ask(path, { body, signal } = {}) {
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  if (key) headers.Authorization = `Bearer ${key}`;
  const method = body === undefined ? "GET" : "POST";
  let response;
  try {
    response = await fetch(address(path), { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    lost();
    throw new Failure("away", "The server does not answer.");
  }
  found();
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  const sentence = sentenceOf(said.error);
  if (response.status === 403 && !declined && (await newKey(key && sentence))) return ask(path, { body, signal });
  const wait = Number(response.headers.get("Retry-After"));
  if (response.status === 429 || (response.status === 503 && wait)) throw new Failure("busy", sentence, wait || 2);
  throw new Failure(response.status < 500 ? "refused" : "broken", sentence || "The server made a mistake.");
}

export const askJson = async (path, options) => (await ask(path, options)).json();

/** A message as a sentence. */
const sentenceOf = (text) => (text ? `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}` : "");

/** Asks the user for a key, once for all requests that wait. Returns whether there is a new one. wrong: what is wrong with the last one */
function newKey(wrong) {
  asking ??= new Promise((answer) => {
    const dialog = $("key");
    $("key-value").value = "";
    say($("key-problem"), wrong);
    dialog.addEventListener("close", () => {
      asking = null;
      const given = dialog.returnValue === "ok" ? $("key-value").value.trim() : "";
      if (given) {
        key = given;
        try {
          sessionStorage.setItem("key", key);
        } catch {
          // it is kept until the page is left
        }
      }
      declined = !given;
      answer(Boolean(given));
    }, { once: true });
    dialog.returnValue = "";
    dialog.showModal();
  });
  return asking;
}

// While the server is away, a banner says so, and we look for it again and again.

const listeners = new Set();
let looking = 0;
let pause = 1;

/** Calls back when the server answers again. */
export const onReturn = (callback) => listeners.add(callback);

function lost() {
  if (looking) return;
  const banner = $("away");
  if (!banner.childElementCount) banner.append("The server does not answer. Your text is safe; trying again", h("span", { "aria-hidden": "true" }), ". ", h("button", { class: "plain", on: { click: look } }, "Try now"));
  let left = pause;
  const show = () => (banner.firstElementChild.textContent = ` in ${left} s`); // only this changes: the rest is said once
  show();
  looking = setInterval(() => {
    left -= 1;
    if (left <= 0) look();
    else show();
  }, 1000);
}

async function look() {
  clearInterval(looking);
  looking = 0;
  pause = Math.min(pause * 2, 8);
  try {
    await fetch(address("/v1/models"), key ? { headers: { Authorization: `Bearer ${key}` } } : {});
  } catch {
    lost();
    return;
  }
  found();
  for (const callback of listeners) callback();
}

function found() {
  clearInterval(looking);
  looking = 0;
  pause = 1;
  if ($("away").contains(document.activeElement)) {
    const view = document.querySelector("[role=tabpanel]:not([hidden])");
    (view.querySelector("textarea, #sentence") ?? view).focus();
  }
  $("away").replaceChildren();
}

/** Follows server-sent events: calls `hear(name, data)`. Ends when the server or the signal ends it. */
export async function follow(path, hear, signal) {
  const response = await ask(path, { signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (text + value).split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const fields = Object.fromEntries(part.split("\n").map((line) => [line.split(":", 1)[0], line.slice(line.indexOf(":") + 2)]));
      if (fields.event) hear(fields.event, JSON.parse(fields.data));
    }
  }
}
