/** The strategies of a scenario on one axis and one scale, and those of another revision beside them. */

import { getKept } from "./api.js";
import { makeCallsTable } from "./calls_table.js";
import { fill, make, makeTable } from "./dom.js";
import { bindUnits, countText, dollarChange, dollarPlaces, dollars, percent } from "./format.js";
import { addKeys } from "./keys.js";
import { indexOfNumber } from "./series.js";
import { alignByNumber } from "./slots.js";
import { strategyRows } from "./strategy_rows.js";
import { Timeline } from "./timeline.js";

/** @typedef {import("./router.js").Route} Route */
/** @typedef {import("./strategy_rows.js").StrategyRow} StrategyRow */

/** So many timelines are shown at once; the rest when they are asked for. */
const ROWS_AT_ONCE = 6;

/** @param {Route} route */
export async function showRun(route) {
  const page = new RunPage(await getKept("run"), route.strategy);
  return {
    element: page.element,
    title: page.answer.name,
    update: page.update.bind(page),
    close: page.close.bind(page),
  };
}

class RunPage {
  timeline = new Timeline({ onSelect: (index) => this.remember(index) });
  more = make("p", {});

  /** @param {RunAnswer} answer @param {string} strategy whose timeline comes first, "" for any */
  constructor(answer, strategy) {
    this.answer = answer;
    this.rows = strategyRows(answer, strategy);
    this.table = makeCallsTable(
      () => this.timeline.main,
      () => null,
      this.rows[0]?.label,
    );
    const shown = this.rows.length ? [this.timeline.element, this.more] : [];
    this.element = make(
      "div",
      { class: "page" },
      make("p", { class: "crumb muted" }, answer.name),
      make("p", { class: "question" }, bindUnits(answer.question)),
      make("h1", { class: "answer" }, bindUnits(answer.answer)),
      make("p", { class: "more muted" }, bindUnits(answer.about)),
      costTable(answer),
      shown,
      findingList(answer),
      this.rows.length ? this.table.element : null,
    );
    this.stop = this.rows.length ? addKeys(this.timeline) : () => {};
    this.show(ROWS_AT_ONCE);
  }

  /** @param {number} count how many timelines */
  show(count) {
    const rows = this.rows.slice(0, count);
    if (!rows.length) return;
    alignByNumber(rows.map((row) => row.series));
    this.timeline.setRows(rows);
    const left = this.rows.length - rows.length;
    const label = `Show ${countText(left, "more timeline")}`;
    const onclick = () => this.show(this.rows.length);
    fill(this.more, left > 0 && make("button", { type: "button", class: "quiet", onclick }, label));
  }

  /** @param {number} index */
  remember(index) {
    const { name, series } = this.rows[0];
    const address = `#/run/${encodeURIComponent(name)}/call/${series.number[index]}`;
    window.history.replaceState(null, "", address);
  }

  /** @param {Route} route */
  update(route) {
    if (!route.call || !this.rows.length) return;
    this.timeline.select(indexOfNumber(this.timeline.main, route.call), { around: true, quiet: true });
  }

  close() {
    this.stop();
    this.timeline.close();
    this.table.close();
  }
}

/** @param {RunAnswer} answer */
function costTable(answer) {
  const others = new Map(answer.other?.strategies.map((each) => [each.name, each]));
  const places = dollarPlaces(answer.strategies.map((each) => each.cost_usd));
  const base = answer.strategies.find((each) => each.name === answer.compare_to);
  const heads = ["strategy", "cost", `difference to ${answer.compare_to}`];
  const rows = answer.strategies.map((each) => {
    const difference = each === base ? "" : `${dollarChange(each.difference_usd, places)}${shareOf(each, base)}`;
    const refused = each.refused
      ? make("span", { class: "muted" }, ` · ${countText(each.refused, "call")} refused`)
      : "";
    const name = make("span", {}, each.name, refused);
    return [name, dollars(each.cost_usd, places), difference, ...besideOther(answer, each, others, places)];
  });
  if (answer.other) heads.push(answer.other.title, "change");
  return makeTable({ caption: `Cost of ${countText(rows.length, "strategy")}`, heads, rows });
}

/** " (−6.5%)" @param {StrategyAnswer} strategy @param {StrategyAnswer | undefined} base */
function shareOf(strategy, base) {
  const from = Number(base?.cost_usd ?? 0);
  return from ? ` (${percent((Number(strategy.cost_usd) - from) / from, { signed: true })})` : "";
}

/**
 * The cells of the other revision.
 * @param {RunAnswer} answer
 * @param {StrategyAnswer} strategy
 * @param {Map<string, StrategyAnswer>} others
 * @param {number} places
 */
function besideOther(answer, strategy, others, places) {
  if (!answer.other) return [];
  const other = others.get(strategy.name);
  const change = other ? dollarChange(Number(strategy.cost_usd) - Number(other.cost_usd), places) : "";
  return [dollars(other?.cost_usd, places), change];
}

/** What is noted of each strategy; what is noted of all stands once. @param {RunAnswer} answer */
function findingList({ strategies }) {
  /** @type {Map<string, string[]>} */
  const named = new Map();
  for (const { name, findings } of strategies)
    for (const finding of findings) named.set(finding, [...(named.get(finding) ?? []), name]);
  if (!named.size) return null;
  const items = [...named].map(([finding, names]) => {
    const whose = names.length === strategies.length ? "" : `${names.join(", ")}: `;
    return make("li", {}, make("b", {}, whose), bindUnits(finding));
  });
  return make("section", { class: "findings" }, make("h2", {}, "Findings"), make("ul", {}, items));
}
