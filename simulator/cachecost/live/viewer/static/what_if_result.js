/** The answer to a "what if": the difference in large type, what changes, and how to repeat it. */

import { copyButton, make, makeTable } from "./dom.js";
import { bindUnits, countText, dollarChange, dollars, grouped, percent } from "./format.js";
import { CLASSES, CLASS_NAMES, sumOf } from "./series.js";

/** @typedef {import("./series.js").Series} Series */

/** @param {WhatIfAnswer} answer @param {Series} series */
export function makeResult(answer, series) {
  const difference = Number(answer.difference_usd);
  const ratio = Number(answer.basis_usd)
    ? ` (${percent(difference / Number(answer.basis_usd), { signed: true })})`
    : "";
  const extra = answer.extra_calls ? `; with ${countText(answer.extra_calls, "extra call")}` : "";
  const tone = difference < 0 ? "good" : difference > 0 ? "bad" : "";
  return [
    make(
      "p",
      { class: "saving" },
      make("strong", { class: tone }, dollarChange(answer.difference_usd)),
      make("span", {}, bindUnits(answer.words)),
    ),
    make(
      "p",
      { class: "more muted" },
      `${dollars(answer.cost_usd)} instead of ${dollars(answer.basis_usd)}${ratio}, both simulated${extra}.`,
    ),
    ...answer.errors.map((error) => make("p", { class: "bad", role: "alert" }, error)),
    makeChanges(totalsOf(series), answer.basis),
    makeRecipe("Command line", "Copy command", answer.command),
    makeRecipe("Scenario", "Copy YAML", answer.yaml),
  ];
}

/** @param {ClassTotals} after @param {ClassTotals} before */
function makeChanges(after, before) {
  const names = /** @type {(keyof ClassTotals)[]} */ ([...CLASSES, "output", "calls"]);
  const sign = (/** @type {number} */ by) => (by > 0 ? "+" : by < 0 ? "−" : "");
  const rows = names
    .filter((name) => before[name] || after[name])
    .map((name) => {
      const by = after[name] - before[name];
      const change = sign(by) + grouped(Math.abs(by));
      return [CLASS_NAMES[name] ?? name, grouped(before[name]), grouped(after[name]), change];
    });
  return makeTable({ caption: "What changes, in tokens", heads: ["class", "as sent", "what if", "change"], rows });
}

/** @param {Series} series @returns {ClassTotals} */
export function totalsOf({ classes, output, length }) {
  const { read, write_1h, write_5m, input } = classes;
  const sums = { read: sumOf(read), write_1h: sumOf(write_1h), write_5m: sumOf(write_5m), input: sumOf(input) };
  return { ...sums, output: sumOf(output), calls: length };
}

/** @param {string} label @param {string} copy @param {string} text */
function makeRecipe(label, copy, text) {
  if (!text) return null;
  return make(
    "div",
    { class: "recipe" },
    make(
      "div",
      { class: "recipe-head" },
      make("span", { class: "muted small" }, label),
      copyButton(copy, () => text),
    ),
    make("pre", { tabindex: 0, class: "own-keys", "aria-label": label }, make("code", {}, text)),
  );
}
