/** The bill of a server so far, folded: totals, token classes, uncached conversations, and by workspace and model. */

import { getJson } from "./api.js";
import { errorText, fill, make, makeTable } from "./dom.js";
import { bindUnits, countText, dollarPlaces, dollars, grouped, percent, tokens, UNKNOWN } from "./format.js";
import { onLive } from "./live.js";
import { CLASS_NAMES } from "./series.js";

/** @type {[string, "workspaces" | "models" | "conversations"][]} */
const GROUPS = [
  ["workspace", "workspaces"],
  ["model", "models"],
  ["conversation", "conversations"],
];
const BILL_CLASSES = ["read", "write_5m", "write_1h", "input", "output"];

/** @param {string} path of the bill's JSON from the page @returns {HTMLElement} */
export function makeBill(path) {
  const body = make("div", { class: "bill" });
  const element = make("details", { class: "data", ontoggle: update }, make("summary", {}, "Bill so far"), body);
  async function update() {
    if (!element.open) return;
    try {
      fill(body, billParts(await getJson(path)));
    } catch (error) {
      fill(body, errorText(error));
    }
  }
  onLive("sessions", update);
  return element;
}

/** @param {BillAnswer} bill */
function billParts(bill) {
  const { source, error_margin: margin } = bill.tokens;
  const counted = source ? `Tokens: ${source}${margin ? `, ±${percent(margin)}` : ""}. ` : "";
  return [
    make("p", { class: "saving" }, make("span", {}, bindUnits(bill.verdict))),
    bill.total.calls > 0 &&
      [
        make(
          "ul",
          {},
          bill.facts.map((fact) => make("li", {}, bindUnits(fact))),
        ),
        loopList(bill.uncached_loops),
        classTable(bill.total),
        GROUPS.map(([name, list]) => shareTable(name, bill[list])),
      ].flat(),
    make("p", { class: "small muted" }, `${counted}No API was called and nothing was charged.`),
  ].flat();
}

/** @param {BillAnswer["uncached_loops"]} loops */
function loopList(loops) {
  if (!loops.length) return null;
  const items = loops.map((loop) => make("li", {}, bindUnits(loopWords(loop))));
  return make("section", {}, make("h3", { class: "bad" }, "Uncached conversations"), make("ul", {}, items));
}

/** @param {BillAnswer["uncached_loops"][number]} loop */
function loopWords(loop) {
  const share = percent(loop.tokens_again / loop.tokens_sent_before);
  const again = `${tokens(loop.tokens_again)} tokens, ${share} of what had been sent before`;
  const avoidable = Number(loop.avoidable_usd)
    ? `of which ${dollars(loop.avoidable_usd)} is avoidable`
    : "none of it avoidable";
  const calls = countText(loop.later_calls, "later call");
  const paid = `${calls} paid the full price again for ${again}: ${dollars(loop.cost_usd)}, ${avoidable}.`;
  return `${loop.conversation}: ${loop.why}. ${paid}`;
}

/** @param {BillShare} total */
function classTable(total) {
  const counts = countsOfShare(total);
  const places = dollarPlaces(BILL_CLASSES.map((name) => total.cost_by_class_usd[name]));
  const rows = BILL_CLASSES.map((name) => [
    CLASS_NAMES[name],
    grouped(counts[name]),
    dollars(total.cost_by_class_usd[name], places),
  ]);
  return makeTable({ caption: "Cost by token class", heads: ["class", "tokens", "cost"], rows });
}

/** @param {BillShare} share @returns {Record<string, number>} */
function countsOfShare({ usage }) {
  return {
    read: usage.cache_read_input_tokens,
    write_5m: usage.cache_creation?.ephemeral_5m_input_tokens ?? usage.cache_creation_input_tokens,
    write_1h: usage.cache_creation?.ephemeral_1h_input_tokens ?? 0,
    input: usage.input_tokens,
    output: usage.output_tokens,
  };
}

/** @param {string} name @param {BillShare[]} shares */
function shareTable(name, shares) {
  const places = dollarPlaces(shares.flatMap((share) => [share.cost_usd, share.without_caching_usd]));
  const rows = shares.map((share) => {
    const counts = countsOfShare(share);
    const input = counts.read + counts.write_5m + counts.write_1h + counts.input;
    return [
      share.name,
      dollars(share.cost_usd, places),
      share.cache_hit_rate === null ? UNKNOWN : percent(share.cache_hit_rate),
      dollars(share.without_caching_usd, places),
      grouped(share.calls),
      tokens(input),
      ...BILL_CLASSES.map((each) => tokens(counts[each])),
      tokens(share.never_read.tokens),
    ];
  });
  const classes = BILL_CLASSES.map((each) => CLASS_NAMES[each]);
  const heads = [name, "cost", "hit rate", "without caching", "calls", "all input", ...classes, "never read"];
  return makeTable({ caption: `By ${name}`, heads, rows });
}
