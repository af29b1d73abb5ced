/**
 * The timelines of a run: strategies whose calls are billed alike share one, below each is that of the other revision
 * where it differs.
 */

import { rowWords } from "./session_head.js";
import { CLASSES, toSeries } from "./series.js";

/** @typedef {import("./series.js").Series} Series */
/**
 * @typedef {import("./timeline_rows.js").Row & {name: string}} StrategyRow its first strategy, and what stands above it
 */

const NAMED = 3;

/** @param {RunAnswer} answer @param {string} first name of the strategy that comes first @returns {StrategyRow[]} */
export function strategyRows(answer, first) {
  const ordered = [...answer.strategies].sort((a, b) => rank(a, first, answer) - rank(b, first, answer));
  const own = mergeAlike(ordered.flatMap((each) => rowOf(each, answer, "")));
  const other = answer.other;
  if (!other) return own;
  const others = new Map(other.strategies.map((each) => [each.name, each]));
  return own.flatMap((row) => {
    const beside = rowOf(others.get(row.name), { ...answer, ...other }, `, ${other.title}`);
    return [row, ...beside.filter((each) => billedKey(each) !== billedKey(row))];
  });
}

/**
 * The strategy of the address, the one that others are compared with, then the rest as they stand.
 * @param {StrategyAnswer} strategy
 * @param {string} first
 * @param {RunAnswer} answer
 */
function rank({ name }, first, answer) {
  return name === first ? 0 : name === answer.compare_to ? 1 : 2;
}

/**
 * None where its calls are not known.
 * @param {StrategyAnswer | undefined} strategy
 * @param {ColumnLists} lists
 * @param {string} after what follows its name
 * @returns {StrategyRow[]}
 */
function rowOf(strategy, lists, after) {
  if (!strategy?.calls) return [];
  const series = toSeries(strategy.calls, lists);
  const { name } = strategy;
  return [{ name, label: name + after, words: rowWords(series, strategy.cost_usd), series }];
}

/** The same for rows whose calls are billed alike. @param {StrategyRow} row */
function billedKey({ series }) {
  return CLASSES.map((name) => series.classes[name].join()).join("|");
}

/** Strategies that differ visibly have a row each. @param {StrategyRow[]} rows */
function mergeAlike(rows) {
  /** @type {Map<string, StrategyRow[]>} */
  const groups = new Map();
  for (const row of rows) {
    const key = billedKey(row);
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  return [...groups.values()].map((group) => ({ ...group[0], label: namesOf(group.map((row) => row.label)) }));
}

/** "a, b, c and 4 more" @param {string[]} names */
function namesOf(names) {
  const left = names.length - NAMED;
  return names.slice(0, NAMED).join(", ") + (left > 0 ? ` and ${left} more` : "");
}
