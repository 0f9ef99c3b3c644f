/** The grid of all heads, a small map of each: to choose one, or several to compare. */
/** @import { Data, Head } from "./data.js" */
/** @import { Reading } from "./reading.js" */
import { strength } from "./colours.js";
import { make, penOf, tick } from "./dom.js";
import { inWords, nameOf } from "./heads.js";
import { clamp, inGrid } from "./keyboard.js";

const MOST = 56; // pixels of a small map, each way
const PATIENCE = 25; // milliseconds of a frame given to drawing them

/**
 * The pixels of a small map. Each keeps the strongest weight of what falls on it, so that thin patterns stay.
 * @param {Reading} reading
 * @param {Head} head
 * @param {number[]} rgb
 */
export function smallMap(reading, head, rgb) {
  const { rows, cols } = reading;
  const size = clamp(Math.max(rows.length, cols.length), 1, MOST);
  const [height, width] = [Math.min(size, rows.length), Math.min(size, cols.length)];
  const pixels = new Uint8ClampedArray(4 * width * height);
  rows.forEach((from, i) => cols.forEach((to, j) => {
    const at = 4 * (Math.floor((i * height) / rows.length) * width + Math.floor((j * width) / cols.length));
    const alpha = 255 * strength(reading.weight(head, from, to));
    if (alpha > pixels[at + 3]) pixels.set([...rgb, alpha], at);
  }));
  return { width, height, pixels };
}

const count = (/** @type {number} */ number) => Array.from({ length: number }, (_, i) => i + 1);

/**
 * @param {Data} data
 * @param {HTMLElement} title
 * @param {(head: Head, add: boolean, reveal: boolean) => void} pick
 */
export function grid(data, title, pick) {
  /**
   * @typedef {{ head: Head, canvas: HTMLCanvasElement, button: HTMLButtonElement, stale: boolean, visible: boolean }} Thumb
   */
  /** @type {Map<string, Thumb>} */
  const thumbs = new Map();
  /** @type {{ reading: Reading, rgb: number[] } | null} */
  let source = null;
  let cursor = thumbOf([1, 1]); // the head that Tab comes to
  let drawing = false;

  const compare = tick("Compare: choosing adds a head", false);
  const visible = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const thumb = thumbs.get(/** @type {HTMLElement} */ (target).dataset.head ?? "");
      if (thumb) thumb.visible = isIntersecting;
    }
    drawVisible();
  }, { rootMargin: "100px" });

  const name = { role: "grid", "aria-label": "All heads", "aria-multiselectable": "true", class: "grid" };
  const numbers = count(data.heads).map((head) => make("th", { scope: "col" }, `${head}`));
  const table = make("table", { ...name, keydown: walk },
    make("thead", null, make("tr", null, make("td"), ...numbers)),
    make("tbody", null, ...count(data.layers).map((layer) => make("tr", null,
      make("th", { scope: "row" }, `${layer}`),
      ...count(data.heads).map((head) => make("td", { "aria-selected": "false" }, thumbOf([layer, head]).button))))));
  for (const { button } of thumbs.values()) visible.observe(button);

  /** @param {Head} head @returns {Thumb} */
  function thumbOf(head) {
    const name = nameOf(head);
    const known = thumbs.get(name);
    if (known) return known;
    const canvas = make("canvas", { "aria-hidden": "true" });
    const button = make("button", {
      type: "button", tabindex: "-1", "data-head": name, "aria-label": inWords(head), title: inWords(head),
      click: (event) => pick(head, compare.box.checked || event.shiftKey || event.ctrlKey || event.metaKey, true),
    }, canvas);
    const thumb = { head, canvas, button, stale: true, visible: false };
    thumbs.set(name, thumb);
    return thumb;
  }

  /** @param {KeyboardEvent} event */
  function walk(event) {
    const next = inGrid(event.key, cursor.head, data.layers, data.heads);
    if (!next) return;
    event.preventDefault();
    stand(next);
    cursor.button.focus();
    if (!compare.box.checked && !event.shiftKey) pick(next, false, false);
  }

  /** @param {Head} head */
  function stand(head) {
    cursor.button.tabIndex = -1;
    cursor = thumbOf(head);
    cursor.button.tabIndex = 0;
  }

  /** @param {Thumb} thumb */
  function draw(thumb) {
    if (!source) return;
    thumb.stale = false;
    const { width, height, pixels } = smallMap(source.reading, thumb.head, source.rgb);
    Object.assign(thumb.canvas, { width, height });
    penOf(thumb.canvas).putImageData(new ImageData(pixels, width, height), 0, 0);
  }

  /** Draw those in sight, a few in each frame, so that the page stays responsive. */
  function drawVisible() {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame((start) => {
      drawing = false;
      for (const thumb of thumbs.values()) {
        if (!thumb.stale || !thumb.visible) continue;
        if (performance.now() - start > PATIENCE) return drawVisible();
        draw(thumb);
      }
    });
  }

  addEventListener("beforeprint", () => { for (const thumb of thumbs.values()) if (thumb.stale) draw(thumb); });

  return {
    element: make("section", { class: "all", "aria-label": "All heads" }, title,
      make("p", { class: "axes" },
        "Layers down, heads across. In each, rows are the words that look, columns what they look at."),
      table, legend(), compare.label),
    /** @param {Head} head */
    has: (head) => thumbs.has(nameOf(head)),
    /** Mark the heads chosen; the keyboard stands on the last. @param {Head[]} heads */
    choose(heads) {
      const names = heads.map(nameOf);
      for (const [name, { button }] of thumbs) {
        const place = names.indexOf(name);
        button.className = place < 0 ? "" : `chosen c${place}`;
        button.parentElement?.setAttribute("aria-selected", `${place >= 0}`);
      }
      stand(heads[heads.length - 1]);
    },
    /** Draw all anew. @param {Reading} reading @param {number[]} rgb */
    draw(reading, rgb) {
      source = { reading, rgb };
      for (const thumb of thumbs.values()) thumb.stale = true;
      drawVisible();
    },
  };
}

/** How dark some weights are. */
function legend() {
  const swatches = [0, 0.01, 0.1, 0.3, 0.6, 1].map((weight) => {
    const swatch = make("i", { class: "c0" });
    swatch.style.opacity = `${strength(weight)}`;
    return make("span", null, make("u", null, swatch), `${weight}`);
  });
  return make("p", { class: "legend" }, "Weight", ...swatches);
}
