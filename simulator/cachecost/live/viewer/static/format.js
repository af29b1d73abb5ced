/**
 * Number formats, the same as those of the command line (base/formatting.py): rounded once, halves up.
 *
 * "–" means unknown. A nonzero number is never written as zero. A number never breaks from its unit.
 */

export const UNKNOWN = "–";
export const NBSP = "\u00a0";
const MINUS = "−";
const TOKEN_STEPS = [
  { below: 1_000, unit: 1, places: 0, suffix: "" },
  { below: 9_950, unit: 1_000, places: 1, suffix: "k" },
  { below: 999_500, unit: 1_000, places: 0, suffix: "k" },
  { below: 9_995_000, unit: 1e6, places: 2, suffix: "M" },
  { below: 99_950_000, unit: 1e6, places: 1, suffix: "M" },
  { below: 999_500_000, unit: 1e6, places: 0, suffix: "M" },
  { below: Infinity, unit: 1e9, places: 2, suffix: "B" },
];

/** @typedef {string | number | null | undefined} Amount */
/** @typedef {{negative: boolean, digits: bigint, scale: number}} Decimal */

/**
 * A number as digits and how many of them stand after the point, so that rounding is exact.
 * @param {string | number} value @returns {Decimal}
 */
function parseDecimal(value) {
  const [mantissa, exponent = "0"] = String(value).toLowerCase().split("e");
  const negative = mantissa.startsWith("-");
  const [whole, fraction = ""] = mantissa.replace(/^[-+]/, "").split(".");
  const scale = fraction.length - Number(exponent);
  const digits = BigInt(whole + fraction || "0");
  return scale < 0 ? { negative, digits: digits * 10n ** BigInt(-scale), scale: 0 } : { negative, digits, scale };
}

/** Digits before the point, less one: the exponent of the first digit. @param {Decimal} number */
function exponentOf(number) {
  return number.digits ? String(number.digits).length - 1 - number.scale : 0;
}

/** @param {Decimal} number @param {number} places @param {"half up" | "down" | "up"} how */
function roundDigits(number, places, how = "half up") {
  if (number.scale <= places) return number.digits * 10n ** BigInt(places - number.scale);
  const unit = 10n ** BigInt(number.scale - places);
  const more = how === "half up" ? unit / 2n : how === "up" ? unit - 1n : 0n;
  return (number.digits + more) / unit;
}

/** "1,234.50" @param {bigint} digits @param {number} places */
function withPoint(digits, places) {
  const text = String(digits).padStart(places + 1, "0");
  const whole = text.slice(0, text.length - places).replace(/\B(?=(\d{3})+$)/g, ",");
  return places ? `${whole}.${text.slice(-places)}` : whole;
}

