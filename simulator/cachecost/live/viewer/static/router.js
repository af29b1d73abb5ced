/** Addresses of the page: what the part after "#" names. */

/**
 * @typedef {object} Route
 * @property {"sessions" | "session" | "run" | "compare"} view
 * @property {string} session its id, "" for none
 * @property {string} strategy of a run, "" for none
 * @property {number} call its number, 0 for none
 * @property {number} block 0 for none
 */

/** @param {string} hash @returns {Route} */
export function parseRoute(hash) {
  const [view = "", name = "", ...rest] = hash
    .replace(/^#?\/?/, "")
    .split("/")
    .map(decode);
  const after = (/** @type {string} */ word) => Number(rest[rest.indexOf(word) + 1]) || 0;
  const call = rest.includes("call") ? after("call") : 0;
  const block = rest.includes("block") ? after("block") : 0;
  if (view === "session" && name) return { view, session: name, strategy: "", call, block };
  if (view === "run") return { view, session: "", strategy: name, call, block };
  return { view: view === "compare" ? view : "sessions", session: "", strategy: "", call: 0, block: 0 };
}

/** @param {string} part */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** What two addresses of one page have in common; the page stays where it is the same. @param {Route} route */
export function pageKey({ view, session }) {
  return `${view}/${session}`;
}
