/** The list of sessions in words: the sentence above it, its columns, orders and cells. */

import { make } from "./dom.js";
import { bindUnits, countText, dollars, grouped, percent, UNKNOWN } from "./format.js";
import { dayText, periodText, secondsOf } from "./times.js";

/** @typedef {import("./window_rows.js").Column} Column */

/** @type {Record<string, (row: SessionRow) => number>} */
export const ORDERS = {
  cost: (row) => Number(row.cost_usd ?? -1),
  rewritten: (row) => Number(row.rewritten_usd ?? -1),
  "hit rate": (row) => row.hit_rate ?? -1,
  date: (row) => secondsOf(row.last) || 0,
};

/**
 * @param {(name: string) => Column["sort"]} sorted how a column can be sorted
 * @param {boolean} hasTitles whether sessions have titles in place of a project
 * @returns {Column[]}
 */
export function sessionColumns(sorted, hasTitles) {
  return [
    { key: "session", head: "session" },
    { key: "project", head: hasTitles ? "conversation" : "project" },
    { key: "date", head: "date", sort: sorted("date") },
    { key: "count", head: "calls", isNumber: true },
    { key: "rate", head: "hit rate", isNumber: true, sort: sorted("hit rate") },
    { key: "cost", head: "cost", isNumber: true, sort: sorted("cost") },
    { key: "rewritten", head: "rewritten", isNumber: true, sort: sorted("rewritten") },
    { key: "most", head: "most of it" },
  ];
}

/**
 * The cells of a row.
 * @param {SessionRow} row
 * @param {{cost: number, rewritten: number}} places digits of the columns of dollars
 * @returns {(string | Node)[]}
 */
export function sessionCells(row, places) {
  const agents = row.agents > 1 ? countText(row.agents - 1, "sub-agent") : "";
  return [
    make("a", { href: `#/session/${encodeURIComponent(row.id)}`, title: row.session }, row.name || row.id),
    make(
      "span",
      { title: `${row.project} · ${row.client} · ${row.models.join(", ")}` },
      row.title || shortProject(row.project) || row.name || row.id,
    ),
    dayText(secondsOf(row.last)),
    make("span", {}, grouped(row.calls), make("span", { class: "unit" }, ` ${row.calls === 1 ? "call" : "calls"}`)),
    make("span", {}, row.hit_rate === null ? UNKNOWN : percent(row.hit_rate), make("span", { class: "unit" }, " read")),
    dollars(row.cost_usd, places.cost),
    Number(row.rewritten_usd) ? dollars(row.rewritten_usd, places.rewritten) : "",
    make("span", { title: row.most }, [bindUnits(row.most), agents].filter(Boolean).join(" · ")),
  ];
}

/**
 * "$61.97 · $7.53 (12%) paid to write again what had been cached · cache hit rate 95% · 20 sessions, 1,018 calls"
 * @param {SessionsAnswer["total"]} total
 */
export function sentence(total) {
  const share = Number(total.cost_usd) ? Number(total.rewritten_usd) / Number(total.cost_usd) : 0;
  const rewritten = Number(total.rewritten_usd)
    ? `${dollars(total.rewritten_usd)} (${percent(share)}) paid to write again what had been cached`
    : "nothing written again";
  const rate = total.hit_rate === null ? "" : ` · cache hit rate ${percent(total.hit_rate)}`;
  const counts = `${countText(total.sessions, "session")}, ${countText(total.calls, "call")}`;
  return `${dollars(total.cost_usd)} · ${rewritten}${rate} · ${counts}`;
}

/** What a search looks through. @param {SessionRow} row */
export function searchedText(row) {
  return [row.name, row.title, row.session, row.project, row.client, row.models.join(" "), row.most]
    .join(" ")
    .toLowerCase();
}

/** The last folder; "" where none is known. @param {string} project */
function shortProject(project) {
  return project.split(/[\\/]/).filter(Boolean).pop() ?? "";
}

/** "8 Jan 2026 – 9 Jan 2026 · caching saved $259.73 · $54.44 necessary" @param {SessionsAnswer["total"]} total */
export function totals(total) {
  const period = total.first ? periodText(secondsOf(total.first), secondsOf(total.last)) : "";
  const saved = `caching saved ${dollars(total.saved_by_caching_usd)}`;
  return [period, saved, `${dollars(total.necessary_usd)} necessary`].filter(Boolean).join(" · ");
}

const SHOWN = 200;

/** Files that could not be read, and why. @param {SessionsAnswer["skipped"]} skipped */
export function skippedFiles(skipped) {
  const more = skipped.length > SHOWN ? make("li", {}, `… ${grouped(skipped.length - SHOWN)} more`) : null;
  const files = skipped.slice(0, SHOWN);
  const items = files.map(({ file, line, reason }) => make("li", {}, `${file}${line ? `:${line}` : ""}: ${reason}`));
  return [make("summary", {}, `${countText(skipped.length, "file")} skipped`), make("ul", {}, items, more)];
}
