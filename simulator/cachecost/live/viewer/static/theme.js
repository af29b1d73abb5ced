/** Colours: the palette comes from the server, the theme from the system or the person, and print is light. */

import { fill, make } from "./dom.js";

const KEY = "cachecost-theme";
const NEXT = new Map([
  ["system", "light"],
  ["light", "dark"],
  ["dark", "system"],
]);
const dark = matchMedia("(prefers-color-scheme: dark)");
const print = matchMedia("print");

/** @type {StartAnswer["colours"]} */
let palette = { light: {}, dark: {} };
let choice = storedChoice();
/** @type {Set<() => void>} */
const themeListeners = new Set();

/** Where storage is blocked, the choice lasts as long as the page. */
function storedChoice() {
  try {
    return localStorage.getItem(KEY) ?? "system";
  } catch {
    return "system";
  }
}

/** @param {string} value */
function storeChoice(value) {
  try {
    localStorage.setItem(KEY, value);
  } catch {
    // The choice holds until the page is closed.
  }
}

function isDark() {
  return !print.matches && (choice === "dark" || (choice === "system" && dark.matches));
}

/** The colour of that name in the theme that is shown. @param {string} name */
export function colour(name) {
  return (isDark() && palette.dark[name]) || palette.light[name] || "#808080";
}

/** Set the custom properties that the style sheet reads, and tell who draws. */
function applyTheme() {
  const root = document.documentElement;
  const shown = isDark() ? { ...palette.light, ...palette.dark } : palette.light;
  for (const [name, value] of Object.entries(shown)) root.style.setProperty(`--${name}`, value);
  root.style.setProperty("color-scheme", isDark() ? "dark" : "light");
  for (const listener of themeListeners) listener();
}

/** @param {StartAnswer["colours"]} colours */
export function startTheme(colours) {
  palette = colours;
  dark.addEventListener("change", applyTheme);
  print.addEventListener("change", applyTheme);
  applyTheme();
}

/** Call `listener` after each change of theme; returns what ends that. @param {() => void} listener */
export function onTheme(listener) {
  themeListeners.add(listener);
  return () => themeListeners.delete(listener);
}

export function themeButton() {
  const button = make("button", { type: "button", class: "quiet", onclick: turn });
  const say = () => fill(button, make("span", { class: "narrow-unseen" }, "Theme: "), choice);
  function turn() {
    choice = NEXT.get(choice) ?? "system";
    storeChoice(choice);
    say();
    applyTheme();
  }
  say();
  return button;
}
