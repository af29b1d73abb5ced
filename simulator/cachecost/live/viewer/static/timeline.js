/**
 * The prompt timeline: calls from left to right, one or more rows on one axis and one scale, an overview below.
 *
 * It keeps what is in view and which call is selected. paint.js draws, gestures.js and keys.js take pointer and keys.
 */

import { slotWidth } from "./bins.js";
import { fill, make } from "./dom.js";
import { countText } from "./format.js";
import { addGestures } from "./gestures.js";
import { makeLegend } from "./legend.js";
import { Overview } from "./overview.js";
import { paintAxis } from "./axis.js";
import { describeSlot } from "./readout.js";
import { slotCount } from "./slots.js";
import { onTheme } from "./theme.js";
import { callBetween, drawRows, makeRow, rowFigure } from "./timeline_rows.js";
import { leftOf, panView, slotAt, viewAround, viewFrom, viewWith, wholeSpan, wholeView, zoomView } from "./views.js";

/** @typedef {import("./series.js").Series} Series */
/** @typedef {import("./bins.js").View} View */
/** @typedef {import("./timeline_rows.js").Row} Row */
/** @typedef {import("./timeline_rows.js").DrawnRow} DrawnRow */
/**
 * @typedef {object} TimelineOptions what happens with a call, by its index in the first row
 * @property {(index: number) => void} [onOpen]
 * @property {(index: number) => void} [onSelect]
 * @property {() => void} [onClose]
 */

const OPENS = " A click or Enter opens a call.";
const KEYS = "Arrow keys move from call to call, n and p to the next and previous rewrite, + and − zoom.";

export class Timeline {
  /** @type {DrawnRow[]} */
  rows = [];
  /** @type {View} */
  view = { from: 0, to: 1, width: 1 };
  /** Slots of the axis. */
  count = 0;
  /** Index of the selected call of the first row, -1 for none. */
  selected = -1;
  /** The slot under the pointer, -1 for none. */
  hovered = -1;
  frame = 0;

  legend = make("div", { class: "legend" });
  readout = make("div", { class: "readout" });
  /** What a screen reader says: the call that the keys reach, not what the pointer passes. */
  spoken = make("output", { class: "unseen", "aria-live": "polite" });
  rowsBox = make("div", { class: "rows" });
  axis = make("canvas", { class: "axis", "aria-hidden": "true" });
  hoverMark = make("div", { class: "mark hover", hidden: true });
  selectedMark = make("div", { class: "mark selected", hidden: true });
  brushMark = make("div", { class: "mark brush", hidden: true });
  plot = make(
    "div",
    { class: "plot", tabindex: 0, role: "application", "aria-label": `Prompt timeline. ${KEYS}` },
    this.rowsBox,
    this.axis,
    this.hoverMark,
    this.selectedMark,
    this.brushMark,
  );
  overview = new Overview((from, span) => this.show(viewFrom(this.view, this.count, from, span)));
  element = make(
    "section",
    { class: "timeline", "aria-label": "Prompt timeline" },
    make("div", { class: "timeline-head" }, this.legend, this.makeButtons()),
    this.plot,
    this.overview.element,
    this.readout,
    this.spoken,
  );

