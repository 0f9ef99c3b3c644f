/** The heads shown: their name or number as a heading and, where there are several, each with its colour. */
/** @import { Head } from "./data.js" */
import { make } from "./dom.js";
import { inWords, nameOf } from "./heads.js";

/**
 * @param {HTMLElement} heading
 * @param {(head: Head) => void} remove
 */
export function chips(heading, remove) {
  const list = make("ul", { class: "chips", "aria-label": "Heads shown" });
  const chip = (/** @type {Head} */ head, /** @type {number} */ place) => {
    const label = `Remove ${inWords(head).toLowerCase()}`;
    const button = make("button", { type: "button", "aria-label": label, click: () => remove(head) }, "×");
    return make("li", null, make("i", { class: `c${place}` }), nameOf(head), button);
  };
  return {
    list,
    /** @param {Head[]} heads */
    fill(heads) {
      const several = heads.length > 1;
      heading.textContent = several ? `${heads.length} heads` : inWords(heads[0]);
      list.hidden = !several;
      list.replaceChildren(...heads.map(chip));
    },
  };
}
