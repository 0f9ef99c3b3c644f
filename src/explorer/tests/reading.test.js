import assert from "node:assert/strict";
import { test } from "node:test";
import { WEIGHT } from "../data.js";
import { concerning } from "../reading.js";
import { NEXT, PAIR, reading, UNIFORM } from "./example.js";

const near = (/** @type {number} */ a, /** @type {number} */ b, within = 1e-6) => assert.ok(Math.abs(a - b) <= within, `${a} is not ${b}`);

test("attention to a word is the sum over its pieces, from it the mean", () => {
  const shown = reading(); // [CLS] Dogs undo it [SEP]
  const piece = WEIGHT[Math.round(255 * Math.sqrt(1 / 6))];
  near(shown.weight(UNIFORM, 1, 2), 2 * piece);
  near(shown.weight(UNIFORM, 2, 1), piece);
  near(shown.weight(UNIFORM, 2, 2), 2 * piece);
  near(shown.weight(NEXT, 2, 2), 0.5); // un looks at ##do, ##do at it
  near(shown.weight(NEXT, 2, 3), 0.5);
});

test("a word seen from either side is the same weight", () => {
  const shown = reading();
  assert.equal(shown.along(NEXT, { side: "from", word: 2 }, 3), shown.weight(NEXT, 2, 3));
  assert.equal(shown.along(NEXT, { side: "to", word: 3 }, 2), shown.weight(NEXT, 2, 3));
});

test("where special tokens are hidden each row is scaled up to sum to 1, and what they had is still known", () => {
  const shown = reading({ hide: true });
  near(shown.cols.reduce((sum, col) => sum + shown.weight(UNIFORM, 1, col), 0), 1);
  near(shown.weight(UNIFORM, 1, 2), 0.5); // two pieces of four
  assert.equal(shown.weight(UNIFORM, 1, 0), 0);
  near(shown.toSpecial(UNIFORM, 1), 2 / 6, 0.01);
  near(reading().toSpecial(UNIFORM, 1), 2 / 6, 0.01);
  near(shown.weight(NEXT, 3, 2), 0); // "it" looks only at [SEP]: nothing is left to scale
});

test("the strongest pairs come first, those that rounding could have made not at all", () => {
  const pairs = reading({}, PAIR).strongest(NEXT);
  assert.deepEqual(pairs.map((pair) => pair[2]), [1, 1, 1, 1, 1, 0.5, 0.5]);
  assert.deepEqual(reading({ within: "01" }, PAIR).strongest(NEXT), [[2, 3, 1]]);
});

test("words are ranked by their strongest weight in any of the heads", () => {
  const shown = reading();
  assert.deepEqual(shown.ranked([NEXT], { side: "from", word: 1 })[0], 2);
  assert.deepEqual(shown.ranked([UNIFORM, NEXT], { side: "from", word: 3 }).slice(0, 2), [4, 2]); // [SEP] 1, undo 2/6
});

test("what is known lies between units in sight, and concerns a word on its own side", () => {
  const marks = reading({ whole: false }).known();
  assert.deepEqual(marks, [{ from: [1], to: [2, 3], label: "nsubj" }, { from: [4], to: [2, 3], label: "dobj" }]);
  assert.deepEqual(reading({ within: "01" }, PAIR).known().map((mark) => mark.label), ["nsubj"]);
  assert.equal(concerning(marks, null), marks);
  assert.deepEqual(concerning(marks, { side: "from", word: 4 }), [marks[1]]);
  assert.deepEqual(concerning(marks, { side: "to", word: 3 }), marks);
  assert.deepEqual(concerning(marks, { side: "to", word: 4 }), []);
});

test("a wordpiece leads to its unit", () => {
  assert.equal(reading().unitAt(3), 2);
  assert.equal(reading({ whole: false }).unitAt(3), 3);
});
