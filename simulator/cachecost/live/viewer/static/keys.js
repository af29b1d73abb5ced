/** Keys of a timeline, wherever on the page the focus is, except in what takes keys itself. */

/** @typedef {import("./timeline.js").Timeline} Timeline */

const OWN_KEYS = "input, select, textarea, [contenteditable], .own-keys, dialog";

/** @type {Record<string, (timeline: Timeline) => void>} */
const ACTIONS = {
  ArrowLeft: (timeline) => move(timeline, -1),
  ArrowRight: (timeline) => move(timeline, 1),
  Home: (timeline) => timeline.select(0),
  End: (timeline) => timeline.select(timeline.main.length - 1),
  PageUp: (timeline) => timeline.pan(-timeline.view.width * 0.8),
  PageDown: (timeline) => timeline.pan(timeline.view.width * 0.8),
  n: (timeline) => timeline.select(nextRewrite(timeline, 1), { around: true }),
  p: (timeline) => timeline.select(nextRewrite(timeline, -1), { around: true }),
  "+": (timeline) => timeline.zoom(0.5),
  "=": (timeline) => timeline.zoom(0.5),
  "-": (timeline) => timeline.zoom(2),
  0: (timeline) => timeline.showWhole(),
  Escape: (timeline) => timeline.options.onClose?.(),
  Enter: (timeline) => timeline.open(timeline.selected),
};
/** Keys that mean something else unless the timeline has the focus. */
const ONLY_FOCUSED = new Set(["Home", "End", "PageUp", "PageDown", "Enter"]);

/** @param {Timeline} timeline @param {number} step */
function move(timeline, step) {
  const last = timeline.main.length - 1;
  const start = step > 0 ? -1 : last + 1;
  timeline.select(Math.min(last, Math.max(0, (timeline.selected < 0 ? start : timeline.selected) + step)));
}

/** @param {Timeline} timeline @param {number} step @returns {number} -1 without one */
function nextRewrite(timeline, step) {
  const { rewritten, length } = timeline.main;
  const start = timeline.selected < 0 && step < 0 ? length : timeline.selected;
  for (let at = start + step; at >= 0 && at < length; at += step) if (rewritten[at] > 0) return at;
  return -1;
}

/** Listen for the timeline's keys; returns what ends that. @param {Timeline} timeline */
export function addKeys(timeline) {
  const listen = (/** @type {KeyboardEvent} */ event) => {
    const action = ACTIONS[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey || isTaken(timeline, event)) return;
    event.preventDefault();
    action(timeline);
  };
  document.addEventListener("keydown", listen);
  return () => document.removeEventListener("keydown", listen);
}

/** @param {Timeline} timeline @param {KeyboardEvent} event */
function isTaken(timeline, event) {
  const target = event.target instanceof Element ? event.target : null;
  if (target && timeline.plot.contains(target)) return false;
  return (
    ONLY_FOCUSED.has(event.key) ||
    Boolean(target?.closest(OWN_KEYS)) ||
    (event.key.startsWith("Arrow") && Boolean(target?.closest(".scroll")))
  );
}
