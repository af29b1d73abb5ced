/** What happens while the page is open: the server's events, where it sends any. */

import { isSaved } from "./api.js";
import { make } from "./dom.js";

/** @typedef {"calls" | "sessions"} LiveKind */

/** @type {Record<LiveKind, Set<(data: any) => void>>} */
const liveListeners = { calls: new Set(), sessions: new Set() };
const badge = make("span", { class: "badge", role: "status" }, "live");

/** Listen to the server. @returns {HTMLElement} what says whether it is heard */
export function startLive() {
  if (isSaved) return badge;
  const source = new EventSource("api/events");
  source.addEventListener("open", () => onOpen());
  source.addEventListener("error", () => say("not connected", true));
  source.addEventListener("calls", (event) => tell("calls", JSON.parse(event.data)));
  source.addEventListener("sessions", () => tellSoon());
  return badge;
}

/** What came while nobody listened is asked for. */
function onOpen() {
  say("live", false);
  tell("calls", { from: -1 });
}

/** @param {string} words @param {boolean} isOff */
function say(words, isOff) {
  badge.textContent = words;
  badge.classList.toggle("off", isOff);
}

/** @param {LiveKind} kind @param {any} data */
function tell(kind, data) {
  for (const listener of liveListeners[kind]) listener(data);
  if (kind === "calls") tellSoon();
}

let isWaiting = false;

/** The list of sessions changes with every call; it is asked for once a second at most. */
function tellSoon() {
  if (isWaiting || !liveListeners.sessions.size) return;
  isWaiting = true;
  setTimeout(() => {
    isWaiting = false;
    for (const listener of liveListeners.sessions) listener(null);
  }, 1000);
}

/**
 * Call `listener` with what arrives; returns what ends that.
 * @param {LiveKind} kind
 * @param {(data: any) => void} listener
 */
export function onLive(kind, listener) {
  liveListeners[kind].add(listener);
  return () => {
    liveListeners[kind].delete(listener);
  };
}
