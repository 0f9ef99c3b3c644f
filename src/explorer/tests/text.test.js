/** @import { Scene } from "../state.js" */
import assert from "node:assert/strict";
import { test } from "node:test";
import { description, figure } from "../text.js";
import { EXAMPLE, NEXT, PAIR, reading, UNIFORM } from "./example.js";

/** @param {Partial<Scene>} [scene] */
const say = (scene) => description({ reading: reading(), heads: [NEXT], focus: null, marks: [], ...scene });

test("weights have no more digits than their rounding leaves", () => {
  assert.deepEqual([0, 0.0123, 0.0994, 0.0996, 0.5, 1].map(figure), ["0.000", "0.012", "0.099", "0.10", "0.50", "1.00"]);
});

test("without a word each head tells its strongest pair", () => {
  assert.deepEqual(say({ heads: [NEXT, UNIFORM] }), [
    "Layer 1, head 2: strongest, “[CLS]” attends 1.00 to “Dogs”.",
    "Layer 1, head 1: strongest, “[CLS]” attends 0.33 to “undo”.",
  ]);
  assert.deepEqual(say({ reading: reading({ within: "10" }, PAIR) }), ["Layer 1, head 2: no attention here."]);
});

test("a word tells where it looks, who looks at it, or one weight", () => {
  assert.deepEqual(say({ focus: { side: "from", word: 2 } }),
    ["Layer 1, head 2: “undo” attends 0.50 to “undo”, 0.50 to “it”, 0.000 to “[CLS]”."]);
  assert.deepEqual(say({ focus: { side: "to", word: 2 } }),
    ["Layer 1, head 2: “undo” receives 1.00 from “Dogs”, 0.50 from “undo”, 0.000 from “[CLS]”."]);
  assert.deepEqual(say({ focus: { side: "from", word: 1, other: 2 } }), ["Layer 1, head 2: “Dogs” attends 1.00 to “undo”."]);
});

test("what hidden tokens had is told, and what is known of the word", () => {
  const hidden = reading({ hide: true });
  assert.match(say({ reading: hidden, focus: { side: "from", word: 3 } })[0], / \(Special tokens, left out, had 1\.00\.\)$/);
  assert.doesNotMatch(say({ reading: hidden, focus: { side: "to", word: 3 } })[0], /left out/);
  const marks = reading({}, EXAMPLE).known();
  assert.equal(say({ marks, focus: { side: "to", word: 2 } })[1], "Marked: “Dogs” → “undo” (nsubj), “it” → “undo” (dobj).");
  assert.equal(say({ marks, focus: { side: "from", word: 2 } }).length, 1);
  assert.equal(say({ marks }).length, 1);
});
