import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { inlineModules, orderModules, readModules } from "./inline.mjs";

test("every module is part of the page, after those that it imports", () => {
  const texts = readModules();
  assert.deepEqual([...orderModules(texts)].sort(), [...texts.keys()].sort());
});

test("the modules in one script are a module without imports, and declare no name twice", () => {
  const script = inlineModules(readModules());
  assert.doesNotMatch(script, /^(import|export) /m);
  execFileSync(process.execPath, ["--input-type=module", "--check", "-"], { input: script });
});

test("modules that import each other are an error", () => {
  const texts = new Map([
    ["app.js", 'import { a } from "./other.js";\n'],
    ["other.js", 'import { b } from "./app.js";\n'],
  ]);
  assert.throws(() => orderModules(texts), /app.js → other.js → app.js/);
});
