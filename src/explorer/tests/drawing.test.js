import assert from "node:assert/strict";
import { test } from "node:test";
import { channels, strength } from "../colours.js";
import { smallMap } from "../grid.js";
import { linesOf } from "../lines.js";
import { cellAt, cut, fitting, focusAt } from "../matrix.js";
import { bars } from "../words.js";
import { EXAMPLE, NEXT, PAIR, reading, UNIFORM } from "./example.js";

test("small weights stay visible, none is stronger than 1", () => {
  assert.deepEqual([0, 1].map(strength), [0, 1]);
  assert.ok(strength(0.01) > 0.05);
  assert.deepEqual(channels("rgb(0, 114, 178)"), [0, 114, 178]);
  assert.deepEqual(channels("rgba(0, 114, 178, 0.5)"), [0, 114, 178]);
});

test("a small map has a pixel for each pair, as dark as its weight", () => {
  const { width, height, pixels } = smallMap(reading(), NEXT, [1, 2, 3]);
  assert.deepEqual([width, height], [5, 5]);
  assert.deepEqual([...pixels.slice(4, 8)], [1, 2, 3, 255]); // [CLS] at Dogs
  assert.deepEqual([...pixels.slice(0, 4)], [0, 0, 0, 0]);
});

test("a long sentence's small map keeps the strongest of what falls on a pixel", () => {
  const n = 112; // two by two on each pixel
  const tokens = Array.from({ length: n }, (_, i) => `w${i}`);
  const long = { ...EXAMPLE, tokens, labels: tokens, words: [...tokens.keys()], parts: tokens.map(() => 0), marks: [] };
  const { width, height, pixels } = smallMap(reading({}, long), NEXT, [1, 2, 3]);
  assert.deepEqual([width, height], [56, 56]);
  for (let i = 0; i < 55; i++) assert.equal(pixels[4 * (i * 56 + i) + 3], 255, `${i}`);
});

test("lines are those of the word in question, from its side, without what rounding could have made", () => {
  assert.deepEqual(linesOf(reading(), NEXT, { side: "from", word: 2 }), [[2, 2, 0.5], [2, 3, 0.5]]);
  assert.deepEqual(linesOf(reading(), NEXT, { side: "to", word: 2 }), [[1, 2, 1], [2, 2, 0.5]]);
  const shown = reading();
  assert.equal(linesOf(shown, UNIFORM, null), shown.strongest(UNIFORM));
});

test("a bar under a word is the root of its weight, one for each head", () => {
  const scene = { reading: reading(), heads: [NEXT, UNIFORM], focus: /** @type {const} */ ({ side: "from", word: 1 }) };
  assert.deepEqual(bars(scene, 2), [10, 6]);
  assert.deepEqual(bars({ ...scene, focus: null }, 2), [0, 0]);
  assert.deepEqual(bars({ ...scene, reading: reading({ within: "01" }, PAIR) }, 1), [0, 0]); // Dogs cannot be looked at
});

test("a point of the matrix falls on a cell, a row's label or a column's", () => {
  const layout = { left: 50, top: 30, cell: 10 };
  const still = { scrollLeft: 0, scrollTop: 0 };
  assert.deepEqual(cellAt({ x: 65, y: 49 }, layout, still), { row: 1, col: 1 });
  assert.deepEqual(cellAt({ x: 10, y: 49 }, layout, still), { row: 1, col: -1 });
  assert.deepEqual(cellAt({ x: 65, y: 49 }, layout, { scrollLeft: 20, scrollTop: 10 }), { row: 2, col: 3 });
  const shown = reading({ within: "01" }, PAIR);
  assert.deepEqual(focusAt(shown, { row: 1, col: 2 }), { side: "from", word: 1, other: 5 });
  assert.deepEqual(focusAt(shown, { row: 1, col: -1 }), { side: "from", word: 1, other: undefined });
  assert.deepEqual(focusAt(shown, { row: -1, col: 0 }), { side: "to", word: 3 });
  assert.equal(focusAt(shown, { row: 9, col: 9 }), null);
});

test("labels are cut so that they fit, cells fit the columns while one can read them", () => {
  const widthOf = (/** @type {string} */ text) => 10 * text.length;
  assert.equal(cut("unaffordable", 60, widthOf), "unaff…");
  assert.equal(cut("it", 60, widthOf), "it");
  assert.equal(cut("it", 1, widthOf), "…");
  assert.deepEqual([fitting(300, 100), fitting(300, 20), fitting(300, 2)], [11, 15, 26]);
});
