/** Places of the calls of several series on one time axis. */

/** @typedef {import("./series.js").Series} Series */

/**
 * Give series one axis: calls of the same number share a slot; extra calls (number 0) take slots where they stand.
 * @param {Series[]} all numbers rise in each
 * @returns {number} how many slots there are
 */
export function alignByNumber(all) {
  const next = all.map(() => 0);
  const numberOf = (/** @type {number} */ which) =>
    next[which] < all[which].length ? all[which].number[next[which]] : Infinity;
  for (let slot = 0; ; slot += 1) {
    const least = all.reduce((number, _, which) => Math.min(number, numberOf(which)), Infinity);
    if (least === Infinity) return slot;
    for (let which = 0; which < all.length; which += 1) {
      if (numberOf(which) === least) all[which].slot[next[which]++] = slot;
    }
  }
}

/**
 * Give two series one axis on which each pair shares a slot; what stands between two pairs takes slots in turn.
 * @param {Series} left @param {Series} right @param {[number, number][]} pairs indices, rising
 * @returns {number} how many slots there are
 */
export function alignByPairs(left, right, pairs) {
  let [slot, fromLeft, fromRight] = [0, 0, 0];
  for (const [toLeft, toRight] of [...pairs, [left.length, right.length]]) {
    while (fromLeft < toLeft) left.slot[fromLeft++] = slot++;
    while (fromRight < toRight) right.slot[fromRight++] = slot++;
    if (toLeft < left.length) left.slot[fromLeft++] = slot;
    if (toRight < right.length) right.slot[fromRight++] = slot;
    slot += 1;
  }
  return slot - 1;
}

/** One slot more than the last call of any series has. @param {Series[]} all */
export function slotCount(all) {
  return all.reduce((most, series) => Math.max(most, series.length ? series.slot[series.length - 1] + 1 : 0), 0);
}
