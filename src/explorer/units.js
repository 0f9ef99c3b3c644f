/** The units of a sentence, words or wordpieces, and which of them are shown. */
/** @import { Example } from "./data.js" */
/**
 * @typedef {object} Unit
 * @property {string} label
 * @property {number[]} tokens Its wordpieces.
 * @property {number} word -1 for special tokens.
 * @property {number} part The text that it is in, 0 or 1.
 * @property {boolean} special
 *
 * @typedef {object} Choice What a reader wants to see.
 * @property {boolean} whole Words, else wordpieces.
 * @property {boolean} hide Leave special tokens out.
 * @property {string} within Texts of a pair that look and are looked at, such as "01"; "" for both.
 */

/**
 * @param {Example} example
 * @param {boolean} whole
 */
export function unitsOf(example, whole) {
  /** @type {Unit[]} */
  const units = [];
  example.tokens.forEach((token, i) => {
    const word = example.words[i];
    const special = word < 0;
    const last = units.at(-1);
    const label = whole && !special ? example.labels[word] : token;
    if (whole && !special && last?.word === word) last.tokens.push(i);
    else units.push({ label, tokens: [i], word, part: example.parts[i], special });
  });
  return units;
}

/**
 * The units in sight, and of these the rows, which look, and the columns, which are looked at: all as indices.
 * @param {Unit[]} units
 * @param {Choice} choice
 */
export function inSight(units, { hide, within }) {
  const all = [...units.keys()].filter((i) => !(hide && units[i].special));
  const of = (/** @type {string} */ part) => all.filter((i) => !within || units[i].part === Number(part));
  return { all, rows: of(within[0]), cols: of(within[1]) };
}
