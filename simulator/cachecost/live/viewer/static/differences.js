/** Differences between two texts: the first differing character, and a whole inline diff. */

import { make } from "./dom.js";
import { grouped } from "./format.js";

/**
 * Where the call before and this one part.
 * @param {Difference} difference
 * @param {ComparedBlock | undefined} block
 * @param {number | null} before
 */
export function makeDifference(difference, block, before) {
  const name = block ? ` (${blockName(block)})` : "";
  const where = `block ${grouped(difference.block)}${name}, character ${grouped(difference.at)}`;
  return make(
    "div",
    { class: "difference" },
    make(
      "p",
      {},
      make("b", {}, "First difference"),
      ` from call ${before === null ? "before" : grouped(before)}: ${where}`,
    ),
    make(
      "pre",
      { tabindex: 0, class: "own-keys", "aria-label": "Text around the first difference" },
      difference.before,
      gone(difference.was),
      added(difference.now),
      difference.after,
    ),
  );
}

/** @param {string} text */
function gone(text) {
  return text ? make("del", {}, visible(text)) : "";
}

/** @param {string} text */
function added(text) {
  return text ? make("ins", {}, visible(text)) : "";
}

/** Blanks and line ends that differ are to be seen. @param {string} text */
function visible(text) {
  return /^\s+$/.test(text) ? text.replace(/ /g, "␣").replace(/\n/g, "⏎\n").replace(/\t/g, "⇥") : text;
}

/**
 * The block's text with what changed; parts that are the same are folded where they are long.
 * @param {BlockAnswer["parts"]} parts
 */
export function makeDiff(parts) {
  const box = make("pre", { class: "text own-keys", tabindex: 0, "aria-label": "Text of the block with its changes" });
  parts.forEach(([kind, text], place) => {
    if (kind === "same") box.append(...foldSame(text, place > 0, place < parts.length - 1));
    else box.append(kind === "gone" ? gone(text) : added(text));
  });
  return box;
}

const AROUND = 600;

/** @param {string} text @param {boolean} hasBefore @param {boolean} hasAfter @returns {(string | Node)[]} */
function foldSame(text, hasBefore, hasAfter) {
  const [start, end] = [hasBefore ? AROUND : 0, hasAfter ? AROUND : 0];
  if (text.length < 4 * AROUND || !(hasBefore || hasAfter)) return [text];
  const middle = text.slice(start, text.length - end);
  const button = make(
    "button",
    { type: "button", class: "fold", onclick: () => button.replaceWith(middle) },
    `… ${grouped(middle.length)} characters the same: show`,
  );
  return [text.slice(0, start), button, text.slice(text.length - end)];
}

/** "tool_result Bash" @param {PromptBlock} block */
export function blockName(block) {
  if (block.kind === "hidden") return block.name === "not in the transcript" ? block.name : "hidden tokens";
  return [block.layer === "messages" ? block.role : "", block.kind.replaceAll("_", " "), block.name]
    .filter(Boolean)
    .join(" ");
}
