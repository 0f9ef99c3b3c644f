/** What is seen, in words: for the status line, which screen readers speak. */
/** @import { Head } from "./data.js" */
/** @import { Focus, Reading } from "./reading.js" */
/** @import { Scene } from "./state.js" */
import { inWords } from "./heads.js";
import { concerning } from "./reading.js";

/** A weight, with no more digits than the rounding leaves. @param {number} weight */
export const figure = (weight) => weight.toFixed(weight < 0.0995 ? 3 : 2);

export const quoted = (/** @type {string} */ label) => `“${label}”`;

/**
 * A sentence for each head, and one for what is known of the word in question.
 * @param {Pick<Scene, "reading" | "heads" | "focus" | "marks">} scene
 */
export function description({ reading, heads, focus, marks }) {
  const say = heads.map((head) => `${inWords(head)}: ${focus ? ofWord(reading, head, focus) : ofHead(reading, head)}`);
  const about = concerning(marks, focus);
  if (focus && about.length) {
    const first = (/** @type {number[]} */ units) => quoted(reading.label(units[0]));
    const each = about.map(({ from, to, label }) => `${first(from)} → ${first(to)} (${label})`);
    say.push(`Marked: ${each.join(", ")}.`);
  }
  return say;
}

/**
 * @param {Reading} reading
 * @param {Head} head
 */
function ofHead(reading, head) {
  const [pair] = reading.strongest(head);
  if (!pair) return "no attention here.";
  const [from, to, weight] = pair;
  return `strongest, ${quoted(reading.label(from))} attends ${figure(weight)} to ${quoted(reading.label(to))}.`;
}

/**
 * @param {Reading} reading
 * @param {Head} head
 * @param {Focus} focus
 */
function ofWord(reading, head, focus) {
  const word = quoted(reading.label(focus.word));
  const share = (/** @type {number} */ other) => figure(reading.along(head, focus, other));
  if (focus.other != null) return `${word} attends ${share(focus.other)} to ${quoted(reading.label(focus.other))}.`;
  const [verb, towards] = focus.side === "from" ? ["attends", "to"] : ["receives", "from"];
  const best = reading.ranked([head], focus).slice(0, 3)
    .map((other) => `${share(other)} ${towards} ${quoted(reading.label(other))}`);
  const left = reading.hide && focus.side === "from"
    ? ` (Special tokens, left out, had ${figure(reading.toSpecial(head, focus.word))}.)` : "";
  return `${word} ${verb} ${best.join(", ")}.${left}`;
}
