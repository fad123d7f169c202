// Colours of pictures, by theme. Those of weights are the same as in the plots of the program (reporting/canvas.py).

const SHADES = {
  light: ["#FFFFFF", "#D6E6F4", "#8FBFE0", "#3B8BC4", "#0B5394", "#062B52"],
  dark: ["#0D1117", "#12304A", "#1C5A8A", "#3F93CF", "#94CDF2", "#F4FAFF"],
};
const SIGNED = { light: ["#B4470A", "#FFFFFF", "#0B5394"], dark: ["#F0A24B", "#0D1117", "#56B4E9"] };

export const theme = () => document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

const numbers = (colour) => [1, 3, 5].map((start) => parseInt(colour.slice(start, start + 2), 16));

function between(colours, share) {
  const place = Math.min(Math.max(share, 0), 1) * (colours.length - 1);
  const first = Math.min(Math.floor(place), colours.length - 2);
  const [a, b] = [numbers(colours[first]), numbers(colours[first + 1])];
  return a.map((value, index) => Math.round(value + (b[index] - value) * (place - first)));
}

const tables = {};

/** 256 colours [r, g, b] from nothing to all: of a weight between 0 and 1. */
export function shades(signed = false) {
  const name = `${theme()} ${signed}`;
  tables[name] ??= Array.from({ length: 256 }, (_, index) => between((signed ? SIGNED : SHADES)[theme()], index / 255));
  return tables[name];
}

export const css = ([red, green, blue]) => `rgb(${red} ${green} ${blue})`;
/** Of a weight of attention. The root makes small weights visible: spread over 40 tokens, each has 0.025. */
export const ofWeight = (weight) => Math.sqrt(Math.min(Math.max(weight, 0), 1));
export const shade = (weight) => css(shades()[Math.round(255 * ofWeight(weight))]);

/** Fills a canvas with one pixel per value. `share`: a value as a number between 0 and 1. */
export function raster(canvas, rows, share, signed = false) {
  const [width, height] = [rows[0].length, rows.length];
  Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  const table = shades(signed);
  rows.forEach((row, y) => row.forEach((value, x) => {
    const colour = table[Math.round(255 * Math.min(Math.max(share(value), 0), 1))];
    image.data.set([...colour, 255], 4 * (y * width + x));
  }));
  context.putImageData(image, 0, 0);
}
