/** The page: its bar, the theme, and one view at a time, chosen by the address. */

import { getAnswer, home, isSaved, sessionPath } from "./api.js";
import { makeBill } from "./bill.js";
import { showCompare } from "./compare_page.js";
import { errorText, fill, make } from "./dom.js";
import { startLive } from "./live.js";
import { pageKey, parseRoute } from "./router.js";
import { showRun } from "./run_page.js";
import { showSession } from "./session_page.js";
import { showSessions } from "./sessions_page.js";
import { startTheme, themeButton } from "./theme.js";

/** @typedef {import("./router.js").Route} Route */
/** @typedef {{element: HTMLElement, title: string, update?: (route: Route) => unknown, close: () => void}} Page */

/** @type {Record<Route["view"], (route: Route) => Promise<Page>>} */
const VIEWS = { sessions: showSessions, session: showSession, run: showRun, compare: showCompare };
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const bar = /** @type {HTMLElement} */ (document.getElementById("bar"));
const foot = /** @type {HTMLElement} */ (document.getElementById("foot"));
const save = make(
  "a",
  { class: "quiet", hidden: true, download: "", onclick: addressPage },
  "Save",
  make("span", { class: "narrow-unseen" }, " this page"),
);
/** @type {{key: string, page: Page | null, bill: HTMLElement | null}} */
const current = { key: "", page: null, bill: null };

async function start() {
  try {
    /** @type {StartAnswer} */
    const answer = await getAnswer("start");
    startTheme(answer.colours);
    fillBar(answer);
    if (answer.bill && !isSaved) current.bill = makeBill(answer.bill);
    window.addEventListener("hashchange", show);
    document.querySelector(".skip")?.addEventListener("click", skip);
    const at = await startAddress(answer);
    if (at !== location.hash) window.history.replaceState(null, "", at);
    await show();
  } catch (error) {
    fill(main, errorText(error));
  }
}

/** @param {StartAnswer} answer */
function fillBar(answer) {
  const hasList = !isSaved && ["sessions", "live"].includes(answer.kind);
  fill(
    bar,
    make("span", { class: "brand" }, "cachecost"),
    hasList && make("a", { href: "#/" }, "Sessions"),
    answer.kind === "live" && startLive(),
    make("span", { class: "space" }),
    save,
    themeButton(),
  );
  fill(foot, answer.command && make("code", {}, answer.command), ` cachecost ${answer.version} · times in UTC`);
}

/** The address asked for, or where this kind of page begins. @param {StartAnswer} answer */
async function startAddress(answer) {
  if (location.hash.length > 2) return location.hash;
  if (isSaved) return home;
  if (answer.kind === "run" || answer.kind === "compare") return `#/${answer.kind}`;
  if (answer.kind !== "live") return "#/";
  const { sessions } = await getAnswer("sessions");
  return sessions.length === 1 ? `#/session/${encodeURIComponent(sessions[0].id)}` : "#/";
}

/** Show the view of the address; a view that is shown already is told the rest. */
async function show() {
  const route = parseRoute(location.hash);
  const key = pageKey(route);
  const isNew = key !== current.key;
  current.key = key;
  try {
    if (isNew && !(await change(route, key))) return;
    await current.page?.update?.(route);
  } catch (error) {
    fill(main, errorText(error));
  }
}

/** @param {Route} route @param {string} key @returns {Promise<boolean>} whether the address is still the same */
async function change(route, key) {
  current.page?.close();
  current.page = null;
  main.setAttribute("aria-busy", "true");
  const page = await VIEWS[route.view](route).finally(() => main.removeAttribute("aria-busy"));
  if (current.key !== key) {
    page.close();
    return false;
  }
  current.page = page;
  document.title = `${page.title} · cachecost`;
  fill(main, page.element, current.bill);
  window.scrollTo(0, 0);
  main.focus({ preventScroll: true });
  save.hidden = isSaved || route.view !== "session";
  addressPage();
  return true;
}

/** What is saved opens at the call that is selected now. */
function addressPage() {
  const { session, call } = parseRoute(location.hash);
  save.href = `api/${sessionPath(session)}/page${call ? `?call=${call}` : ""}`;
}

/** The address says what is shown, so the link that skips the bar must not change it. @param {Event} event */
function skip(event) {
  event.preventDefault();
  main.focus();
}

start();
