/** Times in UTC, as the command line writes them. */

import { NBSP, UNKNOWN } from "./format.js";

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Seconds since the epoch of an ISO 8601 text, or NaN. @param {string | null | undefined} text */
export function secondsOf(text) {
  return text ? Date.parse(text) / 1000 : NaN;
}

/** "8 Jan 2026", or "–". @param {number} seconds */
export function dayText(seconds) {
  if (Number.isNaN(seconds)) return UNKNOWN;
  const at = new Date(seconds * 1000);
  return `${at.getUTCDate()}${NBSP}${MONTHS[at.getUTCMonth()]}${NBSP}${at.getUTCFullYear()}`;
}

/** "08:17:13", with `short` "08:17". @param {number} seconds @param {boolean} [short] */
export function clockText(seconds, short = false) {
  if (Number.isNaN(seconds)) return "";
  return new Date(seconds * 1000).toISOString().slice(11, short ? 16 : 19);
}

/** "8 Jan 2026 08:17:13 UTC", or "". @param {number} seconds */
export function momentText(seconds) {
  return Number.isNaN(seconds) ? "" : `${dayText(seconds)} ${clockText(seconds)}${NBSP}UTC`;
}

/** The days of two times: "8 Jan 2026 – 6 Feb 2026", or one. @param {number} first @param {number} last */
export function periodText(first, last) {
  const [from, to] = [dayText(first), dayText(last)];
  return from === to ? to : `${from} – ${to}`;
}
