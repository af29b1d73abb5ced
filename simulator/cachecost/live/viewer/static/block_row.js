/** One block of a prompt: its state, tokens and share; its text beside that of the call before; opened, its diff. */

import { blockName, makeDiff } from "./differences.js";
import { errorText, figureText, fill, make, unseen } from "./dom.js";
import { grouped, sizeText, tokenText } from "./format.js";
import { CLASS_NAMES } from "./series.js";

/** @typedef {import("./blocks.js").BlockOptions & {cost: string, share: string}} RowOptions */

/** @param {ComparedBlock} block @param {CallAnswer} answer @param {RowOptions} options */
export function makeBlockRow(block, answer, options) {
  const body = make("div", { class: "block-body" });
  const isOpen = block.n === options.opened;
  const row = make(
    "details",
    {
      class: `block state-${block.state} change-${block.change}`,
      "data-block": block.n,
      open: isOpen,
      ontoggle: () => onToggle(row, body, block, options),
    },
    make("summary", {}, summaryLine(block, options), sidesOf(block, answer, options)),
    body,
  );
  if (isOpen) onToggle(row, body, block, options);
  return block.breakpoint
    ? make("div", {}, row, make("p", { class: "breakpoint" }, `breakpoint ${block.breakpoint}`))
    : row;
}

/** @param {ComparedBlock} block @param {RowOptions} options */
function summaryLine(block, { cost, share }) {
  const state = CLASS_NAMES[block.state] ?? block.state;
  return make(
    "span",
    { class: "block-line" },
    make("span", { class: "number n muted" }, grouped(block.n)),
    make("span", { class: "block-name" }, blockName(block)),
    make("span", { class: "state" }, state),
    figureText(tokenText(block.tokens)),
    figureText(sizeText(block.size), "muted size"),
    figureText(cost),
    figureText(share, "muted"),
  );
}

/** @param {ComparedBlock} block @param {CallAnswer} answer @param {RowOptions} options */
function sidesOf(block, answer, { hasText }) {
  const text = preview(block, hasText);
  if (block.change === "same")
    return make(
      "span",
      { class: "side-texts" },
      text,
      make("span", { class: "muted" }, answer.before === null ? "" : `= block ${grouped(block.before_n ?? block.n)}`),
    );
  const { difference } = answer;
  if (difference?.block === block.n) {
    return make(
      "span",
      { class: "side-texts" },
      differing(difference.before, difference.now, difference.after, "ins"),
      differing(difference.before, difference.was, difference.after, "del"),
    );
  }
  const other =
    answer.before === null
      ? ""
      : block.change === "new"
        ? "not there"
        : `block ${grouped(block.before_n ?? 0)}, changed`;
  return make("span", { class: "side-texts" }, text, make("span", { class: "muted" }, other));
}

/**
 * The end of what is the same, then what differs.
 * @param {string} before
 * @param {string} text
 * @param {string} after
 * @param {"ins" | "del"} tag
 */
function differing(before, text, after, tag) {
  const start = before.length > 24 ? `…${before.slice(-24)}` : before;
  return make("span", { class: "preview" }, start, make(tag, {}, text || "\u200a"), after);
}

/**
 * What is known of a block: the beginning of its text, else its digest.
 * @param {PromptBlock} block
 * @param {boolean} hasText
 */
function preview(block, hasText) {
  const known = block.digest ? `digest ${block.digest}` : "";
  return make(
    "span",
    { class: "preview" },
    (hasText && block.text) || (block.size || !hasText ? known : block.kind === "hidden" ? "" : "(empty)"),
  );
}

/** A block that the call before had and this one has not. @param {PromptBlock} block @param {boolean} hasText */
export function makeGoneRow(block, hasText) {
  return make(
    "div",
    { class: "block gone" },
    make(
      "span",
      { class: "block-line" },
      make("span", { class: "number n muted" }, "–"),
      make("span", { class: "block-name" }, blockName(block)),
      make("span", { class: "state bad" }, "no longer there"),
      figureText(tokenText(block.tokens)),
    ),
    make(
      "span",
      { class: "side-texts" },
      make("span", { class: "muted" }, unseen("in the call before: ")),
      preview(block, hasText),
    ),
  );
}

/** @param {HTMLDetailsElement} row @param {Element} body @param {ComparedBlock} block @param {RowOptions} options */
async function onToggle(row, body, block, options) {
  if (!row.open || body.childNodes.length) return;
  const link = make("a", { href: `${options.address}/block/${block.n}` }, "link to this block");
  fill(body, make("p", { class: "muted small" }, "Loading …"));
  try {
    const answer = await options.loadBlock(block.n);
    fill(body, make("p", { class: "small muted" }, bodyWords(answer), link), options.hasText ? blockText(answer) : "");
  } catch (error) {
    fill(body, errorText(error));
  }
}

/** @param {BlockAnswer} block */
function bodyWords(block) {
  const digest = block.digest ? `digest ${block.digest} · ` : "";
  const cut = block.is_cut ? `the first 200,000 characters of ${sizeText(block.size)} · ` : "";
  return cut + digest;
}

/** @param {BlockAnswer} block */
function blockText(block) {
  if (!block.text && !block.parts.length) return "";
  if (block.parts.some(([kind]) => kind !== "same")) return makeDiff(block.parts);
  return make("pre", { class: "text own-keys", tabindex: 0, "aria-label": "Text of the block" }, block.text);
}
