/** The calls of a timeline as a table, for screen readers and for reading figures; built when it is opened. */

import { make } from "./dom.js";
import { dollarPlaces, dollars, grouped } from "./format.js";
import { known } from "./readout.js";
import { CLASS_NAMES, classesIn, largest } from "./series.js";
import { clockText, dayText } from "./times.js";
import { WindowRows } from "./window_rows.js";

/** @typedef {import("./series.js").Series} Series */

/**
 * @param {() => Series} series @param {(index: number) => string | null} href address of a call's page, null for none
 * @param {string} [name] whose calls they are
 * @returns {{element: HTMLElement, update: () => void, close: () => void}}
 */
export function makeCallsTable(series, href, name = "") {
  const title = `Calls${name && ` of ${name}`} as a table`;
  /** @type {WindowRows | null} */
  let rows = null;
  const box = make("div", { class: "calls-box", tabindex: 0, role: "region", "aria-label": title });
  const element = make("details", { class: "data", ontoggle: update }, make("summary", {}, title), box);
  function update() {
    if (!element.open) return;
    rows ??= new WindowRows({
      caption: "Calls; times in UTC",
      className: "calls",
      cells: (at) => callCells(series(), at, href),
      box,
    });
    if (!rows.element.isConnected) box.append(rows.element);
    rows.setColumns(callColumns(series()));
    rows.setCount(series().length);
  }
  return { element, update, close: () => rows?.close() };
}

/** @param {Series} series @returns {import("./window_rows.js").Column[]} */
function callColumns(series) {
  const figure = (/** @type {string} */ key, /** @type {string} */ head) => ({ key, head, isNumber: true });
  return [
    figure("call", "call"),
    { key: "time", head: "time" },
    ...shapeOf(series).shown.map((name) => figure("tokens", CLASS_NAMES[name])),
    figure("tokens", "output"),
    figure("usd", "cost"),
    figure("usd", "rewritten"),
    { key: "cause", head: "cause" },
  ];
}

/**
 * @param {Series} series
 * @param {number} at
 * @param {(index: number) => string | null} href
 * @returns {(string | Node)[]}
 */
function callCells(series, at, href) {
  const number = series.number[at] ? grouped(series.number[at]) : "extra";
  const address = href(at);
  const { shown, places } = shapeOf(series);
  return [
    address ? make("a", { href: address }, number) : number,
    Number.isNaN(series.start[at]) ? "" : `${dayText(series.start[at]).slice(0, -5)} ${clockText(series.start[at])}`,
    ...shown.map((name) => grouped(series.classes[name][at])),
    grouped(series.output[at]),
    dollars(known(series.cost[at]), places),
    series.rewritten[at] > 0 ? dollars(series.rewritten[at], places) : "",
    series.causes[series.cause[at]]?.name ?? "",
  ];
}

/**
 * What is the same for all rows: the classes that occur, and the digits of dollars.
 * @typedef {{shown: TokenClass[], places: number}} Shape
 */
/** @type {WeakMap<Series, Shape>} */
const shapes = new WeakMap();

/** @param {Series} series @returns {Shape} */
function shapeOf(series) {
  const shape = shapes.get(series) ?? { shown: classesIn([series]), places: dollarPlaces([largest(series.cost)]) };
  shapes.set(series, shape);
  return shape;
}
