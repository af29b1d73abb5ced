/** Which calls a pixel column shows when more calls than pixels are in view. */

import { firstFrom } from "./series.js";

/** @typedef {import("./series.js").Series} Series */
/**
 * The part of the axis that is shown: slots from `from` to `to`, fractions allowed, on `width` CSS pixels.
 * @typedef {{from: number, to: number, width: number}} View
 */
/**
 * @typedef {object} Bins calls that stand for all of their pixel; an index, -1 for none
 * @property {number} length how many columns there are
 * @property {Int32Array} tallest the longest prompt
 * @property {Int32Array} rewritten the most rewritten dollars
 * @property {Int32Array} costliest the most dollars
 * @property {Float32Array} human share of the calls that follow a human turn
 */

/** CSS pixels that a part of a prompt must have: the three uncached tokens of every call would be a line. */
const LEAST = 0.5;

/** @param {View} view */
export function slotWidth(view) {
  return view.width / (view.to - view.from);
}

/**
 * Columns as wide as a pixel, or as a call where there are more pixels than calls.
 * @param {Series} series
 * @param {View} view
 * @returns {Bins}
 */
export function binCalls(series, view) {
  const length = Math.max(1, Math.ceil(Math.min(view.width, view.to - view.from) + 1));
  const bins = {
    length,
    tallest: new Int32Array(length).fill(-1),
    rewritten: new Int32Array(length).fill(-1),
    costliest: new Int32Array(length).fill(-1),
    human: new Float32Array(length),
  };
  const calls = new Uint32Array(length);
  const perSlot = Math.min(1, slotWidth(view));
  const start = perSlot < 1 ? view.from : Math.floor(view.from);
  for (let at = firstFrom(series, Math.floor(view.from)); at < series.length && series.slot[at] < view.to; at += 1) {
    const column = Math.max(0, Math.floor((series.slot[at] - start) * perSlot));
    addCall(bins, column, series, at);
    calls[column] += 1;
  }
  bins.human.forEach((count, column) => count && (bins.human[column] = count / calls[column]));
  return bins;
}

/** @param {Bins} bins @param {number} column @param {Series} series @param {number} at */
function addCall(bins, column, series, at) {
  if (column >= bins.length) return;
  keepLargest(bins.tallest, column, series.prompt, at);
  keepLargest(bins.costliest, column, series.cost, at);
  if (series.rewritten[at] > 0) keepLargest(bins.rewritten, column, series.rewritten, at);
  bins.human[column] += series.isHuman[at];
}

/** @param {Int32Array} kept @param {number} column @param {Float64Array} values @param {number} at */
function keepLargest(kept, column, values, at) {
  const known = kept[column];
  if (known < 0 || values[at] > values[known]) kept[column] = at;
}

/** The left edge of the column of bins, and how wide columns are, in CSS pixels. @param {View} view */
export function columnPlaces(view) {
  const wide = slotWidth(view);
  if (wide < 1) return { left: 0, step: 1, wide: 1 };
  return { left: (Math.floor(view.from) - view.from) * wide, step: wide, wide: wide >= 4 ? wide - 1 : wide };
}

/**
 * Whether a part of a prompt is drawn: half a pixel high, or of a call that wrote again what had been cached.
 * @param {number} high CSS pixels @param {number} tokens @param {number} rewritten USD
 */
export function isSeen(high, tokens, rewritten) {
  return high >= LEAST || (tokens > 0 && rewritten > 0);
}
