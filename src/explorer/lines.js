/** Attention as lines, from the words that look, left, to those that are looked at, right. */
/** @import { Head } from "./data.js" */
/** @import { Actions } from "./dom.js" */
/** @import { Focus, Pair, Reading, Side } from "./reading.js" */
/** @import { Scene } from "./state.js" */
import { strength } from "./colours.js";
import { make, pointer, prepare } from "./dom.js";
import { clamp } from "./keyboard.js";
import { concerning } from "./reading.js";
import { figure } from "./text.js";

const LEAST = 0.004; // weights below are not drawn: they may be rounding
const BLOCK = 5; // pixels of the block beside a word, one for each head
const LONG = 48; // so many words need a panel that scrolls

/** @type {Side[]} */
const SIDES = ["from", "to"];

/**
 * The lines of one head: those of the word in question, else the strongest.
 * @param {Reading} reading
 * @param {Head} head
 * @param {Focus | null} focus
 * @returns {Pair[]}
 */
export function linesOf(reading, head, focus) {
  if (!focus) return reading.strongest(head);
  return reading.others(focus).map((other) => {
    const weight = reading.along(head, focus, other);
    return /** @type {Pair} */ (focus.side === "from" ? [focus.word, other, weight] : [other, focus.word, weight]);
  }).filter((pair) => pair[2] >= LEAST);
}

/**
 * @param {Actions} actions
 * @param {(event: KeyboardEvent) => void} walk
 */
export function lines(actions, walk) {
  const lists = { from: make("ol"), to: make("ol") };
  const canvas = make("canvas", { "aria-hidden": "true" });
  const sides = make("div", { "aria-hidden": "true", class: "sides" }, lists.from, canvas, lists.to);
  const element = make("div", {
    class: "lines", tabindex: "0", role: "group", scroll: actions.redraw, keydown: walk,
    "aria-label": "Lines from the words that look, left, to those they look at, right. Arrow keys choose a word.",
  }, sides);

  /** @param {Scene} scene */
  function drawLines({ reading, heads, focus, marks, colour, ink }) {
    const rowHeight = lists.from.children[0].getBoundingClientRect().height;
    const width = sides.clientWidth - lists.from.offsetWidth - lists.to.offsetWidth;
    const height = Math.min(element.clientHeight, rowHeight * Math.max(reading.rows.length, reading.cols.length));
    const pen = prepare(canvas, width, height);
    const middle = (heads.length - 1) / 2;
    const y = (/** @type {Side} */ side, /** @type {number} */ unit) =>
      (reading.on(side).indexOf(unit) + 0.5) * rowHeight - element.scrollTop;
    const stroke = (/** @type {number} */ from, /** @type {number} */ to, place = middle) => {
      const aside = 3 * (place - middle); // heads side by side
      const [a, b] = [y("from", from) + aside, y("to", to) + aside];
      if (Math.max(a, b) < 0 || Math.min(a, b) > height) return; // out of sight
      pen.beginPath();
      pen.moveTo(2, a);
      pen.bezierCurveTo(width / 2, a, width / 2, b, width - 2, b);
      pen.stroke();
    };
    heads.forEach((head, place) => {
      for (const [from, to, weight] of linesOf(reading, head, focus)) {
        pen.strokeStyle = colour(place, Math.max(focus ? 0.1 : 0.05, strength(weight)));
        pen.lineWidth = 1 + (focus ? 3 : 2) * weight;
        stroke(from, to, place);
        if (!focus) continue;
        pen.fillStyle = colour(place, strength(weight)); // a block beside each word, as dark as the line
        const [x, at] = focus.side === "from" ? [width - BLOCK * heads.length, y("to", to)] : [0, y("from", from)];
        pen.fillRect(x + BLOCK * place, at - rowHeight / 2 + 1, BLOCK, rowHeight - 2);
      }
    });
    pen.setLineDash([3, 3]);
    pen.lineWidth = 1.5;
    pen.strokeStyle = ink;
    for (const { from, to } of concerning(marks, focus)) stroke(from[0], to[0]);
    pen.setLineDash([]);
  }

  /**
   * Beside the words, weights of the only head; the words in question strong, the others of their side dim.
   * @param {Scene} scene
   */
  function drawLists({ reading, heads, focus }) {
    for (const side of SIDES) {
      const units = reading.on(side);
      [...lists[side].children].forEach((item, i) => {
        const own = focus?.side === side;
        const weight = focus && !own && heads.length === 1 ? reading.along(heads[0], focus, units[i]) : 0;
        item.classList.toggle("focus", focus != null && (own ? focus.word : focus.other) === units[i]);
        item.classList.toggle("dim", own && focus?.word !== units[i]);
        item.children[1].textContent = weight >= 0.05 ? figure(weight) : "";
      });
    }
  }

  return {
    element,
    /** @param {Reading} reading */
    fill(reading) {
      for (const side of SIDES) {
        lists[side].replaceChildren(...reading.on(side).map((word) => make("li", {
          class: reading.units[word].special ? "special" : false, title: reading.label(word),
          click: () => actions.choose(side, word),
          ...pointer(actions, () => ({ side, word })),
        }, make("b", null, reading.label(word)), make("small"))));
      }
      element.classList.toggle("long", reading.all.length > LONG);
    },
    /** @param {Scene} scene */
    draw(scene) {
      drawLines(scene);
      drawLists(scene);
    },
    /** Scroll a word into the panel. @param {Reading} reading @param {Side} side @param {number} word */
    follow(reading, side, word) {
      const item = /** @type {HTMLElement} */ (lists[side].children[reading.on(side).indexOf(word)]);
      element.scrollTop = clamp(element.scrollTop, item.offsetTop - element.clientHeight + 60, item.offsetTop - 40);
    },
  };
}
