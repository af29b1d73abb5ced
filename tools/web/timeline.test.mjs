import assert from "node:assert/strict";
import { test } from "node:test";
import { STATIC } from "./inline.mjs";

const load = (name) => import(new URL(name, STATIC));
const { firstFrom, joinColumns, nearestTo, toSeries } = await load("series.js");
const { alignByNumber, alignByPairs } = await load("slots.js");
const { binCalls, isSeen } = await load("bins.js");
const { viewAround, viewFrom, wholeView, zoomView } = await load("views.js");
const { parseRoute } = await load("router.js");

/** Calls whose prompts are as long as `read` says. */
function makeSeries(read, more = {}) {
  const zeros = read.map(() => 0);
  const columns = { read, write_5m: zeros, write_1h: zeros, input: zeros, cost_usd: zeros.map(String), cause: zeros };
  return toSeries({ ...columns, ...more }, {});
}

/** Numbers that look random and are the same each time. */
function pseudoRandom(seed) {
  let state = seed;
  return () => (state = (state * 1103515245 + 12345) % 2 ** 31) / 2 ** 31;
}

test("the tallest and the most rewritten call of all stay visible at every zoom", () => {
  const random = pseudoRandom(1);
  const read = Array.from({ length: 20_000 }, () => Math.floor(random() * 1000));
  const rewritten = read.map((_, at) => (at % 97 ? "0" : String(random())));
  const series = makeSeries(read, { rewritten_usd: rewritten });
  const tallest = read.indexOf(Math.max(...read));
  const most = rewritten.indexOf(String(Math.max(...rewritten.map(Number))));
  for (const width of [1, 390, 1240]) {
    for (const from of [0, 0.37, tallest - 200.6, most - 3.2].filter((at) => at >= 0)) {
      const view = { from, to: 20_000, width };
      const bins = binCalls(series, view);
      if (tallest >= from) assert.ok(bins.tallest.includes(tallest));
      if (most >= from) assert.ok(bins.rewritten.includes(most));
    }
  }
});

test("with room for it, each call has a column of its own", () => {
  const bins = binCalls(makeSeries([5, 6, 7]), { from: 0, to: 3, width: 300 });
  assert.deepEqual([...bins.tallest].slice(0, 3), [0, 1, 2]);
});

test("calls of one number share a slot, extra calls have their own", () => {
  const base = makeSeries([1, 1, 1], { number: [1, 2, 3] });
  const other = makeSeries([1, 1, 1, 1, 1], { number: [1, 0, 2, 3, 0] });
  assert.equal(alignByNumber([base, other]), 5);
  assert.deepEqual([...base.slot], [0, 2, 3]);
  assert.deepEqual([...other.slot], [0, 1, 2, 3, 4]);
});

test("pairs share a slot, what stands between them does not", () => {
  const [left, right] = [makeSeries([1, 1, 1]), makeSeries([1, 1, 1, 1])];
  assert.equal(
    alignByPairs(left, right, [
      [0, 1],
      [2, 2],
    ]),
    5,
  );
  assert.deepEqual([...left.slot], [1, 2, 3]);
  assert.deepEqual([...right.slot], [0, 1, 3, 4]);
});

test("the call nearest to a slot", () => {
  const series = makeSeries([1, 1, 1]);
  series.slot.set([0, 4, 9]);
  assert.deepEqual(
    [0, 1, 3, 7, 99].map((slot) => nearestTo(series, slot)),
    [0, 0, 1, 2, 2],
  );
  assert.equal(firstFrom(series, 5), 2);
  assert.equal(nearestTo(makeSeries([]), 0), -1);
});

test("a view never leaves the axis, and zooming in and out comes back", () => {
  const whole = wholeView({ from: 0, to: 1, width: 1000 }, 500);
  const near = zoomView(whole, 500, 0.25, 1);
  assert.deepEqual([near.from, near.to], [375, 500]);
  assert.deepEqual(zoomView(near, 500, 100), whole);
  assert.equal(viewFrom(whole, 500, 9999, 50).to, 500);
  const around = viewAround(wholeView(whole, 20_000), 20_000, 19_999);
  assert.ok(around.from <= 19_999 && around.to >= 20_000);
});

test("columns that arrive later are joined", () => {
  const columns = { read: [1], write_5m: [0], write_1h: [0], input: [0], cost_usd: ["1"], cause: [0] };
  assert.deepEqual(joinColumns(columns, { ...columns, read: [2] }).read, [1, 2]);
});

test("addresses", () => {
  assert.deepEqual(parseRoute("#/session/a%2Fb/call/12/block/3"), {
    view: "session",
    session: "a/b",
    strategy: "",
    call: 12,
    block: 3,
  });
  assert.equal(parseRoute("#/run/call/call/7").strategy, "call");
  assert.equal(parseRoute("#/run/call/call/7").call, 7);
  assert.equal(parseRoute("#/nonsense").view, "sessions");
  assert.equal(parseRoute("#/session/%E0%A4%A").session, "%E0%A4%A");
});

test("a sliver of a prompt is not drawn, unless it was written again", () => {
  assert.equal(isSeen(0.01, 3, 0), false);
  assert.equal(isSeen(0.5, 300, 0), true);
  assert.equal(isSeen(0.01, 3, 0.2), true);
  assert.equal(isSeen(0, 0, 0.2), false);
});
