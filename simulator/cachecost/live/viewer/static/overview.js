/** The whole axis in a strip: which part is in view, to be dragged; a click moves it there. */

import { binCalls } from "./bins.js";
import { make } from "./dom.js";
import { prepareCanvas } from "./paint.js";
import { largest } from "./series.js";
import { colour } from "./theme.js";
import { wholeSpan } from "./views.js";

/** @typedef {import("./series.js").Series} Series */
/** @typedef {import("./bins.js").View} View */

const STRIP_HEIGHT = 34;

export class Overview {
  canvas = make("canvas", { "aria-hidden": "true" });
  window = make("div", { class: "window" });
  element = make("div", { class: "overview", hidden: true }, this.canvas, this.window);
  /** @type {View} */
  view = { from: 0, to: 1, width: 1 };
  whole = 1;
  /** What is painted already: it changes seldom. @type {Series | null} */
  painted = null;
  key = "";

  /** @param {(from: number, span: number) => void} onMove slots */
  constructor(onMove) {
    this.onMove = onMove;
    this.element.addEventListener("pointerdown", (event) => this.start(event));
  }

  /** @param {Series} series @param {View} view @param {number} count */
  draw(series, view, count) {
    this.view = view;
    this.whole = wholeSpan(view, count);
    this.paint(series, { from: 0, to: this.whole, width: view.width });
    this.window.style.left = `${(view.from / this.whole) * 100}%`;
    this.window.style.width = `${((view.to - view.from) / this.whole) * 100}%`;
  }

  /** @param {Series} series @param {View} all */
  paint(series, all) {
    const key = [series.length, all.to, all.width, colour("paper"), window.devicePixelRatio].join();
    if (this.painted === series && this.key === key) return;
    [this.painted, this.key] = [series, key];
    const context = prepareCanvas(this.canvas, all.width, STRIP_HEIGHT);
    const bins = binCalls(series, all);
    const columns = (
      /** @type {Int32Array} */ indices,
      /** @type {Float64Array} */ values,
      /** @type {string} */ name,
    ) => {
      const [most, step] = [largest(values) || 1, Math.max(1, all.width / (all.to - all.from))];
      context.fillStyle = colour(name);
      indices.forEach(
        (at, column) =>
          at >= 0 && context.fillRect(column * step, STRIP_HEIGHT, step, (-values[at] / most) * STRIP_HEIGHT),
      );
    };
    columns(bins.tallest, series.prompt, "read");
    columns(bins.rewritten, series.rewritten, "bad");
  }

  /** @param {PointerEvent} event */
  start(event) {
    const box = this.element.getBoundingClientRect();
    const slotOf = (/** @type {PointerEvent} */ at) => ((at.clientX - box.left) / box.width) * this.whole;
    const span = this.view.to - this.view.from;
    const pressed = slotOf(event);
    const grip = pressed >= this.view.from && pressed <= this.view.to ? pressed - this.view.from : span / 2;
    const move = (/** @type {PointerEvent} */ at) => this.onMove(slotOf(at) - grip, span);
    move(event);
    this.element.setPointerCapture(event.pointerId);
    this.element.addEventListener("pointermove", move);
    const end = () => this.element.removeEventListener("pointermove", move);
    this.element.addEventListener("pointerup", end, { once: true });
    this.element.addEventListener("pointercancel", end, { once: true });
  }
}
