/** One sentence as it is shown: the attention of every head between its units. */
/** @import { Example, Head } from "./data.js" */
/** @import { Choice } from "./units.js" */
import { WEIGHT } from "./data.js";
import { nameOf } from "./heads.js";
import { inSight, unitsOf } from "./units.js";

const MAX_PAIRS = 400; // of one head, shown while no word is chosen

/**
 * @typedef {"from" | "to"} Side A word looks ("from"), or is looked at ("to").
 * @typedef {{ side: Side, word: number, other?: number }} Focus The unit in question, and the one it is seen with.
 * @typedef {[from: number, to: number, weight: number]} Pair
 * @typedef {{ from: number[], to: number[], label: string }} Known What is known of a sentence, between units.
 * @typedef {{ shown: Float32Array, special: Float32Array, strongest?: Pair[] }} HeadMap
 */

/**
 * Of what is known, that which is about the word in question, on its side; all without one.
 * @param {Known[]} marks
 * @param {Focus | null} focus
 */
export const concerning = (marks, focus) =>
  focus ? marks.filter((mark) => mark[focus.side].includes(focus.word)) : marks;

export class Reading {
  /** @type {Map<string, HeadMap>} */
  #maps = new Map();

  /**
   * @param {Example} example
   * @param {Uint8Array} codes [layer, head, query, key]
   * @param {number} heads A layer.
   * @param {Choice} choice
   */
  constructor(example, codes, heads, choice) {
    this.example = example;
    this.codes = codes;
    this.heads = heads;
    this.hide = choice.hide;
    this.units = unitsOf(example, choice.whole);
    const { all, rows, cols } = inSight(this.units, choice);
    this.all = all;
    this.rows = rows;
    this.cols = cols;
  }

  /** The unit that has this wordpiece. @param {number} token */
  unitAt(token) {
    return this.units.findIndex((unit) => unit.tokens.includes(token));
  }

  /** @param {number} unit */
  label(unit) {
    return this.units[unit].label;
  }

  /** The units on one side. @param {Side} side */
  on(side) {
    return side === "from" ? this.rows : this.cols;
  }

  /** The units that this one is seen with. @param {Focus} focus */
  others(focus) {
    return this.on(focus.side === "from" ? "to" : "from");
  }

  /**
   * @param {Head} head
   * @param {number} from
   * @param {number} to
   */
  weight(head, from, to) {
    return this.#map(head).shown[from * this.units.length + to];
  }

  /**
   * The weight between a word in question and another.
   * @param {Head} head
   * @param {Focus} focus
   * @param {number} other
   */
  along(head, focus, other) {
    return focus.side === "from" ? this.weight(head, focus.word, other) : this.weight(head, other, focus.word);
  }

  /**
   * What a word gives to special tokens, hidden or not.
   * @param {Head} head
   * @param {number} from
   */
  toSpecial(head, from) {
    return this.#map(head).special[from];
  }

  /**
   * The other words, those with most weight in any of the heads first.
   * @param {Head[]} heads
   * @param {Focus} focus
   */
  ranked(heads, focus) {
    const most = (/** @type {number} */ other) => Math.max(...heads.map((head) => this.along(head, focus, other)));
    const weighed = this.others(focus).map((other) => ({ other, weight: most(other) }));
    return weighed.sort((a, b) => b.weight - a.weight).map(({ other }) => other);
  }

  /** Pairs of one head, strongest first. @param {Head} head */
  strongest(head) {
    const map = this.#map(head);
    map.strongest ??= this.rows
      .flatMap((i) => this.cols.map((j) => /** @type {Pair} */ ([i, j, this.weight(head, i, j)])))
      .filter((pair) => pair[2] > 0.004)
      .sort((a, b) => b[2] - a[2])
      .slice(0, MAX_PAIRS);
    return map.strongest;
  }

  /** What is known of the sentence, between units in sight. @returns {Known[]} */
  known() {
    const of = (/** @type {number[]} */ list, /** @type {number} */ word) =>
      list.filter((i) => this.units[i].word === word);
    return this.example.marks
      .map(([from, to, label]) => ({ from: of(this.rows, from), to: of(this.cols, to), label }))
      .filter(({ from, to }) => from.length && to.length);
  }

  /** @param {Head} head */
  #map(head) {
    const name = nameOf(head);
    let map = this.#maps.get(name);
    if (!map) this.#maps.set(name, (map = this.#between(head)));
    return map;
  }

  /**
   * From wordpieces to units: the sum over a word's pieces to it, the mean over them from it. Where special tokens
   * are hidden, what is left of each row is scaled up to sum to 1.
   * @param {Head} head
   * @returns {HeadMap}
   */
  #between([layer, head]) {
    const { units, codes } = this;
    const n = units.length;
    const unitOf = units.flatMap((unit, i) => unit.tokens.map(() => i)); // of each wordpiece: they come in order
    const tokens = unitOf.length;
    const shown = new Float32Array(n * n);
    let at = ((layer - 1) * this.heads + head - 1) * tokens * tokens;
    for (let query = 0; query < tokens; query++) {
      const row = unitOf[query] * n;
      const share = 1 / units[unitOf[query]].tokens.length;
      for (let key = 0; key < tokens; key++) shown[row + unitOf[key]] += WEIGHT[codes[at++]] * share;
    }
    const special = new Float32Array(n);
    for (let i = 0; i < n; i++) units.forEach((unit, j) => { if (unit.special) special[i] += shown[i * n + j]; });
    if (this.hide) {
      for (let i = 0; i < n; i++) {
        let sum = 0;
        units.forEach((unit, j) => { if (!unit.special) sum += shown[i * n + j]; });
        units.forEach((unit, j) => { shown[i * n + j] = unit.special || !sum ? 0 : shown[i * n + j] / sum; });
      }
    }
    return { shown, special };
  }
}
