/**
 * Answers of the server; in a saved page those that are embedded in it.
 *
 * No library: the parts that one would bring are small here. uPlot (51 kB) would replace `paint.js` and `gestures.js`
 * and draws lines, not stacked columns that keep the tallest and the most rewritten call of a pixel; d3-zoom with what
 * it needs is 53 kB for `gestures.js` (180 lines); htmx and Alpine (52 and 56 kB) need eval, which the CSP forbids.
 */

export class AnswerError extends Error {
  /** @param {string} message @param {number} status */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** @returns {{home: string, answers: Record<string, unknown>} | null} */
function readEmbedded() {
  const element = document.getElementById("data");
  return element ? JSON.parse(element.textContent ?? "") : null;
}

const embedded = readEmbedded();
/** Whether this is a page that was saved, without a server. */
export const isSaved = embedded !== null;
/** The address that a saved page opens at, else "#/". */
export const home = embedded?.home ?? "#/";

/** @type {Map<string, Promise<any>>} */
const keptAnswers = new Map();
const KEPT = 40;

/**
 * The answer of `api/PATH`. Rejects with AnswerError.
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function getAnswer(path, signal) {
  return embedded ? fromEmbedded(path, embedded.answers) : getJson(`api/${path}`, signal);
}

/**
 * The JSON at an address of the server. Rejects with AnswerError.
 * @param {string} address
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function getJson(address, signal) {
  let response;
  try {
    response = await fetch(address, { signal, headers: { accept: "application/json" } });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new AnswerError("The server does not answer. Is it still running?", 0);
  }
  const answer = await response.json().catch(() => null);
  if (response.ok && answer) return answer;
  throw new AnswerError(answer?.error?.message ?? `The server answered ${response.status}.`, response.status);
}

/** @param {string} path @param {Record<string, unknown>} answers @returns {any} */
function fromEmbedded(path, answers) {
  if (path in answers) return answers[path];
  const words = path.includes("/block/") ? "The text of this block" : "This";
  throw new AnswerError(`${words} is not part of the saved page.`, 404);
}

/** The same, asked once: what a recording contains does not change. @param {string} path @returns {Promise<any>} */
export function getKept(path) {
  const known = keptAnswers.get(path);
  if (known) return known;
  const answer = getAnswer(path);
  answer.catch(() => keptAnswers.delete(path));
  keptAnswers.set(path, answer);
  if (keptAnswers.size > KEPT) keptAnswers.delete(/** @type {string} */ (keptAnswers.keys().next().value));
  return answer;
}

/** Forget the answers whose path begins so. @param {string} start */
export function forgetKept(start) {
  for (const path of keptAnswers.keys()) if (path.startsWith(start)) keptAnswers.delete(path);
}

/** The path of a session's answers. @param {string} id */
export function sessionPath(id) {
  return `session/${encodeURIComponent(id)}`;
}
