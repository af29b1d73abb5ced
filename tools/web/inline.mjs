// The modules of the page as one script, as a saved page has them; `node tools/web/inline.mjs` prints it.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const STATIC = new URL("../../simulator/cachecost/live/viewer/static/", import.meta.url);
const IMPORT = /^import \{[^}]*\} from "\.\/(\w+\.js)";\n/gm;

/** Modules of a folder in an order in which each comes after those that it imports. Throws where they form a cycle. */
export function orderModules(texts, name = "app.js", done = [], above = []) {
  if (above.includes(name)) throw new Error(`modules import each other: ${[...above, name].join(" → ")}`);
  if (done.includes(name)) return done;
  for (const [, imported] of texts.get(name).matchAll(IMPORT)) orderModules(texts, imported, done, [...above, name]);
  done.push(name);
  return done;
}

export function readModules() {
  const names = readdirSync(STATIC).filter((name) => name.endsWith(".js"));
  return new Map(names.map((name) => [name, readFileSync(new URL(name, STATIC), "utf8")]));
}

export function inlineModules(texts) {
  const stripped = orderModules(texts).map((name) =>
    texts
      .get(name)
      .replace(IMPORT, "")
      .replace(/^export /gm, ""),
  );
  return stripped.join("\n").replaceAll("</", "<\\/").replaceAll("<!--", "<\\!--");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(inlineModules(readModules()));
