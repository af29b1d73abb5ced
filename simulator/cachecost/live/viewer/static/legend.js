/** What the colours of a timeline mean; only what occurs. */

import { make } from "./dom.js";
import { CLASS_NAMES, classesIn } from "./series.js";

/** @typedef {import("./series.js").Series} Series */

/** @param {Series[]} all */
export function makeLegend(all) {
  const some = (/** @type {(series: Series) => boolean} */ has) => all.some(has);
  const items = [
    ...classesIn(all).map((name) => swatch(name, CLASS_NAMES[name])),
    some((series) => series.rewritten.some((usd) => usd > 0)) && swatch("rewritten", "dollars rewritten"),
    some((series) => Boolean(series.breakpoints?.some((ticks) => ticks.length))) && swatch("tick", "breakpoint"),
    some((series) => series.isHuman.some(Boolean)) && swatch("turn", "human turn"),
  ];
  return make("ul", { class: "key" }, items);
}

/** @param {string} kind @param {string} words */
export function swatch(kind, words) {
  return make("li", {}, make("i", { class: kind, "aria-hidden": "true" }), words);
}
