// The rules for the modules of the page, and the few that keep them concatenable (static/README.md).
import js from "@eslint/js";

const browser = [
  "AbortController",
  "AbortSignal",
  "CanvasRenderingContext2D",
  "Element",
  "Event",
  "EventSource",
  "HTMLElement",
  "HTMLCanvasElement",
  "HTMLInputElement",
  "HTMLSelectElement",
  "HTMLTextAreaElement",
  "KeyboardEvent",
  "Node",
  "PointerEvent",
  "ResizeObserver",
  "URLSearchParams",
  "WheelEvent",
  "cancelAnimationFrame",
  "clearTimeout",
  "document",
  "fetch",
  "getComputedStyle",
  "localStorage",
  "location",
  "matchMedia",
  "navigator",
  "requestAnimationFrame",
  "setTimeout",
  "window",
];
const concatenable = [
  ["ExportDefaultDeclaration", "no default export"],
  ["ExportAllDeclaration", "no re-export"],
  ["ExportNamedDeclaration[declaration=null]", "export where the name is declared"],
  ["ImportNamespaceSpecifier", "import by name"],
  ["ImportDefaultSpecifier", "import by name"],
  ["ImportExpression", "no import at run time"],
].map(([selector, message]) => ({ selector, message: `${message}: the saved page concatenates the modules` }));
const inert = ["innerHTML", "outerHTML", "insertAdjacentHTML", "setHTMLUnsafe"].map((name) => ({
  selector: `MemberExpression[property.name='${name}']`,
  message: "text reaches the page by textContent only",
}));

export default [
  js.configs.recommended,
  {
    files: ["**/static/*.js"],
    languageOptions: {
      ecmaVersion: 2022,
      sourceType: "module",
      globals: Object.fromEntries(browser.map((name) => [name, "readonly"])),
    },
    rules: {
      eqeqeq: "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-shadow": "error",
      "no-var": "error",
      "prefer-const": "error",
      "max-len": ["error", { code: 120, ignoreUrls: true }],
      "max-lines": ["error", { max: 200, skipBlankLines: true, skipComments: true }],
      "max-lines-per-function": ["error", { max: 40, skipBlankLines: true, skipComments: true }],
      complexity: ["error", 12],
      "no-restricted-syntax": ["error", ...concatenable, ...inert],
    },
  },
  { files: ["**/*.mjs"], languageOptions: { globals: { URL: "readonly", console: "readonly", process: "readonly" } } },
];
