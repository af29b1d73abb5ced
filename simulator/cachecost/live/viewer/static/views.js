/** The part of an axis that is in view: zoom, pan, and what brings a call into view. */

import { slotWidth } from "./bins.js";

/** @typedef {import("./bins.js").View} View */

/** A column is at most this many pixels wide. */
const WIDEST = 40;
/** So many pixels a call has after a jump to it. */
const JUMP = 9;

/** @param {View} view @param {number} count slots of the axis */
function fewest(view, count) {
  return Math.max(1, Math.min(count, view.width / WIDEST));
}

/**
 * Slots that the whole axis shows: more than there are where columns would be too wide.
 * @param {View} view
 * @param {number} count
 */
export function wholeSpan(view, count) {
  return Math.max(count, view.width / WIDEST, 1);
}

/**
 * The view with that first slot and so many of them, kept on the axis.
 * @param {View} view
 * @param {number} count
 * @param {number} from
 * @param {number} span
 */
export function viewFrom(view, count, from, span) {
  const whole = wholeSpan(view, count);
  const kept = Math.min(whole, Math.max(fewest(view, count), span));
  const first = Math.min(Math.max(0, from), whole - kept);
  return { from: first, to: first + kept, width: view.width };
}

/**
 * Zoom so that the slot under `at` (0 left to 1 right) stays.
 * @param {View} view
 * @param {number} count
 * @param {number} factor below 1: in
 * @param {number} [at]
 */
export function zoomView(view, count, factor, at = 0.5) {
  const span = view.to - view.from;
  const zoomed = Math.min(wholeSpan(view, count), Math.max(fewest(view, count), span * factor));
  return viewFrom(view, count, view.from + (span - zoomed) * at, zoomed);
}

/** @param {View} view @param {number} count @param {number} slots */
export function panView(view, count, slots) {
  return viewFrom(view, count, view.from + slots, view.to - view.from);
}

/** The whole axis. @param {View} view @param {number} count */
export function wholeView(view, count) {
  return viewFrom(view, count, 0, wholeSpan(view, count));
}

/**
 * The view, moved as little as shows the slot with some calls around it.
 * @param {View} view
 * @param {number} count
 * @param {number} slot
 */
export function viewWith(view, count, slot) {
  const span = view.to - view.from;
  const margin = Math.min(span / 4, 3);
  if (slot < view.from + margin) return viewFrom(view, count, slot - margin, span);
  return slot + 1 > view.to - margin ? viewFrom(view, count, slot + 1 + margin - span, span) : view;
}

/**
 * A view around the slot in which single calls can be told apart.
 * @param {View} view
 * @param {number} count
 * @param {number} slot
 */
export function viewAround(view, count, slot) {
  if (slotWidth(view) >= JUMP / 2) return viewWith(view, count, slot);
  const span = view.width / JUMP;
  return viewFrom(view, count, slot + 0.5 - span / 2, span);
}

/** @param {View} view @param {number} x CSS pixels from the left */
export function slotAt(view, x) {
  return view.from + x / slotWidth(view);
}

/** @param {View} view @param {number} slot */
export function leftOf(view, slot) {
  return (slot - view.from) * slotWidth(view);
}
