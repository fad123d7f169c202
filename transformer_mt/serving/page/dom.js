// Makes elements. No inline styles or scripts: the page forbids them.

export const $ = (id) => document.getElementById(id);

/** An HTML element. Properties: `on` holds listeners, the others are attributes; a text with a `lang` gets its direction, too. */
export function h(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** An SVG element. */
export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
    if (name === "lang") element.setAttribute("dir", "auto");
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Shows a sentence, or none. The place is never hidden: screen readers say what is written in places that they know. */
export const say = (place, text = "") => (place.textContent = text);

/** Has screen readers say what has just been finished: paragraphs, each in its language. */
export const announce = (...paragraphs) => $("done").replaceChildren(...paragraphs);

/** Arrow keys move through the elements of a group; one of them is in the tab order. `columns`: of a grid. */
export function rove(group, selector, { columns = () => 1, choose = (element) => element.click() } = {}) {
  group.addEventListener("keydown", (event) => {
    const all = [...group.querySelectorAll(selector)].filter((one) => !one.disabled);
    const place = all.indexOf(event.target);
    if (place < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const wide = columns();
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: wide, ArrowUp: -wide, Home: -place, End: all.length - 1 - place };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const next = all[Math.min(Math.max(place + steps[event.key], 0), all.length - 1)];
    next.focus();
    choose(next);
  });
}

/** Calls back after a pause in typing, never while a syllable is being composed. */
export function onPause(field, milliseconds, callback) {
  let timer = 0;
  let composing = false;
  const wait = () => {
    clearTimeout(timer);
    if (!composing) timer = setTimeout(callback, milliseconds);
  };
  field.addEventListener("compositionstart", () => {
    composing = true;
    clearTimeout(timer);
  });
  field.addEventListener("compositionend", () => {
    composing = false;
    wait();
  });
  field.addEventListener("input", wait);
  return { cancel: () => clearTimeout(timer) };
}

export const whole = (number) => number.toLocaleString("en");
export const signed = (number, digits = 2) => number.toFixed(digits).replace("-", "−");
/** A piece as it is shown: the sign of a new word becomes a low dot. */
export const piece = (token) => token.replaceAll("▁", "␣");
