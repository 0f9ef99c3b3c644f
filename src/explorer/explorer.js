/** One explorer: its parts put together, and what a reader's choices change in them. */
/** @import { Data, Head } from "./data.js" */
/** @import { Actions } from "./dom.js" */
/** @import { Move } from "./keyboard.js" */
/** @import { Focus, Side } from "./reading.js" */
/** @import { Scene, State } from "./state.js" */
import { chips } from "./chips.js";
import { palette } from "./colours.js";
import { controls } from "./controls.js";
import { unpack } from "./data.js";
import { choices, make } from "./dom.js";
import { grid } from "./grid.js";
import { address, addressed, picked } from "./heads.js";
import { inLines, inMatrix } from "./keyboard.js";
import { lines } from "./lines.js";
import { matrix } from "./matrix.js";
import { Reading } from "./reading.js";
import { chosen, focused, initial, turned } from "./state.js";
import { element as tableElement, tables } from "./tables.js";
import { description } from "./text.js";
import { words } from "./words.js";

/**
 * @param {HTMLElement} root
 * @param {string} serial A name unlike that of all others on the page.
 */
export async function explore(root, serial) {
  /** @type {Data} */
  const data = JSON.parse(root.querySelector('script[type="application/json"]')?.textContent ?? "");
  let state = initial();
  /** @type {Reading} */
  let reading;
  let codes = new Uint8Array(); // of the sentence shown
  /** @type {Focus | null} */
  let hover = null; // what the pointer or the keyboard is on
  let asked = 0; // how often a sentence was asked for
  let waiting = false; // for a frame to draw in

  // ---- parts ------------------------------------------------------------------------------------------------
  /** @type {Actions} */
  const actions = {
    choose: (side, word) => choose(side, word, true),
    over: (focus) => { hover = focus; redraw(); },
    redraw,
  };
  const title = (/** @type {string[]} */ ...text) => make(/** @type {"h3"} */ (`h${data.heading}`), null, ...text);
  const colours = palette(root);
  const top = controls(data, serial, { show, divide, redraw });
  const note = make("p", { class: "note" });
  const all = grid(data, title("All heads"), pick);
  const name = make(/** @type {"h3"} */ (`h${data.heading}`), { class: "name", tabindex: "-1" });
  const shown = chips(name, (head) => pick(head, true));
  const side = choices("A word", `${serial}-side`, [["from", "looks at"], ["to", "is looked at by"]], () => {
    set({ ...state, side: /** @type {Side} */ (side.value) });
    redraw();
  });
  const text = words(actions, () => state, (word) => choose(state.side, word));
  const status = make("div", { class: "status", "aria-live": "polite" });
  const view = choices("As", `${serial}-view`, [["lines", "lines"], ["matrix", "matrix"]], redraw);
  const asLines = lines(actions, (event) => walk(event, inLines(event.key, state, reading), asLines.follow));
  const asMatrix = matrix(actions, () => reading, (event) => {
    walk(event, inMatrix(event.key, state, reading), asMatrix.follow);
  });
  const numbers = make("div", { class: "tables" });
  const parts = [
    top.element,
    note,
    make("div", { class: "columns" },
      all.element,
      make("section", { class: "one", "aria-label": "The heads chosen" },
        name, shown.list, side.element, text.element, status,
        make("div", { class: "views" }, view.element, asMatrix.zoom), asLines.element, asMatrix.element),
      numbers),
    make("p", { class: "rounding" },
      `Model ${data.model}, ${data.layers} layers of ${data.heads} heads, counted from 1. ${data.rounding} ` +
      "Between words: the sum over a word’s pieces to it, the mean over them from it."),
  ];

  // ---- choosing ---------------------------------------------------------------------------------------------
  /** @param {number} index @param {Head[]} [heads] */
  async function show(index, heads) {
    const example = data.examples[index];
    const ticket = ++asked;
    const unpacked = await unpack(example.weights);
    if (ticket !== asked) return; // another sentence was asked for meanwhile
    codes = unpacked;
    state = {
      ...state,
      index,
      heads: heads ?? (state.picked ? state.heads : [example.start]),
      picked: state.picked || heads != null,
      word: index === state.index ? state.word : null,
    };
    top.fill(example);
    status.classList.toggle("marked", example.marks.length > 0);
    note.replaceChildren(example.note ? `${example.note} ` : "", "Suggested head: ",
      make("a", { href: link([example.start]) }, `${example.start.join("-")}`), ".");
    divide();
    showHeads();
  }

  /** Into words or wordpieces, with or without special tokens, of one text or both. */
  function divide() {
    const token = state.word == null ? null : reading.units[state.word].tokens[0];
    reading = new Reading(data.examples[state.index], codes, data.heads, top.choice());
    hover = null;
    set({ ...state, word: token == null ? null : reading.unitAt(token) });
    all.draw(reading, colours.rgb(0));
    text.fill(reading);
    asLines.fill(reading);
    asMatrix.fit();
    tabulate();
    redraw();
  }

  /** @param {State} next */
  function set(next) {
    state = turned(next, reading);
    side.value = state.side;
  }

  /** @param {Head} head @param {boolean} add @param {boolean} [reveal] */
  function pick(head, add, reveal = false) {
    state = { ...state, heads: picked(state.heads, head, add), picked: true };
    showHeads();
    try { history.replaceState(history.state, "", link(state.heads)); } catch { /* a frame without history */ }
    if (reveal && name.getBoundingClientRect().top > innerHeight - 200) reach(name);
  }

  /** Show the heads chosen: in the grid, in the heading, as chips. */
  function showHeads() {
    all.choose(state.heads);
    shown.fill(state.heads);
    root.style.setProperty("--heads", `${state.heads.length}`);
    tabulate();
    redraw();
  }

  /** @param {Side} side @param {number | null} word @param {boolean} [toggle] */
  function choose(side, word, toggle) {
    hover = null;
    set(chosen(state, side, word, toggle));
    tabulate();
    redraw();
  }

  /**
   * @param {KeyboardEvent} event
   * @param {Move | null} move
   * @param {(reading: Reading, side: Side, word: number) => void} follow
   */
  function walk(event, move, follow) {
    if (!move) return;
    event.preventDefault();
    choose(move.side, move.word);
    if (move.follow) follow(reading, move.side, move.word);
  }

  /** @param {Head[]} heads */
  const link = (heads) => address(heads, data.examples.length > 1 ? state.index : null);

  /** @param {HTMLElement} node */
  function reach(node) {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    node.scrollIntoView({ block: "start", behavior: still ? "auto" : "smooth" });
  }

  /** Show what the page's address asks for; whether it asks for anything that is here. */
  async function jump() {
    const wanted = addressed(location.hash);
    const index = wanted?.index ?? state.index;
    if (!wanted || !data.examples[index] || !wanted.heads.every(all.has)) return false;
    await show(index, wanted.heads);
    return true;
  }

  // ---- drawing ----------------------------------------------------------------------------------------------
  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; paint(); });
  }

  function paint() {
    const { color: ink, fontFamily: font } = getComputedStyle(root);
    /** @type {Scene} */
    const scene = {
      reading, heads: state.heads, focus: focused(state, hover), marks: top.marks() ? reading.known() : [],
      colour: colours.rgba, ink, font,
    };
    const panel = view.value === "lines" ? asLines : asMatrix;
    asLines.element.hidden = panel !== asLines;
    asMatrix.element.hidden = asMatrix.zoom.hidden = panel !== asMatrix;
    text.draw(scene);
    tell(description(scene));
    panel.draw(scene);
  }

  /** Say it, unless it was said: a screen reader speaks whatever changes. @param {string[]} say */
  function tell(say) {
    if (status.textContent !== say.join("")) status.replaceChildren(...say.map((line) => make("div", null, line)));
  }

  function tabulate() {
    const each = tables(reading, state.heads, state.word);
    numbers.replaceChildren(...each.map((table) => tableElement(table, state.heads)));
  }

  /** Draw in the colours of the theme, which may have changed. */
  function recolour() {
    colours.read();
    all.draw(reading, colours.rgb(0));
    redraw();
  }

  // ---- start: nothing is on the page before its first sentence is there ---------------------------------------
  colours.read();
  const jumped = await jump();
  if (!jumped) await show(0);
  root.append(...parts);
  if (jumped) reach(root);
  root.addEventListener("keydown", (event) => { if (event.key === "Escape") choose(state.side, null); });
  const theme = { attributes: true, attributeFilter: ["data-theme", "class"] };
  new MutationObserver(recolour).observe(document.documentElement, theme);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  new ResizeObserver(redraw).observe(root);
  addEventListener("hashchange", async () => { if (await jump()) reach(root); });
  root.dataset.ready = "";
}
