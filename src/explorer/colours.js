/** Colours of the heads, as the style sheet of the theme has them. */
import { make } from "./dom.js";
import { COLOURS } from "./heads.js";

/** How dark a weight is drawn: small ones stay visible. @param {number} weight */
export const strength = (weight) => weight ** 0.6;

/** Red, green and blue of a computed colour. @param {string} colour */
export const channels = (colour) => (colour.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);

/** @param {HTMLElement} root */
export function palette(root) {
  const probes = Array.from({ length: COLOURS }, (_, i) => make("span", { class: `c${i}`, hidden: true }));
  root.append(...probes);
  /** @type {number[][]} */
  let colours = [];
  return {
    read() {
      colours = probes.map((probe) => channels(getComputedStyle(probe).color));
    },
    /** @param {number} place */
    rgb: (place) => colours[place],
    /** @param {number} place @param {number} alpha */
    rgba: (place, alpha) => `rgba(${colours[place].join(", ")}, ${alpha})`,
  };
}
