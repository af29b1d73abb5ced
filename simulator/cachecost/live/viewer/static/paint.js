/** Draws one row of a timeline: dollars a call above, the prompts below, human turns at the foot. */

import { binCalls, columnPlaces, isSeen, slotWidth } from "./bins.js";
import { CLASSES, firstFrom } from "./series.js";
import { colour } from "./theme.js";

/** @typedef {import("./series.js").Series} Series */
/** @typedef {import("./bins.js").View} View */
/** @typedef {import("./bins.js").Bins} Bins */
/**
 * Heights in CSS pixels, and what they stand for: of the lane of dollars, of the prompts, of human turns.
 * @typedef {{dollars: number, prompts: number, turns: number, mostUsd: number, mostTokens: number}} Lanes
 */

const GAP = 6;
/** From this width on a call shows its breakpoints. */
const TICK_FROM = 3;
const FLAG_ROOM = 24;

/** @param {Lanes} lanes */
export function rowHeight(lanes) {
  return lanes.dollars + GAP + lanes.prompts + (lanes.turns ? GAP + lanes.turns : 0);
}

/**
 * A canvas as sharp as the screen, and its context in CSS pixels.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function prepareCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.height = `${height}px`;
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** @param {HTMLCanvasElement} canvas @param {Series} series @param {View} view @param {Lanes} lanes */
export function paintRow(canvas, series, view, lanes) {
  const context = prepareCanvas(canvas, view.width, rowHeight(lanes));
  const bins = binCalls(series, view);
  paintGround(context, view, lanes);
  paintDollars(context, series, view, bins, lanes);
  paintPrompts(context, series, view, bins, lanes);
  if (series.breakpoints && slotWidth(view) >= TICK_FROM) paintBreakpoints(context, series, view, lanes);
  if (lanes.turns) paintTurns(context, view, bins, lanes);
}

/** @param {CanvasRenderingContext2D} context @param {View} view @param {Lanes} lanes */
function paintGround(context, view, lanes) {
  context.fillStyle = colour("panel");
  context.fillRect(0, 0, view.width, lanes.dollars);
  context.fillRect(0, lanes.dollars + GAP, view.width, lanes.prompts);
}

/**
 * Visit each column that has a call.
 * @param {Int32Array} indices
 * @param {View} view
 * @param {(at: number, x: number, wide: number) => void} visit
 */
function eachColumn(indices, view, visit) {
  const { left, step, wide } = columnPlaces(view);
  for (let column = 0; column < indices.length; column += 1) {
    if (indices[column] >= 0) visit(indices[column], left + column * step, wide);
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Series} series
 * @param {View} view
 * @param {Bins} bins
 * @param {Lanes} lanes
 */
function paintDollars(context, series, view, bins, lanes) {
  const scale = lanes.mostUsd ? (lanes.dollars - 6) / lanes.mostUsd : 0;
  context.fillStyle = colour("output");
  eachColumn(bins.costliest, view, (at, x, wide) => {
    const high = Math.max(1, series.cost[at] * scale);
    if (series.cost[at] > 0) context.fillRect(x, lanes.dollars - high, wide, high);
  });
  context.fillStyle = colour("bad");
  /** @type {Flag[]} */
  const flags = [];
  eachColumn(bins.rewritten, view, (at, x, wide) => {
    const [high, all] = [Math.max(2, series.rewritten[at] * scale), series.cost[at] * scale];
    const broad = Math.max(wide, 2);
    context.fillRect(x - (broad - wide) / 2, lanes.dollars - high, broad, high);
    flags.push({ x: x + wide / 2, y: lanes.dollars - Math.max(high, all || 0) - 1, usd: series.rewritten[at] });
  });
  paintFlags(
    context,
    flags.filter((flag) => flag.usd >= lanes.mostUsd / 4),
  );
}

/** @typedef {{x: number, y: number, usd: number}} Flag */

/**
 * Marks above the expensive rewrites, to be seen where columns are thin; the most expensive first, where they have
 * room.
 * @param {CanvasRenderingContext2D} context
 * @param {Flag[]} flags
 */
function paintFlags(context, flags) {
  /** @type {number[]} */
  const taken = [];
  for (const { x, y } of flags.sort((a, b) => b.usd - a.usd)) {
    if (taken.some((other) => Math.abs(other - x) < FLAG_ROOM)) continue;
    taken.push(x);
    const foot = Math.max(5, y);
    context.beginPath();
    context.moveTo(x, foot);
    context.lineTo(x - 3.5, foot - 5);
    context.lineTo(x + 3.5, foot - 5);
    context.fill();
  }
}

/**
 * Each column has its longest prompt, and before it the one with the most rewritten.
 * @param {CanvasRenderingContext2D} context
 * @param {Series} series
 * @param {View} view
 * @param {Bins} bins
 * @param {Lanes} lanes
 */
function paintPrompts(context, series, view, bins, lanes) {
  const scale = lanes.mostTokens ? lanes.prompts / lanes.mostTokens : 0;
  const foot = lanes.dollars + GAP + lanes.prompts;
  paintStacks(context, series, view, bins.tallest, { scale, foot });
  if (slotWidth(view) < 1) paintStacks(context, series, view, bins.rewritten, { scale, foot });
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {Series} series
 * @param {View} view
 * @param {Int32Array} indices
 * @param {{scale: number, foot: number}} place
 */
function paintStacks(context, series, view, indices, { scale, foot }) {
  CLASSES.forEach((name, layer) => {
    const below = CLASSES.slice(0, layer);
    context.fillStyle = colour(name);
    eachColumn(indices, view, (at, x, wide) => {
      const count = series.classes[name][at];
      if (!isSeen(count * scale, count, series.rewritten[at])) return;
      const bottom = below.reduce((sum, each) => sum + series.classes[each][at], 0) * scale;
      const high = Math.max(0.75, count * scale);
      context.fillRect(x, foot - bottom - high, wide, high);
    });
  });
}

/** @param {CanvasRenderingContext2D} context @param {Series} series @param {View} view @param {Lanes} lanes */
function paintBreakpoints(context, series, view, lanes) {
  const wide = slotWidth(view);
  const scale = lanes.mostTokens ? lanes.prompts / lanes.mostTokens : 0;
  const foot = lanes.dollars + GAP + lanes.prompts;
  context.fillStyle = colour("ink");
  for (let at = firstFrom(series, Math.floor(view.from)); at < series.length && series.slot[at] < view.to; at += 1) {
    for (const [tokens] of series.breakpoints?.[at] ?? []) {
      context.fillRect((series.slot[at] - view.from) * wide, foot - tokens * scale - 0.75, wide * 0.85, 1.5);
    }
  }
}

/** @param {CanvasRenderingContext2D} context @param {View} view @param {Bins} bins @param {Lanes} lanes */
function paintTurns(context, view, bins, lanes) {
  const { left, step, wide } = columnPlaces(view);
  const top = lanes.dollars + lanes.prompts + 2 * GAP;
  context.fillStyle = colour("ink");
  for (let column = 0; column < bins.length; column += 1) {
    if (!bins.human[column]) continue;
    context.globalAlpha = Math.max(0.2, bins.human[column]);
    context.fillRect(left + column * step, top, Math.min(3, Math.max(1.25, wide)), lanes.turns);
  }
  context.globalAlpha = 1;
}
