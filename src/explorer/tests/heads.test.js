/** @import { Head } from "../data.js" */
import assert from "node:assert/strict";
import { test } from "node:test";
import { address, addressed, COLOURS, picked } from "../heads.js";

/** @type {Head[]} */
const heads = [[4, 10], [5, 3]];

test("an address leads to the heads it was made for", () => {
  assert.equal(address(heads, 1), "#4-10+5-3@2");
  assert.deepEqual(addressed("#4-10+5-3@2"), { heads, index: 1 });
  assert.equal(address([[4, 10]], null), "#4-10");
  assert.deepEqual(addressed("#4-10"), { heads: [[4, 10]], index: null });
});

test("an address that a program has escaped is understood, one that is not ours left alone", () => {
  assert.deepEqual(addressed("#4-10%2B5-3%402"), { heads, index: 1 });
  for (const hash of ["", "#", "#results", "#4", "#4-10@", "#4-10@x", "#4-10+", "#%E0%A4%A"]) assert.equal(addressed(hash), null, hash);
});

test("no more heads are shown than there are colours", () => {
  const many = Array.from({ length: 9 }, (_, i) => /** @type {Head} */ ([i + 1, 1]));
  assert.equal(addressed(address(many, null))?.heads.length, COLOURS);
  assert.deepEqual(picked(many.slice(0, COLOURS), [9, 9], true).at(-1), [9, 9]);
  assert.equal(picked(many.slice(0, COLOURS), [9, 9], true).length, COLOURS);
});

test("a head picked stands alone, or joins, or leaves; the last one stays", () => {
  assert.deepEqual(picked(heads, [1, 1], false), [[1, 1]]);
  assert.deepEqual(picked(heads, [1, 1], true), [...heads, [1, 1]]);
  assert.deepEqual(picked(heads, [4, 10], true), [[5, 3]]);
  assert.deepEqual(picked([[5, 3]], [5, 3], true), [[5, 3]]);
});
