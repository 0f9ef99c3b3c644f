/** A sentence for the tests: "[CLS] Dogs un##do it [SEP]", or a pair of "Dogs" and "undo it", with maps of two heads. */
/** @import { Example, Head } from "../data.js" */
import { Reading } from "../reading.js";

/** @type {Example} */
export const EXAMPLE = {
  title: "Dogs undo it",
  note: "",
  tokens: ["[CLS]", "dogs", "un", "##do", "it", "[SEP]"],
  labels: ["Dogs", "undo", "it"],
  words: [-1, 0, 1, 1, 2, -1],
  parts: [0, 0, 0, 0, 0, 0],
  start: [1, 2],
  marks: [[0, 1, "nsubj"], [2, 1, "dobj"]],
  weights: "",
};

/** @type {Example} */
export const PAIR = {
  ...EXAMPLE,
  tokens: ["[CLS]", "dogs", "[SEP]", "un", "##do", "it", "[SEP]"],
  words: [-1, 0, -1, 1, 1, 2, -1],
  parts: [0, 0, 0, 1, 1, 1, 1],
};

/** @type {Head} */
export const UNIFORM = [1, 1];
/** Looks at the next token; the last at itself. @type {Head} */
export const NEXT = [1, 2];

/** Codes [layer, head, query, key] of the two heads. @param {number} tokens */
function codes(tokens) {
  const all = new Uint8Array(2 * tokens * tokens).fill(Math.round(255 * Math.sqrt(1 / tokens)), 0, tokens * tokens);
  for (let query = 0; query < tokens; query++) {
    all[tokens * tokens + query * tokens + Math.min(query + 1, tokens - 1)] = 255;
  }
  return all;
}

/** @param {Partial<import("../units.js").Choice>} [choice] @param {Example} [example] */
export const reading = (choice = {}, example = EXAMPLE) =>
  new Reading(example, codes(example.tokens.length), 2, { whole: true, hide: false, within: "", ...choice });