/** @param {string} text */
function withoutEndZeros(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/**
 * Digits after the point in a column of dollars: cents, more only where all are under ten cents.
 * @param {Amount[]} amounts
 */
export function dollarPlaces(amounts) {
  const known = amounts
    .filter((amount) => amount !== null && amount !== undefined)
    .map((amount) => Math.abs(Number(amount)));
  const largest = known.reduce((most, amount) => Math.max(most, amount), 0);
  return largest >= 0.1 || !largest ? 2 : 2 - exponentOf(parseDecimal(largest));
}

/** "$24.10", "$0.0475"; with the places of a column "<$0.01". @param {Amount} amount @param {number} [places] */
export function dollars(amount, places) {
  if (amount === null || amount === undefined) return UNKNOWN;
  const number = parseDecimal(amount);
  const sign = number.negative && number.digits ? MINUS : "";
  if (places !== undefined) {
    const digits = roundDigits(number, places);
    return number.digits && !digits ? `${sign}<$${withPoint(1n, places)}` : `${sign}$${withPoint(digits, places)}`;
  }
  const own = dollarPlaces([amount]);
  const [whole, fraction = ""] = withPoint(roundDigits(number, own), own).split(".");
  return `${sign}$${whole}.${fraction.replace(/0+$/, "").padEnd(2, "0")}`;
}

/** "+$0.40", "−$11.10" @param {Amount} amount @param {number} [places] */
export function dollarChange(amount, places) {
  return (Number(amount) > 0 ? "+" : "") + dollars(amount, places);
}

/** "950", "1.2k", "310k", "4.90M" @param {number | null | undefined} count */
export function tokens(count) {
  if (count === null || count === undefined) return UNKNOWN;
  const step = TOKEN_STEPS.find((each) => count < each.below) ?? TOKEN_STEPS[TOKEN_STEPS.length - 1];
  const scaled = BigInt(Math.floor((count * 10 ** step.places) / step.unit + 0.5));
  return withPoint(scaled, step.places) + step.suffix;
}

/** "1.2k tokens", never broken. @param {number | null | undefined} count */
export function tokenText(count) {
  return `${tokens(count)}${NBSP}${count === 1 ? "token" : "tokens"}`;
}

/**
 * A ratio as "32%", "3.1%", "0.04%", never 100% for less.
 * @param {Amount} ratio
 * @param {{signed?: boolean}} [options]
 */
export function percent(ratio, { signed = false } = {}) {
  if (ratio === null || ratio === undefined) return UNKNOWN;
  const parsed = parseDecimal(ratio);
  const share = { ...parsed, digits: parsed.digits * 100n };
  const sign = !share.digits ? "" : share.negative ? MINUS : signed ? "+" : "";
  return `${sign}${withoutEndZeros(roundPercent(share))}%`;
}

/** @param {Decimal} share */
function roundPercent(share) {
  const size = Number(share.digits) / 10 ** share.scale;
  const isHundred = share.digits === 100n * 10n ** BigInt(share.scale);
  if (size > 99 && size < 101 && !isHundred) return withPoint(roundDigits(share, 1, size < 100 ? "down" : "up"), 1);
  if (size >= 9.95) return withPoint(roundDigits(share, 0), 0);
  const places = size >= 1 || !share.digits ? 1 : -exponentOf(share);
  return withPoint(roundDigits(share, places), places);
}

/** "9 s", "41 min", "2.5 h", "3 days" @param {number} seconds */
export function duration(seconds) {
  if (seconds < 90) return `${Math.max(0, seconds).toFixed(0)}${NBSP}s`;
  if (seconds < 90 * 60) return `${(seconds / 60).toFixed(0)}${NBSP}min`;
  if (seconds < 48 * 3600) return `${withoutEndZeros((Math.round(seconds / 360) / 10).toFixed(1))}${NBSP}h`;
  return `${grouped(Math.round(seconds / 86400))}${NBSP}days`;
}

/** "1,204" @param {number} count */
export function grouped(count) {
  return withPoint(BigInt(count), 0);
}

/** "1 call", "1,204 calls", "2 entries" @param {number} count @param {string} noun */
export function countText(count, noun) {
  if (count === 1) return `1${NBSP}${noun}`;
  return `${grouped(count)}${NBSP}${/[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : `${noun}s`}`;
}

/** Bytes or characters: "412 B", "1.3 kB", "1.0 MB" @param {number} size */
export function sizeText(size) {
  if (size < 1000) return `${size}${NBSP}B`;
  return size < 999_950 ? `${(size / 1000).toFixed(1)}${NBSP}kB` : `${(size / 1e6).toFixed(1)}${NBSP}MB`;
}

/** Text of others with numbers bound to their units: "3 ×" does not break. @param {string} text */
export function bindUnits(text) {
  return text
    .replace(/(\d[kMB]?) (?=(?:×|%|s|min|h|days?|ms|k?B|MB|tokens?|calls?|sessions?|blocks?)(?![\w-]))/g, `$1${NBSP}`)
    .replace(/(\d) (?=(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b)/g, `$1${NBSP}`);
}