  /** @param {TimelineOptions} [options] */
  constructor(options = {}) {
    this.options = options;
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.plot);
    this.stops = [onTheme(() => this.redraw()), addGestures(this)];
  }

  makeButtons() {
    /** @type {[string, string, () => void][]} */
    const actions = [
      ["−", "Zoom out", () => this.zoom(2)],
      ["+", "Zoom in", () => this.zoom(0.5)],
      ["All calls", "All calls", () => this.showWhole()],
    ];
    const buttons = actions.map(([text, label, onclick]) =>
      make("button", { type: "button", class: "quiet", "aria-label": label, onclick }, text),
    );
    return make("div", { class: "buttons", role: "group", "aria-label": "Zoom" }, buttons);
  }

  /** Show these rows; what is in view stays, and the selection where its call is still there. @param {Row[]} rows */
  setRows(rows) {
    const wasWhole = this.isWhole();
    this.rows = rows.map(makeRow);
    this.count = slotCount(rows.map((row) => row.series));
    fill(this.rowsBox, this.rows.map(rowFigure));
    fill(this.legend, makeLegend(rows.map((row) => row.series)));
    const span = this.view.to - this.view.from;
    this.view = wasWhole ? wholeView(this.view, this.count) : viewFrom(this.view, this.count, this.view.from, span);
    if (this.selected >= this.main.length) this.selected = -1;
    this.say(this.selectedSlot);
    this.redraw();
  }

  /** @returns {Series} */
  get main() {
    return this.rows[0].row.series;
  }

  get selectedSlot() {
    return this.selected < 0 ? -1 : this.main.slot[this.selected];
  }

  isWhole() {
    return !this.rows.length || this.view.to - this.view.from >= wholeSpan(this.view, this.count) - 0.01;
  }

  /**
   * Mark a call of the first row and bring it into view.
   * @param {number} index
   * @param {{around?: boolean, quiet?: boolean}} [how]
   */
  select(index, { around = false, quiet = false } = {}) {
    if (index < 0 || index >= this.main.length) return;
    this.resize();
    this.selected = index;
    const move = around ? viewAround : viewWith;
    this.view = move(this.view, this.count, this.selectedSlot);
    this.say(this.selectedSlot);
    this.redraw();
    if (quiet) return;
    this.spoken.textContent = this.wordsOf(this.selectedSlot).join(" ");
    this.options.onSelect?.(index);
  }

  /** @param {number} index */
  open(index) {
    this.select(index, { quiet: true });
    if (index >= 0) this.options.onOpen?.(index);
  }

  /** Mark the slot under the pointer; -1 ends that. @param {number} slot */
  hover(slot) {
    this.hovered = slot;
    this.place(this.hoverMark, slot, slot + 1);
    this.say(slot >= 0 ? slot : this.selectedSlot);
  }

  /** The part of the axis that a drag encloses; null ends that. @param {[number, number] | null} part slots */
  brush(part) {
    this.place(this.brushMark, part ? part[0] : -1, part ? part[1] : -1);
  }

  /** @param {View} view */
  show(view) {
    this.view = view;
    this.redraw();
  }

  showWhole() {
    this.show(wholeView(this.view, this.count));
  }

  /** @param {number} factor below 1: in @param {number} [at] where it stays, 0 to 1; the selected call by default */
  zoom(factor, at) {
    const selected = leftOf(this.view, this.selectedSlot + 0.5) / this.view.width;
    const inView = this.selected >= 0 && selected >= 0 && selected <= 1;
    this.show(zoomView(this.view, this.count, factor, at ?? (inView ? selected : 0.5)));
  }

  /** @param {number} pixels */
  pan(pixels) {
    this.show(panView(this.view, this.count, pixels / slotWidth(this.view)));
  }

  /** Index of the call of the first row that stands at x CSS pixels. @param {number} x */
  callAt(x) {
    return callBetween(this.main, slotAt(this.view, x), slotAt(this.view, x + 1));
  }

  resize() {
    const width = this.plot.clientWidth;
    if (!width || width === this.view.width || !this.rows.length) return;
    const wasWhole = this.isWhole();
    const span = this.view.to - this.view.from;
    this.view = viewFrom({ ...this.view, width }, this.count, this.view.from, span);
    if (wasWhole) this.view = wholeView(this.view, this.count);
    this.redraw();
  }

  redraw() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    if (!this.rows.length || this.view.width <= 1) return;
    drawRows(this.rows, this.view);
    paintAxis(this.axis, this.main, this.view);
    this.overview.draw(this.main, this.view, this.count);
    this.overview.element.hidden = this.isWhole();
    this.place(this.selectedMark, this.selectedSlot, this.selectedSlot + 1);
    this.place(this.hoverMark, this.hovered, this.hovered + 1);
  }

  /** @param {HTMLElement} mark @param {number} from slot, below 0: hide @param {number} to */
  place(mark, from, to) {
    mark.hidden = from < 0 || to <= this.view.from || from >= this.view.to;
    mark.style.top = `${this.rows[0]?.canvas.parentElement?.offsetTop ?? 0}px`;
    const [left, right] = [leftOf(this.view, from), leftOf(this.view, to)];
    mark.style.left = `${Math.max(-1, left - 1)}px`;
    mark.style.width = `${Math.max(3, Math.min(this.view.width, right) - Math.max(0, left) + 1)}px`;
  }

  /** @param {number} slot below 0: how the timeline is used */
  say(slot) {
    const hint = `${countText(this.main.length, "call")}. ${KEYS}${this.options.onOpen ? OPENS : ""}`;
    const lines = slot < 0 ? [hint] : this.wordsOf(slot);
    fill(
      this.readout,
      lines.map((line) => make("span", {}, line)),
    );
  }

  /** @param {number} slot */
  wordsOf(slot) {
    const rows = this.rows.map(({ row }) => row);
    return describeSlot(rows, slot);
  }

  /** End what outlives the element. */
  close() {
    this.observer.disconnect();
    for (const stop of this.stops) stop();
  }
}
