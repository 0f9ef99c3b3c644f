/** @import { Side } from "../reading.js" */
import assert from "node:assert/strict";
import { test } from "node:test";
import { inGrid, inLines, inMatrix, inText } from "../keyboard.js";
import { PAIR, reading } from "./example.js";

const state = (/** @type {number | null} */ word, /** @type {Side} */ side = "from") => ({ side, word });

test("in the grid keys stop at its edges", () => {
  assert.deepEqual(inGrid("ArrowDown", [3, 4], 6, 12), [4, 4]);
  assert.deepEqual(inGrid("ArrowDown", [6, 4], 6, 12), [6, 4]);
  assert.deepEqual(inGrid("ArrowLeft", [3, 1], 6, 12), [3, 1]);
  assert.deepEqual(["Home", "End", "PageUp", "PageDown"].map((key) => inGrid(key, [3, 4], 6, 12)), [[3, 1], [3, 12], [1, 4], [6, 4]]);
  assert.equal(inGrid("Enter", [3, 4], 6, 12), null);
});

test("along the words keys stop at both ends", () => {
  assert.deepEqual(["ArrowLeft", "ArrowDown", "Home", "End", "a"].map((key) => inText(key, 0, 5)), [0, 1, 0, 4, null]);
  assert.equal(inText("ArrowRight", 4, 5), 4);
});

test("in the lines up and down stay on the side, left and right change it", () => {
  const pair = reading({ within: "01" }, PAIR); // rows 0 1 2, columns 3 4 5
  assert.deepEqual(inLines("ArrowDown", state(null), pair), { side: "from", word: 0, follow: true });
  assert.deepEqual(inLines("ArrowDown", state(1), pair), { side: "from", word: 2, follow: true });
  assert.deepEqual(inLines("ArrowUp", state(3, "to"), pair), { side: "to", word: 3, follow: true });
  assert.deepEqual(inLines("ArrowRight", state(1), pair), { side: "to", word: 1, follow: false });
  assert.deepEqual(inLines("ArrowLeft", state(null), pair), { side: "from", word: 0, follow: false });
  assert.equal(inLines("Tab", state(1), pair), null);
});

test("in the matrix up and down walk the rows, left and right the columns", () => {
  const pair = reading({ within: "01" }, PAIR);
  assert.deepEqual(inMatrix("ArrowDown", state(0), pair), { side: "from", word: 1, follow: true });
  assert.deepEqual(inMatrix("ArrowRight", state(4, "to"), pair), { side: "to", word: 5, follow: true });
  assert.deepEqual(inMatrix("ArrowRight", state(5, "to"), pair), { side: "to", word: 5, follow: true });
  assert.deepEqual(inMatrix("ArrowUp", state(null), pair), { side: "from", word: 0, follow: true });
  assert.equal(inMatrix("Tab", state(1), pair), null);
});
