/** Columns of calls as typed arrays, so that 20,000 calls are drawn in a few milliseconds. */

/** Classes of a prompt from the bottom up, as columns and colours name them. */
export const CLASSES = /** @type {const} */ (["read", "write_1h", "write_5m", "input"]);

/** @type {Record<string, string>} */
export const CLASS_NAMES = {
  read: "read",
  write_1h: "written 1h",
  write_5m: "written 5m",
  input: "uncached",
  output: "output",
  fees: "fees of server tools",
  hidden: "added by the provider",
  stripped: "not in the prompt",
};

/**
 * @typedef {object} Series
 * @property {number} length
 * @property {Int32Array} slot the place of each call on the time axis, rising; several series can share an axis
 * @property {Int32Array} number 0: an extra call
 * @property {Float64Array} start seconds, NaN where unknown
 * @property {Record<TokenClass, Int32Array>} classes tokens
 * @property {Float64Array} prompt tokens of all classes
 * @property {Int32Array} output
 * @property {Float64Array} cost USD, NaN where unknown
 * @property {Float64Array} rewritten USD
 * @property {Int32Array} rewrittenTokens
 * @property {Int32Array} cause @property {Int32Array} model @property {Int32Array} agent
 * @property {Uint8Array} isHuman
 * @property {Float64Array} idle seconds, NaN where unknown
 * @property {string[]} event
 * @property {Breakpoint[][] | null} breakpoints
 * @property {NamedCause[]} causes @property {string[]} models @property {string[]} agents
 */

/** @param {CallColumns} calls @param {ColumnLists} lists @returns {Series} */
export function toSeries(calls, lists) {
  const length = calls.read.length;
  const classes = {
    read: whole(calls.read),
    write_1h: whole(calls.write_1h),
    write_5m: whole(calls.write_5m),
    input: whole(calls.input),
  };
  return {
    length,
    classes,
    slot: Int32Array.from({ length }, (_, index) => index),
    number: calls.number ? whole(calls.number) : Int32Array.from({ length }, (_, index) => index + 1),
    start: decimals(calls.start, length),
    prompt: Float64Array.from({ length }, (_, at) => CLASSES.reduce((sum, name) => sum + classes[name][at], 0)),
    cost: decimals(calls.cost_usd, length),
    rewritten: decimals(calls.rewritten_usd, length, 0),
    breakpoints: calls.breakpoints ?? null,
    event: calls.event ?? [],
    ...toDetails(calls, length),
    causes: lists.causes ?? [],
    models: lists.models ?? [],
    agents: lists.agents ?? [],
  };
}

/** @param {CallColumns} calls @param {number} length */
function toDetails(calls, length) {
  return {
    output: whole(calls.output, length),
    rewrittenTokens: whole(calls.rewritten_tokens, length),
    cause: whole(calls.cause, length),
    model: whole(calls.model, length),
    agent: whole(calls.agent, length),
    isHuman: Uint8Array.from({ length }, (_, at) => Number(calls.is_human?.[at] ?? false)),
    idle: decimals(calls.idle_s, length),
  };
}

/** @param {number[] | undefined} values @param {number} [length] */
function whole(values, length = 0) {
  return values ? Int32Array.from(values) : new Int32Array(length);
}

/** @param {(string | number | null)[] | undefined} values @param {number} length @param {number} [unknown] */
function decimals(values, length, unknown = NaN) {
  return Float64Array.from({ length }, (_, at) => {
    const value = values?.[at];
    return value === null || value === undefined ? unknown : Number(value);
  });
}

/**
 * The columns with later calls after them.
 * @param {CallColumns} calls
 * @param {CallColumns} more
 * @returns {CallColumns}
 */
export function joinColumns(calls, more) {
  const added = new Map(Object.entries(more));
  const joined = Object.entries(calls).map(([name, values]) => [name, [...values, ...(added.get(name) ?? [])]]);
  return Object.fromEntries(joined);
}

/** The largest of the values that are known. @param {ArrayLike<number>} values */
export function largest(values) {
  let most = 0;
  for (let at = 0; at < values.length; at += 1) if (values[at] > most) most = values[at];
  return most;
}

/** The sum of the values that are known. @param {ArrayLike<number>} values */
export function sumOf(values) {
  let sum = 0;
  for (let at = 0; at < values.length; at += 1) if (values[at] === values[at]) sum += values[at];
  return sum;
}

/** Index of the first call at that slot or after it. @param {Series} series @param {number} slot */
export function firstFrom(series, slot) {
  let [low, high] = [0, series.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (series.slot[middle] < slot) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Index of the call nearest to that slot, -1 without calls. @param {Series} series @param {number} slot */
export function nearestTo(series, slot) {
  const at = firstFrom(series, slot);
  if (at === series.length) return at - 1;
  const isBefore = at > 0 && slot - series.slot[at - 1] < series.slot[at] - slot;
  return isBefore ? at - 1 : at;
}

/** Index of the call with that number, -1 without one. @param {Series} series @param {number} number */
export function indexOfNumber(series, number) {
  return series.number.indexOf(number);
}

/** Classes that occur in one of the series, from the bottom up. @param {Series[]} all */
export function classesIn(all) {
  return CLASSES.filter((name) => all.some((series) => series.classes[name].some((count) => count > 0)));
}
