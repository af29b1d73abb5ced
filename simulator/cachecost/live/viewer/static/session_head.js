/** What stands above a session's timeline: its headline, the most expensive moments as jumps, facts folded. */

import { make } from "./dom.js";
import { bindUnits, dollarPlaces, dollars, grouped, NBSP, percent } from "./format.js";
import { sumOf } from "./series.js";

/** @typedef {import("./series.js").Series} Series */
/** @typedef {(number: number) => string} Address of a call's page */

/**
 * @param {SessionAnswer} answer
 * @param {Address} address
 * @param {boolean} isRewritten whether anything was written again
 */
export function makeSessionHead(answer, address, isRewritten) {
  const { session, project, title, headline, facts, moments } = answer;
  const place = make("p", { class: "crumb muted" }, [title, session, project].filter(Boolean).join(" · "));
  const none = isRewritten ? null : make("p", { class: "good" }, "Nothing was written again.");
  return [
    place,
    make("h1", { class: "answer" }, bindUnits(headline)),
    moments.length ? makeMoments(moments, address) : none,
    makeFacts(facts),
  ];
}

/** @param {Moment[]} moments @param {Address} address */
function makeMoments(moments, address) {
  const places = dollarPlaces(moments.map((moment) => moment.cost_usd));
  const links = moments.map(({ call, cost_usd, words }) =>
    make(
      "a",
      { class: "moment", href: address(call) },
      make("b", {}, dollars(cost_usd, places)),
      make("span", {}, `call${NBSP}${grouped(call)} · ${bindUnits(words)}`),
    ),
  );
  const head = make("h2", {}, "Most expensive moments");
  return make("nav", { class: "moments", "aria-label": "Most expensive moments" }, head, make("div", {}, links));
}

/** @param {SessionAnswer["facts"]} facts */
function makeFacts(facts) {
  const rows = facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, bindUnits(value))));
  return make("details", { class: "facts" }, make("summary", {}, "About this session"), make("dl", {}, rows));
}

/**
 * "$8.38 · cache hit rate 95%", of a row of a timeline.
 * @param {Series} series
 * @param {string | null} [cost] USD, else the sum
 */
export function rowWords(series, cost) {
  const prompt = sumOf(series.prompt);
  const rate = prompt ? ` · cache hit rate ${percent(sumOf(series.classes.read) / prompt)}` : "";
  return `${dollars(cost ?? sumOf(series.cost).toFixed(9))}${rate}`;
}
