/** What a session would have cost otherwise: a form, the difference in dollars, and how to repeat it. */

import { getAnswer, getKept } from "./api.js";
import { errorText, fill, make } from "./dom.js";
import { dollarChange, dollars } from "./format.js";
import { toSeries } from "./series.js";
import { makeResult } from "./what_if_result.js";

/** @typedef {import("./series.js").Series} Series */
/** @typedef {{series: Series, words: string} | null} Alternative */
/** @typedef {{name: string, words: string}} Choice */

const LABELS = {
  ttl: "TTL",
  breakpoints: "Breakpoints",
  model: "Model",
  host: "Provider",
  keep_alive: "Keep-alive",
  compaction: "Compaction",
};
const LISTS = {
  ttl: "ttl",
  breakpoints: "breakpoints",
  model: "models",
  host: "hosts",
  keep_alive: "keep_alive",
  compaction: "compaction",
};

/** @param {string} path of the session @param {(result: Alternative) => void} onResult */
export function makeWhatIf(path, onResult) {
  return new WhatIf(path, onResult).element;
}

class WhatIf {
  form = make("form", { class: "what-if-form own-keys", onsubmit: (event) => event.preventDefault() });
  result = make("div", { class: "result", "aria-live": "polite" });
  title = make("summary", {}, make("h2", {}, "What if"));
  element = make("details", { class: "what-if", ontoggle: () => this.open() }, this.title, this.form, this.result);
  asking = new AbortController();

  /** @param {string} path @param {(result: Alternative) => void} onResult */
  constructor(path, onResult) {
    this.path = path;
    this.onResult = onResult;
  }

  async open() {
    if (!this.element.open || this.form.childNodes.length) return;
    try {
      const options = await getKept(`${this.path}/options`);
      fill(
        this.form,
        makeFields(
          options,
          () => this.evaluate(),
          () => this.clear(),
        ),
      );
    } catch (error) {
      fill(this.result, errorText(error));
    }
  }

  clear() {
    this.asking.abort();
    this.form.reset();
    this.result.classList.remove("waiting");
    fill(this.result);
    this.onResult(null);
  }

  /** Replay the session as the form has it; an answer that comes too late is dropped. */
  async evaluate() {
    const query = queryOf(this.form);
    if (!query) return this.clear();
    this.asking.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    this.result.classList.add("waiting");
    await getAnswer(`${this.path}/whatif?${query}`, signal).then(
      (answer) => signal.aborted || this.show(answer),
      (error) => signal.aborted || this.fail(error),
    );
    if (!signal.aborted) this.result.classList.remove("waiting");
  }

  /** @param {WhatIfAnswer} answer */
  show(answer) {
    const series = toSeries(answer.calls, answer);
    fill(this.result, makeResult(answer, series));
    this.onResult({ series, words: `${dollars(answer.cost_usd)} · ${dollarChange(answer.difference_usd)}` });
  }

  /** @param {unknown} error */
  fail(error) {
    fill(this.result, errorText(error));
    this.onResult(null);
  }
}

/** @param {OptionsAnswer} options @param {() => void} onchange @param {() => void} onclear */
function makeFields(options, onchange, onclear) {
  const names = /** @type {(keyof typeof LABELS)[]} */ (Object.keys(LABELS));
  const lists = /** @type {Record<string, (string | Choice)[]>} */ (/** @type {unknown} */ (options));
  const fields = names.map((name) => makeField(name, LABELS[name], lists[LISTS[name]] ?? [], onchange));
  return [...fields, make("button", { type: "button", class: "quiet", onclick: onclear }, "As sent")];
}

/** @param {string} name @param {string} label @param {(string | Choice)[]} values @param {() => void} onchange */
function makeField(name, label, values, onchange) {
  const options = values.map((value, place) => {
    const { name: word, words } = typeof value === "string" ? { name: value, words: "" } : value;
    return make("option", { value: place ? word : "" }, place && words ? `${word}: ${words}` : word);
  });
  return make(
    "label",
    {},
    make("span", {}, label),
    make("select", { name, onchange, disabled: values.length < 2 }, options),
  );
}

/** @param {HTMLFormElement} form */
function queryOf(form) {
  const query = new URLSearchParams();
  for (const select of form.querySelectorAll("select")) if (select.value) query.set(select.name, select.value);
  return query.toString();
}
