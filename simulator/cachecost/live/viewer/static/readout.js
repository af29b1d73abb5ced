/** A call in words: the line below a timeline, and the rows of the table of calls. */

import { bindUnits, dollars, duration, grouped, NBSP, tokens } from "./format.js";
import { CLASSES, CLASS_NAMES, nearestTo } from "./series.js";
import { dayText, clockText } from "./times.js";

/** @typedef {import("./series.js").Series} Series */
/** @typedef {import("./timeline_rows.js").Row} Row */

/** What stands at that slot, a line a row of the timeline. @param {Row[]} rows @param {number} slot */
export function describeSlot(rows, slot) {
  return rows.flatMap(({ series, label }, place) => {
    const at = nearestTo(series, slot);
    if (at < 0 || series.slot[at] !== slot) return [];
    return [place ? `${label}: ${describePrompt(series, at)}` : describeCall(series, at)];
  });
}

/**
 * "Call 14 · 8 Jan 2026 08:17:13 · main · … · $0.21, of which $0.19 rewritten: idle …"
 * @param {Series} series
 * @param {number} at
 */
export function describeCall(series, at) {
  const parts = [
    series.number[at] ? `Call${NBSP}${grouped(series.number[at])}` : "Extra call",
    Number.isNaN(series.start[at]) ? "" : `${dayText(series.start[at])} ${clockText(series.start[at])}`,
    series.agents[series.agent[at]] ?? "",
    series.event[at] ? bindUnits(series.event[at]) : "",
    series.idle[at] > 60 ? `idle for ${duration(series.idle[at])}` : "",
  ];
  return [...parts.filter(Boolean), describePrompt(series, at)].join(" · ");
}

/**
 * "prompt 41k: 8.6k read, 33k written 5m · 312 output · $0.21, of which $0.19 rewritten: idle …"
 * @param {Series} series
 * @param {number} at
 */
function describePrompt(series, at) {
  const classes = CLASSES.filter((name) => series.classes[name][at] > 0);
  const shares = classes.map(
    (name) => `${tokens(series.classes[name][at])}${NBSP}${CLASS_NAMES[name].replace(" ", NBSP)}`,
  );
  const prompt = `prompt ${tokens(series.prompt[at])}${shares.length ? `: ${shares.join(", ")}` : ""}`;
  const output = series.output[at] ? `${tokens(series.output[at])}${NBSP}output` : "";
  return [prompt, output, describeCost(series, at)].filter(Boolean).join(" · ");
}

/** @param {Series} series @param {number} at */
function describeCost(series, at) {
  const cost = dollars(known(series.cost[at]));
  const cause = series.causes[series.cause[at]]?.name ?? "";
  if (!(series.rewritten[at] > 0)) return cost;
  return `${cost}, of which ${dollars(series.rewritten[at])}${NBSP}rewritten${cause ? `: ${cause}` : ""}`;
}

/** @param {number} value NaN: unknown */
export function known(value) {
  return Number.isNaN(value) ? null : value;
}
