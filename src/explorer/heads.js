/** Heads: their names, the few that are shown together, and the address that leads to them. */
/** @import { Head } from "./data.js" */

/** So many heads can be compared: the style sheet has a colour for each. */
export const COLOURS = 6;

export const nameOf = (/** @type {Head} */ [layer, head]) => `${layer}-${head}`;
export const inWords = (/** @type {Head} */ [layer, head]) => `Layer ${layer}, head ${head}`;

/**
 * The heads shown after one was picked: it alone; or it joins the others, or leaves them if it was there.
 * @param {Head[]} heads
 * @param {Head} head
 * @param {boolean} add
 */
export function picked(heads, head, add) {
  if (!add) return [head];
  const rest = heads.filter((each) => nameOf(each) !== nameOf(head));
  if (rest.length === heads.length) return [...heads, head].slice(-COLOURS);
  return rest.length ? rest : heads;
}

/**
 * `#4-10`, `#4-10+5-3@2`: heads, and the number of the sentence where there are several.
 * @param {Head[]} heads
 * @param {number | null} index
 */
export const address = (heads, index) => `#${heads.map(nameOf).join("+")}${index == null ? "" : `@${index + 1}`}`;

/**
 * What an address asks for, or null if it is not one of ours. Without a number the sentence stays: index null.
 * @param {string} hash
 * @returns {{ heads: Head[], index: number | null } | null}
 */
export function addressed(hash) {
  const plain = hash.replaceAll("%2B", "+").replaceAll("%40", "@"); // as some programs write it
  const found = /^#(\d+-\d+(?:\+\d+-\d+)*)(?:@(\d+))?$/.exec(plain);
  if (!found) return null;
  const heads = found[1].split("+").map((name) => /** @type {Head} */ (name.split("-").map(Number)));
  return { heads: heads.slice(0, COLOURS), index: found[2] ? Number(found[2]) - 1 : null };
}
