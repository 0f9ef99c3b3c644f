/** What is seen, in numbers: tables beside the drawing, for all readers. */
/** @import { Head } from "./data.js" */
/** @import { Focus, Reading } from "./reading.js" */
import { make } from "./dom.js";
import { nameOf } from "./heads.js";
import { figure, quoted } from "./text.js";

const LISTED = 8; // rows of a table

/**
 * @typedef {object} Table
 * @property {string} caption
 * @property {string[]} names Of the columns before those of the heads.
 * @property {{ labels: string[], weights: number[] }[]} rows A weight for each head.
 */

/**
 * The same in numbers: for the word chosen, from each side from which it can be seen, else for the heads as a whole.
 * @param {Reading} reading
 * @param {Head[]} heads
 * @param {number | null} word
 * @returns {Table[]}
 */
export function tables(reading, heads, word) {
  const place = (/** @type {number} */ unit) => `${unit + 1}`;
  if (word == null) {
    const best = heads.flatMap((head) => reading.strongest(head).slice(0, LISTED)).sort((a, b) => b[2] - a[2]);
    const pairs = [...new Map(best.map((pair) => [`${pair[0]} ${pair[1]}`, pair])).values()].slice(0, LISTED);
    return [{
      caption: "Strongest attention",
      names: ["word", "looks at"],
      rows: pairs.map(([from, to]) => ({
        labels: [reading.label(from), reading.label(to)],
        weights: heads.map((head) => reading.weight(head, from, to)),
      })),
    }];
  }
  const name = `${quoted(reading.label(word))} (place ${place(word)})`;
  /** @type {[Focus, string][]} */
  const sides = [[{ side: "from", word }, "looks at"], [{ side: "to", word }, "is looked at by"]];
  return sides.filter(([{ side }]) => reading.on(side).includes(word)).map(([focus, verb]) => ({
    caption: `${name} ${verb}`,
    names: ["word", "place"],
    rows: reading.ranked(heads, focus).slice(0, LISTED).map((other) => ({
      labels: [reading.label(other), place(other)],
      weights: heads.map((head) => reading.along(head, focus, other)),
    })),
  }));
}

/**
 * The table as the page has it; where several heads are shown, each with its colour.
 * @param {Table} table
 * @param {Head[]} heads
 */
export function element({ caption, names, rows }, heads) {
  const titles = heads.map((head, i) => make("th", { scope: "col", class: "number" },
    heads.length > 1 ? make("i", { class: `c${i}` }) : "", nameOf(head)));
  return make("div", { class: "table" }, make("table", null, make("caption", null, caption),
    make("thead", null, make("tr", null, ...names.map((name) => make("th", { scope: "col" }, name)), ...titles)),
    make("tbody", null, ...rows.map(({ labels, weights }) => make("tr", null,
      ...labels.map((label) => make("td", null, label)),
      ...weights.map((weight) => make("td", { class: "number" }, figure(weight))))))));
}
