/** All sessions: what they cost, searched and sorted; "/" searches, arrow keys move, Enter opens. */

import { getAnswer } from "./api.js";
import { fill, make } from "./dom.js";
import { countText, dollarPlaces, grouped } from "./format.js";
import { onLive } from "./live.js";
import { ORDERS, sentence, sessionCells, sessionColumns, skippedFiles, searchedText, totals } from "./session_rows.js";
import { WindowRows } from "./window_rows.js";

/** @type {Record<string, (list: SessionList) => void>} */
const SEARCH_KEYS = {
  Escape: (list) => list.clearSearch(),
  Enter: (list) => list.move(1),
  ArrowDown: (list) => list.move(1),
};
/** @type {Record<string, (list: SessionList) => void>} */
const LIST_KEYS = {
  "/": (list) => list.search.focus(),
  ArrowDown: (list) => list.move(1),
  ArrowUp: (list) => list.move(-1),
};
/** Kept while the page is open, so that going back finds the list as it was. */
const listState = { search: "", order: "cost", isDown: true };

/** @returns {Promise<{element: HTMLElement, close: () => void, title: string}>} */
export async function showSessions() {
  const list = new SessionList(await getAnswer("sessions"));
  const stop = onLive("sessions", async () => list.update(await getAnswer("sessions")));
  return { element: list.element, title: "Sessions", close: () => (stop(), list.close()) };
}

class SessionList {
  sum = make("h1", { class: "answer" });
  more = make("p", { class: "more muted" });
  found = make("output", { class: "small muted" });
  orders = make("div", { class: "orders", role: "group", "aria-label": "Sort by" });
  skipped = make("details", { class: "skipped" });

  /** @param {SessionsAnswer} answer */
  constructor(answer) {
    this.search = make("input", {
      type: "search",
      id: "search",
      value: listState.search,
      placeholder: "Search sessions",
      autocomplete: "off",
      oninput: () => this.onSearch(),
    });
    this.rows = new WindowRows({
      caption: "Sessions",
      className: "sessions",
      cells: (at) => sessionCells(this.shown[at], this.places),
    });
    /** @type {SessionRow[]} */
    this.shown = [];
    this.places = { cost: 2, rewritten: 2 };
    this.listen = (/** @type {KeyboardEvent} */ event) => this.onKey(event);
    document.addEventListener("keydown", this.listen);
    this.element = make(
      "div",
      { class: "page" },
      this.sum,
      this.more,
      make(
        "div",
        { class: "search" },
        make("label", { for: "search" }, "Search ", make("kbd", {}, "/")),
        this.search,
        this.orders,
        this.found,
      ),
      this.rows.element,
      this.skipped,
    );
    this.update(answer);
  }

  /** @param {SessionsAnswer} answer */
  update(answer) {
    this.answer = answer;
    const { total } = answer;
    fill(this.sum, sentence(total));
    fill(this.more, totals(total));
    this.skipped.hidden = !answer.skipped.length;
    fill(this.skipped, skippedFiles(answer.skipped));
    this.render();
  }

  render() {
    const words = listState.search.toLowerCase().split(/\s+/).filter(Boolean);
    const all = this.answer?.sessions ?? [];
    const value = ORDERS[listState.order];
    this.shown = all.filter((row) => words.every((word) => searchedText(row).includes(word)));
    this.shown.sort((a, b) => (listState.isDown ? value(b) - value(a) : value(a) - value(b)));
    this.places = {
      cost: dollarPlaces(all.map((row) => row.cost_usd)),
      rewritten: dollarPlaces(all.map((row) => row.rewritten_usd)),
    };
    fill(this.found, words.length ? `${grouped(this.shown.length)} of ${countText(all.length, "session")}` : "");
    fill(
      this.orders,
      Object.keys(ORDERS).map((name) => this.orderButton(name)),
    );
    this.rows.setColumns(this.columns());
    this.rows.setCount(this.shown.length);
  }

  /** @param {string} name */
  orderButton(name) {
    const isOn = listState.order === name;
    return make(
      "button",
      { type: "button", class: "quiet", "aria-pressed": String(isOn), onclick: () => this.sortBy(name) },
      name,
      isOn && (listState.isDown ? " ↓" : " ↑"),
    );
  }

  /** @returns {import("./window_rows.js").Column[]} */
  columns() {
    const sorted = (/** @type {string} */ name) => ({
      isOn: listState.order === name,
      isDown: listState.isDown,
      onclick: () => this.sortBy(name),
    });
    const hasTitles = Boolean(this.answer?.sessions.some((row) => row.title));
    return sessionColumns(sorted, hasTitles);
  }

  /** @param {string} name */
  sortBy(name) {
    const again = listState.order === name;
    Object.assign(listState, { order: name, isDown: again ? !listState.isDown : true });
    this.render();
  }

  onSearch() {
    listState.search = this.search.value;
    this.render();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isSearching = document.activeElement === this.search;
    const action = (isSearching ? SEARCH_KEYS : LIST_KEYS)[event.key];
    if (!action) return;
    action(this);
    event.preventDefault();
  }

  clearSearch() {
    this.search.value = "";
    this.onSearch();
  }

  /** @param {number} step */
  move(step) {
    const next = this.rows.focusedRow() + step;
    if (next < 0) this.search.focus();
    else if (next < this.shown.length) this.rows.focus(next);
  }

  close() {
    document.removeEventListener("keydown", this.listen);
    this.rows.close();
  }
}
