// Each row is what base/formatting.py writes for the same number (tests/base/test_formatting.py).
import assert from "node:assert/strict";
import { test } from "node:test";
import { STATIC } from "./inline.mjs";

const { bindUnits, countText, dollarChange, dollarPlaces, dollars, duration, percent, tokens } = await import(
  new URL("format.js", STATIC)
);

test("dollars", () => {
  const rows = [
    ["24.1", "$24.10"],
    ["0.0475", "$0.0475"],
    ["0.02", "$0.02"],
    ["-11.1", "−$11.10"],
    ["1514.44", "$1,514.44"],
    ["0", "$0.00"],
    ["0.005", "$0.005"],
    ["0.09996", "$0.10"],
    ["1.005", "$1.01"],
    [null, "–"],
    [1e-7, "$0.0000001"],
    ["0.00001234567", "$0.0000123"],
  ];
  for (const [amount, text] of rows) assert.equal(dollars(amount), text);
  assert.equal(dollars("0.004", 2), "<$0.01");
  assert.equal(dollars("0.005", 2), "$0.01");
  assert.equal(dollarChange("0.4"), "+$0.40");
  assert.equal(dollarPlaces(["0.0475", "0.0207", null]), 4);
  assert.equal(dollarPlaces(["2.44", "0.0001"]), 2);
});

test("tokens", () => {
  const rows = [
    [950, "950"],
    [999, "999"],
    [1000, "1.0k"],
    [1249, "1.2k"],
    [9949, "9.9k"],
    [9950, "10k"],
    [310_499, "310k"],
    [999_499, "999k"],
    [999_500, "1.00M"],
    [4_900_000, "4.90M"],
    [14_100_000, "14.1M"],
    [1_410_000_000, "1.41B"],
    [null, "–"],
  ];
  for (const [count, text] of rows) assert.equal(tokens(count), text);
});

test("percentages", () => {
  const rows = [
    [0.32, "32%"],
    [0.031, "3.1%"],
    [0.0004, "0.04%"],
    [0.9999, "99.9%"],
    [1, "100%"],
    [0.996, "99.6%"],
    [0, "0%"],
    [1.001, "100.1%"],
    [-0.065, "−6.5%"],
    [0.0995, "10%"],
    [null, "–"],
  ];
  for (const [ratio, text] of rows) assert.equal(percent(ratio), text);
  assert.equal(percent(0.08, { signed: true }), "+8%");
});

test("numbers never break from their units", () => {
  assert.equal(duration(885), "15\u00a0min");
  assert.equal(duration(9000), "2.5\u00a0h");
  assert.equal(countText(2, "entry"), "2\u00a0entries");
  assert.equal(
    bindUnits("idle 3 × (41 min, 2 h) of 127k tokens, 8 Jan"),
    "idle 3\u00a0× (41\u00a0min, 2\u00a0h) of 127k\u00a0tokens, 8\u00a0Jan",
  );
  assert.equal(bindUnits("5 minutes"), "5 minutes");
});
