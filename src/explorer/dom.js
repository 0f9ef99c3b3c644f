/** Elements, made so that text stays text. */

/**
 * An element: functions among the attributes become listeners, strings among the children text.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | number | boolean | null | undefined | ((event: any) => void)> | null} [attributes]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== false && value != null) node.setAttribute(name, value === true ? "" : `${value}`);
  }
  node.append(...children);
  return node;
}

/**
 * Radio buttons, the first chosen, whose value can be read and set.
 * @param {string} legend
 * @param {string} name Unlike that of all others on the page.
 * @param {[value: string, text: string][]} options
 * @param {() => void} change
 */
export function choices(legend, name, options, change) {
  const inputs = options.map(([value], i) => make("input", { type: "radio", name, value, checked: i === 0, change }));
  const labels = options.map(([, text], i) => make("label", null, inputs[i], text));
  return {
    element: make("fieldset", { class: "choice" }, make("legend", null, legend), ...labels),
    get value() {
      return inputs.find((input) => input.checked)?.value ?? "";
    },
    set value(value) {
      for (const input of inputs) input.checked = input.value === value;
    },
  };
}

/**
 * A checkbox with its label.
 * @param {string} text
 * @param {boolean} checked
 * @param {() => void} [change]
 */
export function tick(text, checked, change) {
  const box = make("input", { type: "checkbox", checked, change });
  return { box, label: make("label", { class: "tick" }, box, text) };
}

/** @typedef {import("./keyboard.js").Move} Move */
/** @typedef {import("./reading.js").Focus} Focus */
/** @typedef {import("./reading.js").Side} Side */

/**
 * @typedef {object} Actions What the parts of the page ask for.
 * @property {(side: Side, word: number) => void} choose Or, if it is chosen already, let it go.
 * @property {(focus: Focus | null) => void} over The pointer is on a word, or no longer.
 * @property {() => void} redraw
 */

/**
 * Listeners for a pointer that can hover; a finger cannot.
 * @param {Actions} actions
 * @param {() => Focus} focus
 */
export const pointer = ({ over }, focus) => ({
  pointerenter: (/** @type {PointerEvent} */ event) => event.pointerType !== "touch" && over(focus()),
  pointerleave: (/** @type {PointerEvent} */ event) => event.pointerType !== "touch" && over(null),
});

/**
 * The pen of a canvas that is brought to this size in the page's pixels and cleared.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function prepare(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    Object.assign(canvas, { width: w, height: h });
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  }
  const pen = penOf(canvas);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

/** @param {HTMLCanvasElement} canvas */
export const penOf = (canvas) => /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
