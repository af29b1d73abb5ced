/** A long table of which only the rows in sight are in the document, for thousands of rows. */

import { fill, make } from "./dom.js";

const MARGIN = 8;

/**
 * @typedef {object} Column
 * @property {string} key a class of its cells
 * @property {string} head what stands above it, "" for none
 * @property {boolean} [isNumber]
 * @property {{isOn: boolean, isDown: boolean, onclick: () => void}} [sort]
 */

export class WindowRows {
  /**
   * @param {object} options
   * @param {string} options.caption @param {string} options.className
   * @param {(index: number) => (string | Node)[]} options.cells the cells of a row, in the order of the columns
   * @param {HTMLElement | null} [options.box] the box that scrolls; without one the page does
   */
  constructor({ caption, className, cells, box = null }) {
    this.cells = cells;
    this.box = box;
    this.count = 0;
    /** @type {Column[]} */
    this.columns = [];
    this.head = make("div", { role: "rowgroup", class: "head" });
    this.body = make("div", { role: "rowgroup", class: "body" });
    this.element = make(
      "div",
      { role: "table", class: `window-rows ${className}`, "aria-label": caption },
      this.head,
      this.body,
    );
    this.listen = () => this.schedule();
    (box ?? window).addEventListener("scroll", this.listen, { passive: true });
    window.addEventListener("resize", this.listen);
  }

  /** @param {Column[]} columns */
  setColumns(columns) {
    this.columns = columns;
    fill(this.head, make("div", { role: "row", class: "line" }, columns.map(makeColumnHead)));
    this.element.setAttribute("aria-colcount", String(columns.length));
  }

  /** @param {number} count */
  setCount(count) {
    this.count = count;
    this.element.setAttribute("aria-rowcount", String(count + 1));
    this.range = "";
    this.render();
    this.schedule(); // what a row and the box measure is known when both are in the page
  }

  schedule() {
    cancelAnimationFrame(this.frame ?? 0);
    this.frame = requestAnimationFrame(() => this.render());
  }

  /** Height of a row in CSS pixels, as the style sheet has it for this width. */
  get rowHeight() {
    return parseFloat(getComputedStyle(this.element).getPropertyValue("--row-height")) || 40;
  }

  render() {
    const high = this.rowHeight;
    const top = this.body.getBoundingClientRect().top - (this.box?.getBoundingClientRect().top ?? 0);
    const sight = this.box?.clientHeight ?? window.innerHeight;
    const first = Math.max(0, Math.floor(-top / high) - MARGIN);
    const last = Math.min(this.count, Math.ceil((sight - top) / high) + MARGIN);
    this.body.style.height = `${this.count * high}px`;
    if (this.range === `${first}-${last}-${high}`) return;
    this.range = `${first}-${last}-${high}`;
    this.renderRange(first, Math.max(first, last), high);
  }

  /**
   * Rows that stay keep their element, and with it the focus.
   * @param {number} first
   * @param {number} last
   * @param {number} high
   */
  renderRange(first, last, high) {
    const focused = this.focusedRow();
    const rows = [];
    for (let at = first; at < last; at += 1) rows.push(this.makeRow(at, high));
    fill(this.body, rows);
    if (focused >= first && focused < last) this.focus(focused);
  }

  /** @param {number} at @param {number} high */
  makeRow(at, high) {
    const cells = this.cells(at).map((cell, place) =>
      make("div", { role: "cell", class: cellClass(this.columns[place]) }, cell),
    );
    const row = make("div", { role: "row", class: "line", "aria-rowindex": at + 2, "data-row": at }, cells);
    row.style.top = `${at * high}px`;
    return row;
  }

  /** Index of the row that has the focus, -1 for none. */
  focusedRow() {
    const row = this.body.contains(document.activeElement) ? document.activeElement?.closest("[data-row]") : null;
    return row ? Number(row.getAttribute("data-row")) : -1;
  }

  /** Focus the link of a row, scrolled into sight. @param {number} at */
  focus(at) {
    const find = () => /** @type {HTMLElement | null} */ (this.body.querySelector(`[data-row="${at}"] a`));
    if (!find()) {
      const top = at * this.rowHeight;
      if (this.box) this.box.scrollTop = top;
      else window.scrollTo(0, this.body.getBoundingClientRect().top + window.scrollY + top - window.innerHeight / 2);
      this.render();
    }
    find()?.focus();
  }

  close() {
    (this.box ?? window).removeEventListener("scroll", this.listen);
    window.removeEventListener("resize", this.listen);
  }
}

/** @param {Column} column */
function makeColumnHead({ key, head, isNumber, sort }) {
  const label = sort
    ? make(
        "button",
        { type: "button", onclick: sort.onclick },
        head,
        sort.isOn && make("span", { "aria-hidden": "true" }, sort.isDown ? " ↓" : " ↑"),
      )
    : head;
  const order = sort?.isOn ? (sort.isDown ? "descending" : "ascending") : null;
  return make("div", { role: "columnheader", class: cellClass({ key, head, isNumber }), "aria-sort": order }, label);
}

/** @param {Column} column */
function cellClass({ key, isNumber }) {
  return `cell ${key}${isNumber ? " number" : ""}`;
}
