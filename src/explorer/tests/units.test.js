import assert from "node:assert/strict";
import { test } from "node:test";
import { inSight, unitsOf } from "../units.js";
import { EXAMPLE, PAIR } from "./example.js";

test("pieces of a word are one unit, or each its own", () => {
  assert.deepEqual(unitsOf(EXAMPLE, true).map(({ label, tokens }) => [label, ...tokens]),
    [["[CLS]", 0], ["Dogs", 1], ["undo", 2, 3], ["it", 4], ["[SEP]", 5]]);
  assert.deepEqual(unitsOf(EXAMPLE, false).map((unit) => unit.label), EXAMPLE.tokens);
});

test("special tokens are never joined", () => {
  const units = unitsOf({ ...EXAMPLE, words: [-1, -1, 1, 1, 2, -1] }, true);
  assert.deepEqual(units.map((unit) => unit.special), [true, true, false, false, true]);
});

test("special tokens can be hidden, and the texts of a pair seen apart", () => {
  const units = unitsOf(PAIR, true); // [CLS] Dogs [SEP] | undo it [SEP]
  const choice = { whole: true, hide: false, within: "" };
  assert.deepEqual(inSight(units, choice), { all: [0, 1, 2, 3, 4, 5], rows: [0, 1, 2, 3, 4, 5], cols: [0, 1, 2, 3, 4, 5] });
  assert.deepEqual(inSight(units, { ...choice, hide: true }).all, [1, 3, 4]);
  assert.deepEqual(inSight(units, { ...choice, hide: true, within: "01" }), { all: [1, 3, 4], rows: [1], cols: [3, 4] });
});
