/** @import { Focus, Side } from "../reading.js" */
import assert from "node:assert/strict";
import { test } from "node:test";
import { chosen, focused, initial, turned } from "../state.js";

const from = /** @type {Side} */ ("from");
const to = /** @type {Side} */ ("to");

test("what the pointer is on goes before the word chosen", () => {
  /** @type {Focus} */
  const hover = { side: to, word: 2 };
  assert.equal(focused(initial(), null), null);
  assert.deepEqual(focused({ ...initial(), word: 0 }, null), { side: from, word: 0 });
  assert.equal(focused({ ...initial(), word: 0 }, hover), hover);
});

test("choosing a word again lets go, from its other side turns it", () => {
  const once = chosen(initial(), from, 3, true);
  assert.equal(once.word, 3);
  assert.equal(chosen(once, from, 3, true).word, null);
  assert.equal(chosen(once, from, 3).word, 3);
  assert.deepEqual([chosen(once, to, 3, true).word, chosen(once, to, 3, true).side], [3, to]);
});

test("a word that is not in sight on its side is seen from the other, or let go", () => {
  const sides = { rows: [1], cols: [3, 4] };
  assert.deepEqual(turned({ side: from, word: 1 }, sides), { side: from, word: 1 });
  assert.deepEqual(turned({ side: to, word: 1 }, sides), { side: from, word: 1 });
  assert.deepEqual(turned({ side: from, word: 4 }, sides), { side: to, word: 4 });
  assert.deepEqual(turned({ side: from, word: 2 }, sides), { side: from, word: null });
  assert.deepEqual(turned({ side: to, word: null }, sides), { side: to, word: null });
});
