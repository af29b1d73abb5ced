/** The strategies of a scenario on one axis and one scale, and those of another revision beside them. */

import { getKept } from "./api.js";
import { addKeys } from "./keys.js";
import { make, makeTable } from "./dom.js";
import { bindUnits, dollarChange, dollarPlaces, dollars, grouped, percent } from "./format.js";
import { makeCallsTable } from "./calls_table.js";
import { indexOfNumber, toSeries } from "./series.js";
import { alignByNumber } from "./slots.js";
import { rowWords } from "./session_head.js";
import { Timeline } from "./timeline.js";

/** @typedef {import("./router.js").Route} Route */
/** @typedef {import("./timeline_rows.js").Row} Row */

/** @param {Route} route */
export async function showRun(route) {
  /** @type {RunAnswer} */
  const answer = await getKept("run");
  const rows = rowsOf(answer, route.strategy);
  const timeline = new Timeline({ onOpen: (index) => go(rows[0], index), onSelect: (index) => go(rows[0], index) });
  const table = makeCallsTable(
    () => timeline.main,
    () => null,
  );
  const element = make(
    "div",
    { class: "page" },
    make("p", { class: "crumb muted" }, answer.name),
    make("p", { class: "question" }, answer.question),
    make("h1", { class: "answer" }, bindUnits(answer.answer)),
    costTable(answer),
    rows.length ? timeline.element : null,
    findings(answer),
    rows.length ? table.element : null,
  );
  const stops = rows.length ? [addKeys(timeline)] : [];
  if (rows.length) timeline.setRows(rows);
  const update = (/** @type {Route} */ to) =>
    to.call && rows.length && timeline.select(indexOfNumber(timeline.main, to.call), { around: true, quiet: true });
  return {
    element,
    title: answer.name,
    update,
    close: () => [...stops, () => timeline.close(), () => table.close()].forEach((stop) => stop()),
  };
}

/** @param {Row} row @param {number} index */
function go(row, index) {
  window.history.replaceState(null, "", runAddress(row.label, row.series.number[index]));
}

/** @param {string} strategy @param {number} call */
function runAddress(strategy, call) {
  return `#/run/${encodeURIComponent(strategy)}/call/${call}`;
}

/**
 * The strategy of the address first; below each that of the other revision.
 * @param {RunAnswer} answer
 * @param {string} strategy
 * @returns {Row[]}
 */
function rowsOf(answer, strategy) {
  const others = new Map(answer.other?.strategies.map((each) => [each.name, each]));
  const ordered = [...answer.strategies].sort((a, b) => Number(b.name === strategy) - Number(a.name === strategy));
  const rows = ordered.flatMap((each) => [
    rowOf(each, each.name, answer),
    rowOf(others.get(each.name), `${each.name}, ${answer.other?.title}`, answer.other ?? answer),
  ]);
  const shown = rows.filter((row) => row !== null);
  alignByNumber(shown.map((row) => row.series));
  return shown;
}

/**
 * @param {StrategyAnswer | undefined} strategy
 * @param {string} label
 * @param {ColumnLists} lists
 * @returns {Row | null}
 */
function rowOf(strategy, label, lists) {
  if (!strategy?.calls) return null;
  const series = toSeries(strategy.calls, lists);
  return { label, words: rowWords(series), series };
}

/** @param {RunAnswer} answer */
function costTable(answer) {
  const others = new Map(answer.other?.strategies.map((each) => [each.name, each]));
  const places = dollarPlaces(answer.strategies.map((each) => each.cost_usd));
  const heads = [
    "strategy",
    "cost",
    `difference to ${answer.compare_to}`,
    "",
    ...(answer.other ? [answer.other.title, "change"] : []),
  ];
  const base = answer.strategies.find((each) => each.name === answer.compare_to);
  const rows = answer.strategies.map((each) => {
    const other = others.get(each.name);
    const ratio =
      base && Number(base.cost_usd) && each !== base
        ? percent((Number(each.cost_usd) - Number(base.cost_usd)) / Number(base.cost_usd), { signed: true })
        : "";
    const beside = answer.other
      ? [
          dollars(other?.cost_usd, places),
          other ? dollarChange(Number(each.cost_usd) - Number(other.cost_usd), places) : "",
        ]
      : [];
    return [
      each.name,
      dollars(each.cost_usd, places),
      each === base ? "" : dollarChange(each.difference_usd, places),
      ratio,
      ...beside,
    ];
  });
  return makeTable({ caption: `Cost of ${grouped(rows.length)} strategies`, heads, rows });
}

/** @param {RunAnswer} answer */
function findings(answer) {
  const words = (/** @type {NonNullable<StrategyAnswer["findings"]>[number]} */ each) =>
    typeof each === "string" ? each : (each.words ?? each.message ?? each.text ?? "");
  const some = answer.strategies.filter((each) => each.findings?.length);
  if (!some.length) return null;
  return make(
    "section",
    { class: "findings" },
    make("h2", {}, "Findings"),
    some.map((each) =>
      make(
        "div",
        {},
        make("h3", {}, each.name),
        make(
          "ul",
          {},
          (each.findings ?? []).map((finding) => make("li", {}, bindUnits(words(finding)))),
        ),
      ),
    ),
  );
}
