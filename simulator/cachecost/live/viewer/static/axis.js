/** The axis below a timeline: call numbers, and the time where it is known. */

import { slotWidth } from "./bins.js";
import { prepareCanvas } from "./paint.js";
import { nearestTo } from "./series.js";
import { colour } from "./theme.js";
import { clockText, dayText } from "./times.js";
import { grouped } from "./format.js";
import { leftOf } from "./views.js";

/** @typedef {import("./series.js").Series} Series */
/** @typedef {import("./bins.js").View} View */

const AXIS_HEIGHT = 36;
const LABEL = 84;
const STEPS = [1, 2, 5];

/** How many calls from label to label: 1, 2, 5, 10, 20 … @param {View} view */
export function labelStep(view) {
  const least = LABEL / slotWidth(view);
  for (let power = 1; ; power *= 10) {
    const step = STEPS.find((each) => each * power >= least);
    if (step) return step * power;
  }
}

/** @param {HTMLCanvasElement} canvas @param {Series} series @param {View} view */
export function paintAxis(canvas, series, view) {
  const context = prepareCanvas(canvas, view.width, AXIS_HEIGHT);
  context.font = `12px ${getComputedStyle(canvas).fontFamily}`;
  context.textBaseline = "top";
  const step = labelStep(view);
  let day = "";
  for (const at of labelledCalls(series, view, step)) {
    const x = leftOf(view, series.slot[at]);
    context.fillStyle = colour("rule");
    context.fillRect(x, 0, 1, 5);
    context.fillStyle = colour("muted");
    context.fillText(grouped(series.number[at]), x + 4, 3);
    const today = dayText(series.start[at]);
    const time = clockText(series.start[at], step > 1);
    context.fillText(today === day || !time ? time : today.slice(0, -5), x + 4, 19);
    day = time ? today : day;
  }
}

/**
 * Calls whose number is a multiple of the step, and the first.
 * @param {Series} series
 * @param {View} view
 * @param {number} step
 */
function labelledCalls(series, view, step) {
  const labelled = [];
  const first = nearestTo(series, Math.max(0, Math.ceil(view.from)));
  const last = nearestTo(series, Math.floor(view.to) - 1);
  for (let at = Math.max(0, first); at <= last; at += 1) {
    const x = leftOf(view, series.slot[at]);
    const isLabelled = series.number[at] > 0 && (series.number[at] % step === 0 || series.number[at] === 1);
    if (isLabelled && x + LABEL * 0.7 <= view.width && !isClose(series, view, labelled, at)) labelled.push(at);
  }
  return labelled;
}

/** @param {Series} series @param {View} view @param {number[]} labelled @param {number} at */
function isClose(series, view, labelled, at) {
  const last = labelled[labelled.length - 1];
  return last !== undefined && leftOf(view, series.slot[at]) - leftOf(view, series.slot[last]) < LABEL * 0.8;
}
