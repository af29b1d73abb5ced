/** The prompt of a call block by block, beside that of the call before; what is the same is folded. */

import { makeBlockRow, makeGoneRow } from "./block_row.js";
import { make } from "./dom.js";
import { countText, dollarPlaces, dollars, grouped, percent, tokenText } from "./format.js";
import { CLASS_NAMES, CLASSES } from "./series.js";
import { swatch } from "./legend.js";

/**
 * @typedef {object} BlockOptions
 * @property {string} address of the call's page
 * @property {number} opened a block that is open at once, 0 for none
 * @property {(n: number) => Promise<BlockAnswer>} loadBlock
 * @property {boolean} hasText
 * @typedef {ComparedBlock | {gone: PromptBlock}} Entry
 */

/** A run of so many blocks that say nothing new is folded. */
const FOLD_FROM = 4;
/** So many rows are made at once; the rest when they are asked for. */
const AT_ONCE = 150;

/** @param {CallAnswer} answer @param {BlockOptions} options */
export function makeBlocks(answer, options) {
  if (!answer.blocks.length)
    return make("p", { class: "muted" }, "What was sent is not recorded, so there are no blocks to show.");
  const price = pricePerToken(answer);
  const places = dollarPlaces(answer.blocks.map((block) => (price[block.state] ?? 0) * block.tokens));
  const entries = inOrder(answer);
  const list = make("div", { class: "blocks" });
  let layer = "";
  for (const run of makeRuns(entries, options.opened)) {
    const first = run[0];
    const here = "gone" in first ? layer : first.layer;
    if (here !== layer)
      list.append(make("h4", {}, here, make("span", { class: "muted" }, ` ${layerWords(answer.blocks, here)}`)));
    layer = here;
    const rows = () => run.map((entry) => makeEntryRow(entry, answer, options, { price, places }));
    list.append(
      ...(run.length >= FOLD_FROM && isQuiet(first, options.opened)
        ? [foldRun(run, rows)]
        : inPortions(rows, run.length)),
    );
  }
  return make(
    "div",
    { class: "prompt" },
    make("h3", {}, `Prompt: ${countText(answer.blocks.length, "block")}`),
    legendOf(answer.blocks),
    sides(answer),
    list,
  );
}

/**
 * @param {Entry} entry
 * @param {CallAnswer} answer
 * @param {BlockOptions} options
 * @param {{price: Record<string, number>, places: number}} money
 */
function makeEntryRow(entry, answer, options, { price, places }) {
  if ("gone" in entry) return makeGoneRow(entry.gone, options.hasText);
  const usd = price[entry.state];
  const dollarsOf = !usd ? "" : dollars((usd * entry.tokens).toFixed(9), places);
  const total = Number(answer.call.cost_usd);
  const share = usd && total ? percent((usd * entry.tokens) / total) : "";
  return makeBlockRow(entry, answer, { ...options, cost: dollarsOf, share });
}

/**
 * Blocks of the call before that are no longer there stand where they stood.
 * @param {CallAnswer} answer
 * @returns {Entry[]}
 */
function inOrder(answer) {
  const waiting = [...answer.gone].sort((a, b) => a.n - b.n);
  /** @type {Entry[]} */
  const entries = [];
  for (const block of answer.blocks) {
    while (waiting.length && block.before_n !== null && waiting[0].n < block.before_n)
      entries.push({ gone: /** @type {PromptBlock} */ (waiting.shift()) });
    entries.push(block);
  }
  return [...entries, ...waiting.map((gone) => ({ gone }))];
}

/**
 * A block that is as it was, without a breakpoint, is of no interest unless it is opened.
 * @param {Entry} entry
 * @param {number} opened
 */
function isQuiet(entry, opened) {
  return !("gone" in entry) && entry.change === "same" && entry.breakpoint === null && entry.n !== opened;
}

/** @param {Entry} entry @param {number} opened */
function kindOf(entry, opened) {
  return "gone" in entry ? "gone" : `${entry.layer} ${isQuiet(entry, opened) ? entry.state : "loud"}`;
}

/** Neighbours of one kind. @param {Entry[]} entries @param {number} opened @returns {Entry[][]} */
function makeRuns(entries, opened) {
  /** @type {Entry[][]} */
  const runs = [];
  for (const entry of entries) {
    const run = runs[runs.length - 1];
    if (run && kindOf(run[0], opened) === kindOf(entry, opened)) run.push(entry);
    else runs.push([entry]);
  }
  return runs;
}

/** @param {Entry[]} run @param {() => HTMLElement[]} rows */
function foldRun(run, rows) {
  const blocks = /** @type {ComparedBlock[]} */ (run);
  const [first, last] = [blocks[0], blocks[blocks.length - 1]];
  const count = blocks.reduce((sum, block) => sum + block.tokens, 0);
  const body = make("div", {});
  const state = CLASS_NAMES[first.state] ?? first.state;
  const words = `Blocks ${grouped(first.n)}–${grouped(last.n)}: the same as before, ${state}, ${tokenText(count)}`;
  const fold = make(
    "details",
    {
      class: `run state-${first.state}`,
      ontoggle: () => body.childNodes.length || body.append(...inPortions(rows, run.length)),
    },
    make("summary", {}, words),
    body,
  );
  return fold;
}

/**
 * The first rows, and a button for the next ones.
 * @param {() => HTMLElement[]} rows
 * @param {number} length
 * @returns {HTMLElement[]}
 */
function inPortions(rows, length) {
  const all = rows();
  if (length <= AT_ONCE) return all;
  const more = make(
    "button",
    { type: "button", class: "quiet more-rows", onclick: () => more.replaceWith(...portion()) },
    "",
  );
  let shown = AT_ONCE;
  const label = () => (more.textContent = `Show more: ${countText(length - shown, "block")}`);
  function portion() {
    const next = all.slice(shown, shown + AT_ONCE);
    shown += next.length;
    label();
    return shown < length ? [...next, more] : next;
  }
  label();
  return [...all.slice(0, AT_ONCE), more];
}

/**
 * Dollars a token of each state: what its class cost, over the tokens of its blocks.
 * @param {CallAnswer} answer
 * @returns {Record<string, number>}
 */
function pricePerToken({ call, blocks }) {
  /** @type {Record<string, number>} */
  const prices = { stripped: 0 };
  for (const name of CLASSES) {
    const count = blocks.reduce((sum, block) => sum + (block.state === name ? block.tokens : 0), 0);
    if (count) prices[name] = Number(call.cost_by_class_usd[name] ?? 0) / count;
  }
  return prices;
}

/** @param {ComparedBlock[]} blocks @param {string} layer */
function layerWords(blocks, layer) {
  const own = blocks.filter((block) => block.layer === layer);
  return `${countText(own.length, "block")}, ${tokenText(own.reduce((sum, block) => sum + block.tokens, 0))}`;
}

/** @param {ComparedBlock[]} blocks */
function legendOf(blocks) {
  const states = [...CLASSES, "hidden", "stripped"].filter((state) => blocks.some((block) => block.state === state));
  return make(
    "ul",
    { class: "key" },
    states.map((state) => swatch(state, CLASS_NAMES[state])),
    blocks.some((block) => block.breakpoint) && swatch("tick", "breakpoint"),
  );
}

/** @param {CallAnswer} answer */
function sides({ call, before }) {
  return make(
    "div",
    { class: "sides muted small", "aria-hidden": "true" },
    make("span", {}, `call ${grouped(call.number)}`),
    make("span", {}, before === null ? "no call before" : `call ${grouped(before)}, the one before`),
  );
}
