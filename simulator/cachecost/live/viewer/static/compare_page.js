/** Two recordings beside each other: calls that correspond share a place on the axis. */

import { getKept } from "./api.js";
import { makeCallsTable } from "./calls_table.js";
import { make, makeTable } from "./dom.js";
import { bindUnits, dollarChange, dollarPlaces, dollars, grouped, percent, UNKNOWN } from "./format.js";
import { addKeys } from "./keys.js";
import { toSeries } from "./series.js";
import { rowWords } from "./session_head.js";
import { alignByPairs } from "./slots.js";
import { Timeline } from "./timeline.js";

export async function showCompare() {
  /** @type {CompareAnswer} */
  const answer = await getKept("compare");
  const [left, right] = [answer.left, answer.right].map((side) => toSeries(side.calls, side));
  alignByPairs(left, right, answer.pairs);
  const timeline = new Timeline();
  timeline.setRows([
    { label: answer.left.title, words: rowWords(left), series: left },
    { label: answer.right.title, words: rowWords(right), series: right },
  ]);
  const none = () => null;
  const tables = [
    makeCallsTable(() => left, none, answer.left.title),
    makeCallsTable(() => right, none, answer.right.title),
  ];
  const difference = answer.difference_usd;
  const element = make(
    "div",
    { class: "page" },
    make("h1", { class: "crumb muted" }, `${answer.left.title} and ${answer.right.title}`),
    make(
      "p",
      { class: "saving" },
      make("strong", { class: Number(difference) > 0 ? "bad" : "good" }, dollarChange(difference)),
      make("span", {}, bindUnits(answer.words)),
    ),
    sideTable(answer),
    timeline.element,
    tables.map((table) => table.element),
  );
  const stops = [addKeys(timeline), () => timeline.close(), ...tables.map((table) => table.close)];
  return { element, title: "Compare", close: () => stops.forEach((stop) => stop()) };
}

/** @param {CompareAnswer} answer */
function sideTable(answer) {
  const sides = [answer.left, answer.right];
  const places = dollarPlaces(sides.map((side) => side.cost_usd));
  const rows = sides.map((side) => [
    side.title,
    dollars(side.cost_usd, places),
    dollars(side.rewritten_usd, places),
    side.hit_rate === null ? UNKNOWN : percent(side.hit_rate),
    grouped(side.calls.read.length),
  ]);
  return makeTable({
    caption: `${grouped(answer.pairs.length)} calls correspond`,
    heads: ["recording", "cost", "rewritten", "hit rate", "calls"],
    rows,
  });
}
