/** A call: dollars by class, the cause in words, its usage, and its prompt block by block. */

import { getKept } from "./api.js";
import { makeBlocks } from "./blocks.js";
import { makeDifference } from "./differences.js";
import { errorText, make, makeTable } from "./dom.js";
import { bindUnits, dollarPlaces, dollars, duration, grouped, percent } from "./format.js";
import { CLASS_NAMES } from "./series.js";
import { momentText, secondsOf } from "./times.js";

const PRICED = ["read", "write_1h", "write_5m", "input", "output", "fees"];

/**
 * @param {string} path of the session
 * @param {string} address of the call's page
 * @param {number} number
 * @param {number} block opened at once, 0 for none
 * @param {boolean} hasText
 */
export async function showCall(path, address, number, block, hasText) {
  /** @type {CallAnswer} */
  let answer;
  try {
    answer = await getKept(`${path}/call/${number}`);
  } catch (error) {
    return errorText(error);
  }
  const loadBlock = (/** @type {number} */ n) => getKept(`${path}/call/${number}/block/${n}`);
  return make(
    "div",
    { class: "call" },
    makeCallHead(answer, address),
    makeCosts(answer),
    makeBlocks(answer, { address, opened: block, loadBlock, hasText: hasText && answer.has_text }),
  );
}

/** @param {CallAnswer} answer @param {string} address */
function makeCallHead(answer, address) {
  const { call, before, difference, blocks } = answer;
  const base = address.replace(/\/call\/.*/, "");
  const block = blocks.find((each) => each.n === difference?.block);
  const previous = before && make("a", { href: `${base}/call/${before}` }, `Call before: ${grouped(before)}`);
  return make(
    "div",
    { class: "call-head" },
    make("h2", {}, `Call ${grouped(call.number)}: ${dollars(call.cost_usd)}`),
    make("p", { class: "cause" }, causeOf(call)),
    call.cache_miss_reason && make("p", {}, `The provider says: ${call.cache_miss_reason}`),
    make("p", { class: "small muted" }, circumstances(call)),
    difference && makeDifference(difference, block, before),
    make("p", { class: "small" }, previous, " ", make("a", { href: base, class: "close" }, "Close")),
  );
}

/** @param {CallAnswer["call"]} call */
function causeOf({ cost_by_class_usd: costs, message, cause_name: name }) {
  const words = bindUnits(message ?? name);
  if (!(Number(costs.rewritten ?? 0) > 0)) return [words];
  return [make("b", {}, dollars(costs.rewritten)), ` of it to write again what had been cached: ${words}`];
}

/** "8 Jan 2026 08:17:13 UTC · main · claude-opus-4-5 · idle for 15 min before" @param {CallAnswer["call"]} call */
function circumstances({ time, agent, model, event, idle_s: idle }) {
  const pause = idle !== null && idle > 60 ? `idle for ${duration(idle)} before` : "";
  return [momentText(secondsOf(time)), agent, model, bindUnits(event), pause].filter(Boolean).join(" · ");
}

/** @param {CallAnswer} answer */
function makeCosts({ call, simulated }) {
  const counts = countsOf(call.usage);
  const priced = PRICED.filter((name) => counts[name] || Number(call.cost_by_class_usd[name]));
  const places = dollarPlaces(priced.map((name) => call.cost_by_class_usd[name]));
  const other = simulated ? countsOf(simulated.usage) : null;
  const total = Number(call.cost_usd) || 0;
  const rows = priced.map((name) => [
    make("span", { class: "number" }, make("i", { class: name, "aria-hidden": "true" }), CLASS_NAMES[name]),
    dollars(call.cost_by_class_usd[name], places),
    total ? percent(Number(call.cost_by_class_usd[name]) / total) : "",
    name in counts ? grouped(counts[name]) : "",
    ...(other ? [name in other ? grouped(other[name]) : ""] : []),
  ]);
  const bar = make(
    "div",
    { class: "bar", "aria-hidden": "true" },
    priced.map((name) => share(name, Number(call.cost_by_class_usd[name]), total)),
  );
  const sources = make(
    "p",
    { class: "small muted" },
    call.file && `${call.file}${call.line ? `:${call.line}` : ""}`,
    simulated && ` · simulated ${dollars(simulated.cost_usd)}`,
  );
  const heads = ["class", "dollars", "share", "tokens", ...(other ? ["tokens simulated"] : [])];
  return make(
    "div",
    { class: "costs" },
    bar,
    makeTable({ caption: "Dollars and tokens by class", heads, rows }),
    sources,
  );
}

/** @param {string} name @param {number} usd @param {number} total */
function share(name, usd, total) {
  const part = make("i", { class: name });
  part.style.width = `${total ? (usd / total) * 100 : 0}%`;
  return part;
}

/** Tokens by class. @param {Usage} usage @returns {Record<string, number>} */
function countsOf(usage) {
  const written = usage.cache_creation;
  return {
    read: usage.cache_read_input_tokens,
    write_1h: written?.ephemeral_1h_input_tokens ?? 0,
    write_5m: written ? written.ephemeral_5m_input_tokens : usage.cache_creation_input_tokens,
    input: usage.input_tokens,
    output: usage.output_tokens,
  };
}
