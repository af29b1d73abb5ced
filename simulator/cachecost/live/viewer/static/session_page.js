/** A session: its headline, the most expensive moments, the timeline, and the call that is opened. */

import { getAnswer, getKept, isSaved, forgetKept, sessionPath } from "./api.js";
import { showCall } from "./call_panel.js";
import { makeCallsTable } from "./calls_table.js";
import { fill, make } from "./dom.js";
import { addKeys } from "./keys.js";
import { onLive } from "./live.js";
import { indexOfNumber, joinColumns, sumOf, toSeries } from "./series.js";
import { makeSessionHead, rowWords } from "./session_head.js";
import { alignByNumber } from "./slots.js";
import { Timeline } from "./timeline.js";
import { makeWhatIf } from "./what_if.js";

/** @typedef {import("./series.js").Series} Series */
/** @typedef {import("./router.js").Route} Route */

/** @param {Route} route */
export async function showSession(route) {
  const page = new SessionPage(await getKept(sessionPath(route.session)));
  return {
    element: page.element,
    title: page.answer.title || page.answer.name || "Session",
    update: page.update.bind(page),
    close: page.close.bind(page),
  };
}

class SessionPage {
  overlay = make("input", { type: "checkbox", onchange: () => this.toggleSimulated() });
  overlayWords = make("output", { class: "small muted" });
  opened = 0;
  turning = 0;

  /** @param {SessionAnswer} answer */
  constructor(answer) {
    this.answer = answer;
    this.path = sessionPath(answer.id);
    this.series = toSeries(answer.calls, answer);
    /** @type {Series | null} */
    this.simulated = null;
    this.simulatedWords = "";
    /** @type {{series: Series, words: string} | null} */
    this.alternative = null;
    this.head = make("header", { class: "session-head" });
    this.panel = make("section", { class: "panel-box", hidden: true, "aria-label": "Call" });
    this.timeline = new Timeline({
      onOpen: (index) => this.go(index),
      onSelect: (index) => this.follow(index),
      onClose: () => this.leaveCall(),
    });
    this.table = makeCallsTable(
      () => this.series,
      (index) => this.address(this.series.number[index]),
    );
    this.whatIf =
      isSaved || !answer.has_blocks ? null : makeWhatIf(this.path, (result) => this.showAlternative(result));
    this.element = make(
      "div",
      { class: "page" },
      this.head,
      this.makeSwitch(),
      this.timeline.element,
      this.panel,
      this.whatIf,
      this.table.element,
    );
    this.stops = [addKeys(this.timeline), onLive("calls", (data) => this.append(data))];
    this.showHead();
    this.setRows();
  }

  showHead() {
    fill(
      this.head,
      makeSessionHead(this.answer, (number) => this.address(number), sumOf(this.series.rewritten) > 0),
    );
  }

  /** The overlay of what is simulated is fetched when it is wanted. */
  makeSwitch() {
    const isUseful = this.answer.has_bill && this.answer.has_blocks;
    return make(
      "p",
      { class: "switch", hidden: !isUseful },
      make("label", {}, this.overlay, " Simulated, with breakpoints"),
      this.overlayWords,
    );
  }

  async toggleSimulated() {
    try {
      if (this.overlay.checked) await this.loadSimulated();
      this.setRows();
    } catch (error) {
      this.overlay.checked = false;
      fill(this.overlayWords, String(error instanceof Error ? error.message : error));
    }
  }

  /** @returns {Promise<Series>} */
  async loadSimulated() {
    /** @type {SimulatedAnswer} */
    const answer = await getKept(`${this.path}/simulated`);
    const columns = {
      start: this.answer.calls.start,
      number: this.answer.calls.number,
      output: this.answer.calls.output,
      ...answer.calls,
    };
    this.simulated = toSeries(columns, { ...this.answer, ...answer });
    this.simulatedWords = rowWords(this.simulated, answer.cost_usd);
    fill(this.overlayWords, `tokens from ${answer.tokens_from}`);
    return this.simulated;
  }

  setRows() {
    const billed = this.answer.has_bill;
    const rows = [{ label: billed ? "Billed" : "Simulated", words: rowWords(this.series), series: this.series }];
    if (this.simulated && billed && this.overlay.checked) {
      rows.push({ label: "Simulated", words: this.simulatedWords, series: this.simulated });
    }
    if (this.alternative) rows.push({ label: "What if", ...this.alternative });
    alignByNumber(rows.map((row) => row.series));
    this.timeline.setRows(rows);
  }

  /** @param {{series: Series, words: string} | null} alternative */
  showAlternative(alternative) {
    this.alternative = alternative;
    this.setRows();
  }

  /** @param {number} number @returns {string} */
  address(number) {
    return `#/session/${encodeURIComponent(this.answer.id)}/call/${number}`;
  }

  /** @param {number} index */
  go(index) {
    location.hash = this.address(this.series.number[index]);
  }

  leaveCall() {
    if (!this.panel.hidden) location.hash = `#/session/${encodeURIComponent(this.answer.id)}`;
  }

  /** While a call is open, the keys turn its pages. @param {number} index */
  follow(index) {
    if (!this.panel.hidden) window.history.replaceState(null, "", this.address(this.series.number[index]));
    clearTimeout(this.turning);
    if (!this.panel.hidden) this.turning = setTimeout(() => this.openCall(this.series.number[index], 0), 120);
  }

  /** Show the call that the address names. @param {Route} route */
  async update(route) {
    if (!route.call) {
      this.panel.hidden = true;
      return;
    }
    const index = indexOfNumber(this.series, route.call);
    this.timeline.select(index, { around: true, quiet: true });
    await this.openCall(route.call, route.block);
    if (this.panel.getBoundingClientRect().top > window.innerHeight * 0.75)
      this.timeline.element.scrollIntoView({ block: "start" });
  }

  /** @param {number} number @param {number} block 0: none */
  async openCall(number, block) {
    this.panel.hidden = false;
    this.opened = number;
    const shown = await showCall(this.path, this.address(number), number, block, this.answer.has_text);
    if (this.opened === number) fill(this.panel, shown);
    if (block) this.panel.querySelector(`[data-block="${block}"]`)?.scrollIntoView({ block: "center" });
  }

  /** Calls that arrive while the page is open; the selection and the view stay. @param {LiveCalls} data */
  append(data) {
    if (data.session && data.session !== this.answer.id) return;
    if (data.from !== this.series.length) return void this.reload();
    const { causes, models, agents, headline, moments } = { ...this.answer, ...data };
    this.renew({
      ...this.answer,
      causes,
      models,
      agents,
      headline,
      moments,
      calls: joinColumns(this.answer.calls, data.calls),
    });
  }

  /** A server that has gone is said by the badge. */
  async reload() {
    const answer = await getAnswer(this.path).catch(() => null);
    if (answer) this.renew(answer);
  }

  /** What was simulated stays as of the calls it knows. @param {SessionAnswer} answer */
  renew(answer) {
    forgetKept(this.path);
    this.answer = answer;
    this.series = toSeries(answer.calls, answer);
    this.showHead();
    this.setRows();
    this.table.update();
  }

  close() {
    for (const stop of this.stops) stop();
    clearTimeout(this.turning);
    this.timeline.close();
    this.table.close();
  }
}
