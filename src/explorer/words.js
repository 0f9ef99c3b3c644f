/** The sentence as a toolbar of words, to choose one; under each, how much the word in question has to do with it. */
/** @import { Actions } from "./dom.js" */
/** @import { Focus, Reading } from "./reading.js" */
/** @import { Scene, State } from "./state.js" */
import { make, pointer } from "./dom.js";
import { inText } from "./keyboard.js";

const BAR = 10; // pixels of a bar for the weight 1

/**
 * Heights of the bars under a unit in pixels, one for each head: the square root of its weight, 0 without one.
 * @param {Pick<Scene, "reading" | "heads" | "focus">} scene
 * @param {number} unit
 */
export function bars({ reading, heads, focus }, unit) {
  if (!focus || !reading.others(focus).includes(unit)) return heads.map(() => 0);
  return heads.map((head) => Math.round(Math.sqrt(reading.along(head, focus, unit)) * BAR));
}

/**
 * @param {Actions} actions
 * @param {() => State} state
 * @param {(word: number) => void} walkTo
 */
export function words(actions, state, walkTo) {
  const element = make("div", { class: "text", role: "toolbar", "aria-label": "Words: choose one", keydown: walk });
  /** @type {HTMLButtonElement[]} */
  let buttons = [];
  /** @type {number[]} */
  let units = [];

  /** @param {KeyboardEvent} event */
  function walk(event) {
    const at = buttons.findIndex((button) => button === document.activeElement);
    const next = inText(event.key, at, buttons.length);
    if (next == null) return;
    event.preventDefault();
    buttons[at].tabIndex = -1;
    buttons[next].tabIndex = 0;
    walkTo(units[next]);
    buttons[next].focus();
  }

  return {
    element,
    /** @param {Reading} reading */
    fill(reading) {
      units = reading.all;
      buttons = units.map((word) => {
        /** @returns {Focus} */
        const focus = () => ({ side: state().side, word });
        return make("button", {
          type: "button", tabindex: "-1", class: reading.units[word].special ? "special" : false,
          click: () => actions.choose(state().side, word),
          focus: (event) => event.target.matches(":focus-visible") && actions.over(focus()),
          blur: () => actions.over(null),
          ...pointer(actions, focus),
        }, reading.label(word));
      });
      buttons[0].tabIndex = 0;
      element.replaceChildren(...buttons);
    },
    /** @param {Scene} scene */
    draw(scene) {
      const { heads, focus, colour } = scene;
      const fills = heads.map((_, i) => `linear-gradient(${colour(i, 1)}, ${colour(i, 1)})`).join();
      const places = heads.map((_, i) => `${heads.length > 1 ? (100 * i) / (heads.length - 1) : 0}% 100%`).join();
      buttons.forEach((button, i) => {
        const heights = bars(scene, units[i]);
        button.style.backgroundImage = fills;
        button.style.backgroundSize = heights.map((height) => `${100 / heights.length}% ${height}px`).join();
        button.style.backgroundPosition = places;
        button.classList.toggle("focus", focus?.word === units[i]);
        button.setAttribute("aria-pressed", `${state().word === units[i]}`);
      });
    },
  };
}
