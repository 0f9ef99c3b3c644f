/** What a reader has chosen, and how choosing changes it. */
/** @import { Head } from "./data.js" */
/** @import { Focus, Known, Reading, Side } from "./reading.js" */
/**
 * @typedef {object} State
 * @property {number} index The sentence.
 * @property {Head[]} heads Those shown, at least one once a sentence is.
 * @property {boolean} picked Whether the reader, not the sentence, chose them.
 * @property {Side} side From which side the word chosen is seen.
 * @property {number | null} word
 *
 * @typedef {object} Scene All that the drawings and the words beside them show.
 * @property {Reading} reading
 * @property {Head[]} heads
 * @property {Focus | null} focus
 * @property {Known[]} marks
 * @property {(place: number, strength: number) => string} colour Of the head at this place, so strong.
 * @property {string} ink Colour of text.
 * @property {string} font
 */

/** @returns {State} */
export const initial = () => ({ index: 0, heads: [], picked: false, side: "from", word: null });

/**
 * What is looked at: what the pointer is on, else the word chosen.
 * @param {State} state
 * @param {Focus | null} hover
 * @returns {Focus | null}
 */
export const focused = ({ side, word }, hover) => hover ?? (word == null ? null : { side, word });

/**
 * Choose a word seen from one side; with `toggle`, choosing it again lets go.
 * @template {Pick<State, "side" | "word">} S
 * @param {S} state
 * @param {Side} side
 * @param {number | null} word
 * @param {boolean} [toggle]
 * @returns {S}
 */
export function chosen(state, side, word, toggle = false) {
  const again = toggle && state.word === word && state.side === side;
  return { ...state, side, word: again ? null : word };
}

/**
 * A word that cannot look, or be looked at, within the texts in sight, is seen from its other side, or let go.
 * @template {Pick<State, "side" | "word">} S
 * @param {S} state
 * @param {Pick<Reading, "rows" | "cols">} reading
 * @returns {S}
 */
export function turned(state, { rows, cols }) {
  if (state.word == null) return state;
  const looks = rows.includes(state.word);
  const isLookedAt = cols.includes(state.word);
  if (!looks && !isLookedAt) return { ...state, word: null };
  if (state.side === "from" ? looks : isLookedAt) return state;
  return { ...state, side: looks ? "from" : "to" };
}
