import assert from "node:assert/strict";
import { test } from "node:test";
import { tables } from "../tables.js";
import { NEXT, PAIR, reading, UNIFORM } from "./example.js";

test("without a word the strongest pairs are listed, each once, with the weights of all heads", () => {
  const [table, ...rest] = tables(reading(), [NEXT, UNIFORM], null);
  assert.equal(rest.length, 0);
  assert.equal(table.caption, "Strongest attention");
  assert.equal(table.rows.length, 8);
  assert.deepEqual(table.rows[0].labels, ["[CLS]", "Dogs"]);
  assert.deepEqual(table.rows[0].weights.map((weight) => weight.toFixed(2)), ["1.00", "0.17"]);
  assert.equal(new Set(table.rows.map((row) => row.labels.join())).size, 8);
});

test("a word is listed from both sides, with the places of the others", () => {
  const both = tables(reading(), [NEXT], 2);
  assert.deepEqual(both.map((table) => table.caption), ["“undo” (place 3) looks at", "“undo” (place 3) is looked at by"]);
  assert.deepEqual(both[0].rows.slice(0, 2), [{ labels: ["undo", "3"], weights: [0.5] }, { labels: ["it", "4"], weights: [0.5] }]);
  assert.deepEqual(both[1].rows[0], { labels: ["Dogs", "2"], weights: [1] });
});

test("a word that only looks is listed from that side", () => {
  assert.deepEqual(tables(reading({ within: "01" }, PAIR), [NEXT], 1).map((table) => table.caption), ["“Dogs” (place 2) looks at"]);
});
