/** Where keys lead: in the grid of heads, along the words, in the lines and in the matrix. Null if nowhere. */
/** @import { Head } from "./data.js" */
/** @import { Reading, Side } from "./reading.js" */
/** @import { State } from "./state.js" */

/** @typedef {{ side: Side, word: number, follow: boolean }} Move To a word; whether the panel should scroll to it. */

export const clamp = (/** @type {number} */ value, /** @type {number} */ low, /** @type {number} */ high) =>
  Math.max(low, Math.min(high, value));

/**
 * @param {string} key
 * @param {Head} head
 * @param {number} layers
 * @param {number} heads A layer.
 * @returns {Head | null}
 */
export function inGrid(key, [layer, head], layers, heads) {
  /** @type {Record<string, Head>} */
  const moves = {
    ArrowUp: [layer - 1, head], ArrowDown: [layer + 1, head],
    ArrowLeft: [layer, head - 1], ArrowRight: [layer, head + 1],
    Home: [layer, 1], End: [layer, heads], PageUp: [1, head], PageDown: [layers, head],
  };
  const to = moves[key];
  return to ? [clamp(to[0], 1, layers), clamp(to[1], 1, heads)] : null;
}

/**
 * @param {string} key
 * @param {number} place
 * @param {number} count
 */
export function inText(key, place, count) {
  /** @type {Record<string, number>} */
  const steps = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, Home: -count, End: count };
  return key in steps ? clamp(place + steps[key], 0, count - 1) : null;
}

/** @type {Record<string, [Side, number]>} */
const ARROWS = { ArrowUp: ["from", -1], ArrowDown: ["from", 1], ArrowLeft: ["to", -1], ArrowRight: ["to", 1] };

/**
 * Up and down along the words of a side, left and right to the other side.
 * @param {string} key
 * @param {Pick<State, "side" | "word">} state
 * @param {Reading} reading
 * @returns {Move | null}
 */
export function inLines(key, state, reading) {
  if (!(key in ARROWS)) return null;
  const [axis, by] = ARROWS[key];
  if (axis === "from") return step(state.side, by, state.word, reading);
  return { side: by > 0 ? "to" : "from", word: state.word ?? reading.rows[0], follow: false };
}

/**
 * Up and down along the rows, left and right along the columns.
 * @param {string} key
 * @param {Pick<State, "side" | "word">} state
 * @param {Reading} reading
 */
export function inMatrix(key, state, reading) {
  return key in ARROWS ? step(...ARROWS[key], state.word, reading) : null;
}

/**
 * @param {Side} side
 * @param {number} by
 * @param {number | null} word
 * @param {Reading} reading
 * @returns {Move}
 */
function step(side, by, word, reading) {
  const list = reading.on(side);
  const place = word == null ? 0 : clamp(list.indexOf(word) + by, 0, list.length - 1);
  return { side, word: list[place], follow: true };
}
