/** Pointer and wheel on a timeline: the wheel zooms, a drag shows its range, a click opens the call. */

import { slotWidth } from "./bins.js";
import { slotAt, viewFrom } from "./views.js";

/** @typedef {import("./timeline.js").Timeline} Timeline */

const DRAG = 5;

/** Add the listeners; returns what removes those outside of the element. @param {Timeline} timeline */
export function addGestures(timeline) {
  const { plot } = timeline;
  const drag = { from: -1, last: 0, isDrag: false };
  const xOf = (/** @type {PointerEvent | WheelEvent} */ event) => event.clientX - plot.getBoundingClientRect().left;
  plot.addEventListener("wheel", (event) => onWheel(timeline, event, xOf(event)), { passive: false });
  plot.addEventListener("pointerdown", (event) => {
    if (event.button === 0) Object.assign(drag, { from: xOf(event), last: xOf(event), isDrag: false });
  });
  plot.addEventListener("pointermove", (event) => onMove(timeline, drag, event, xOf(event)));
  plot.addEventListener("pointerleave", () => timeline.hover(-1));
  plot.addEventListener("pointerup", (event) => onUp(timeline, drag, event, xOf(event)));
  plot.addEventListener("pointercancel", () => endDrag(timeline, drag));
  const escape = (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && endDrag(timeline, drag);
  document.addEventListener("keydown", escape);
  return () => document.removeEventListener("keydown", escape);
}

/** @typedef {{from: number, last: number, isDrag: boolean}} Drag */

/**
 * The page scrolls where zooming out would change nothing.
 * @param {Timeline} timeline
 * @param {WheelEvent} event
 * @param {number} x
 */
function onWheel(timeline, event, x) {
  const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
  if (timeline.isWhole() && (isSideways || event.deltaY > 0)) return;
  event.preventDefault();
  if (isSideways) timeline.pan(event.deltaX || event.deltaY);
  else timeline.zoom(Math.min(2, Math.max(0.5, 1.002 ** event.deltaY)), x / timeline.view.width);
}

/** @param {Timeline} timeline @param {Drag} drag @param {PointerEvent} event @param {number} x */
function onMove(timeline, drag, event, x) {
  if (drag.from < 0) {
    const at = timeline.callAt(x);
    timeline.hover(at < 0 ? -1 : timeline.main.slot[at]);
    return;
  }
  if (!drag.isDrag && Math.abs(x - drag.from) < DRAG) return;
  if (!drag.isDrag) timeline.plot.setPointerCapture(event.pointerId);
  timeline.hover(-1);
  drag.isDrag = true;
  if (isPan(event)) timeline.pan(drag.last - x);
  else timeline.brush(dragged(timeline, drag.from, x));
  drag.last = x;
}

/** A finger pans, as does the mouse with shift. @param {PointerEvent} event */
function isPan(event) {
  return event.pointerType === "touch" || event.shiftKey;
}

/** @param {Timeline} timeline @param {number} from @param {number} to @returns {[number, number]} */
function dragged(timeline, from, to) {
  return [
    slotAt(timeline.view, Math.max(0, Math.min(from, to))),
    slotAt(timeline.view, Math.min(timeline.view.width, Math.max(from, to))),
  ];
}

/** @param {Timeline} timeline @param {Drag} drag @param {PointerEvent} event @param {number} x */
function onUp(timeline, drag, event, x) {
  if (drag.from < 0) return;
  const [from, to] = dragged(timeline, drag.from, x);
  const wasDrag = drag.isDrag;
  endDrag(timeline, drag);
  if (!wasDrag) timeline.open(timeline.callAt(x));
  else if (!isPan(event))
    timeline.show(viewFrom(timeline.view, timeline.count, from, Math.max(to - from, 8 / slotWidth(timeline.view))));
}

/** @param {Timeline} timeline @param {Drag} drag */
function endDrag(timeline, drag) {
  Object.assign(drag, { from: -1, isDrag: false });
  timeline.brush(null);
}
