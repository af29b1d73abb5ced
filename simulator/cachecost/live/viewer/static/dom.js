/** Elements of the page. Text is only ever set as text; there is no way here to set markup. */

/**
 * @typedef {string | number | Node | null | undefined | false} Child
 * @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} Properties
 */

/**
 * An element. Properties that begin with "on" are listeners, all others attributes: true is present, false absent.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag @param {Properties} [properties] @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) setProperty(element, name, value);
  element.append(...children.flat().filter(isShown).map(toNode));
  return element;
}

/** @param {HTMLElement} element @param {string} name @param {Properties[string]} value */
function setProperty(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (typeof value === "function") element.addEventListener(name.slice(2), value);
  else element.setAttribute(name, value === true ? "" : String(value));
}

/** @param {Child} child @returns {child is string | number | Node} */
function isShown(child) {
  return child !== null && child !== undefined && child !== false;
}

/** @param {string | number | Node} child @returns {string | Node} */
function toNode(child) {
  return child instanceof Node ? child : String(child);
}

/** Replace what an element contains. @param {Element} element @param {...(Child | Child[])} children */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter(isShown).map(toNode));
}

/** What went wrong, in words. @param {unknown} error */
export function errorText(error) {
  return make("p", { class: "bad", role: "alert" }, error instanceof Error ? error.message : String(error));
}

/** Text that only a screen reader reads. @param {string} text */
export function unseen(text) {
  return make("span", { class: "unseen" }, text);
}

/** A figure that never breaks. @param {string} text @param {string} [className] */
export function figureText(text, className = "") {
  return make("span", { class: `number ${className}`.trim() }, text);
}

/**
 * A table in a box that scrolls sideways where it must. Cells of columns from `words` on are figures, flush right.
 * @param {{caption: string, heads: string[], rows: Child[][], words?: number, className?: string}} table
 */
export function makeTable({ caption, heads, rows, words = 1, className = "" }) {
  const kind = (/** @type {number} */ column) => (column < words ? "word" : "number");
  const head = make(
    "tr",
    {},
    heads.map((text, column) => make("th", { scope: "col", class: kind(column) }, text)),
  );
  const body = rows.map((row) => {
    const [first, ...rest] = row;
    return make(
      "tr",
      {},
      make("th", { scope: "row", class: kind(0) }, first),
      rest.map((cell, column) => make("td", { class: kind(column + 1) }, cell)),
    );
  });
  const table = make(
    "table",
    { class: className },
    make("caption", {}, caption),
    make("thead", {}, head),
    make("tbody", {}, body),
  );
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, table);
}

/** A button that copies a text and says so. @param {string} label @param {() => string} text */
export function copyButton(label, text) {
  const button = make("button", { type: "button", class: "quiet", onclick: copy }, label);
  function copy() {
    const say = (/** @type {string} */ words) => fill(button, words);
    const copied = navigator.clipboard?.writeText(text()) ?? Promise.reject(new Error("no clipboard"));
    copied.then(
      () => say("Copied"),
      () => say("Cannot copy here: select the text"),
    );
    setTimeout(() => say(label), 2500);
  }
  return button;
}
