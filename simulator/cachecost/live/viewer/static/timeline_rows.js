/** The rows of a timeline: their elements, their common scale, and which call a pixel stands for. */

import { make } from "./dom.js";
import { dollars, tokenText } from "./format.js";
import { paintRow } from "./paint.js";
import { largest, nearestTo } from "./series.js";

/** @typedef {import("./series.js").Series} Series */
/** @typedef {import("./bins.js").View} View */
/** @typedef {{label: string, words?: string, series: Series}} Row the calls of the first row are those selected */
/** @typedef {{row: Row, canvas: HTMLCanvasElement, usd: HTMLElement, tokens: HTMLElement}} DrawnRow */

/** Below this width, and with several rows, lanes are lower. */
const NARROW = 600;
const TURNS = 8;

/** @param {Row} row @returns {DrawnRow} */
export function makeRow(row) {
  return {
    row,
    canvas: make("canvas", { "aria-hidden": "true" }),
    usd: make("span", { class: "scale" }),
    tokens: make("span", { class: "scale" }),
  };
}

/** @param {DrawnRow} drawn */
export function rowFigure({ row, canvas, usd, tokens }) {
  const caption = make("figcaption", {}, make("strong", {}, row.label), row.words ? ` ${row.words}` : "");
  return make("figure", { class: "row" }, caption, make("div", { class: "lanes" }, canvas, usd, tokens));
}

/** @param {DrawnRow[]} rows @param {View} view */
export function drawRows(rows, view) {
  const lanes = commonLanes(
    rows.map(({ row }) => row.series),
    view,
  );
  for (const { row, canvas, usd, tokens } of rows) {
    paintRow(canvas, row.series, view, { ...lanes, turns: row.series.isHuman.some(Boolean) ? TURNS : 0 });
    usd.textContent = `${dollars(lanes.mostUsd)} a call`;
    tokens.textContent = tokenText(lanes.mostTokens);
    tokens.style.top = `${lanes.dollars + TURNS}px`;
  }
}

/** One scale for all rows, so that heights compare. @param {Series[]} all @param {View} view */
function commonLanes(all, view) {
  const isLow = view.width < NARROW || all.length > 1;
  return {
    dollars: isLow ? 44 : 58,
    prompts: isLow ? 130 : 200,
    mostUsd: Math.max(...all.map((series) => largest(series.cost))),
    mostTokens: Math.max(...all.map((series) => largest(series.prompt))),
  };
}

/**
 * Of the calls between two slots the one with the most rewritten, else with the longest prompt; -1 without calls.
 * @param {Series} series
 * @param {number} from
 * @param {number} to
 */
export function callBetween(series, from, to) {
  const first = Math.floor(from);
  const last = Math.max(first + 1, to);
  let best = nearestTo(series, first);
  for (let at = Math.max(0, best); at < series.length && series.slot[at] < last; at += 1) {
    if (weight(series, at) > weight(series, best)) best = at;
  }
  return best;
}

/** @param {Series} series @param {number} at */
function weight(series, at) {
  return series.rewritten[at] > 0 ? 1e12 * (1 + series.rewritten[at]) : series.prompt[at];
}
