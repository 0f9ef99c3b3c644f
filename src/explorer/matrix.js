/** Attention as a matrix: rows look at columns. */
/** @import { Actions } from "./dom.js" */
/** @import { Focus, Reading, Side } from "./reading.js" */
/** @import { Scene } from "./state.js" */
import { strength } from "./colours.js";
import { make, penOf, prepare } from "./dom.js";
import { clamp } from "./keyboard.js";

const LEAST = 0.0005; // weights below are not drawn

/** @typedef {{ left: number, top: number, cell: number }} Layout Room for the labels, size of a cell, in pixels. */

/**
 * Where a point of the panel falls: row and column, -1 among the labels.
 * @param {{ x: number, y: number }} point
 * @param {Layout} layout
 * @param {{ scrollLeft: number, scrollTop: number }} scrolled
 */
export function cellAt({ x, y }, { left, top, cell }, { scrollLeft, scrollTop }) {
  return {
    row: y < top ? -1 : Math.floor((y - top + scrollTop) / cell),
    col: x < left ? -1 : Math.floor((x - left + scrollLeft) / cell),
  };
}

/**
 * What is looked at there: a cell, or all of a column.
 * @param {Reading} reading
 * @param {{ row: number, col: number }} cell
 * @returns {Focus | null}
 */
export function focusAt({ rows, cols }, { row, col }) {
  if (row in rows) return { side: "from", word: rows[row], other: cols[col] };
  return col in cols ? { side: "to", word: cols[col] } : null;
}

/**
 * A label cut so that it fits.
 * @param {string} label
 * @param {number} room
 * @param {(text: string) => number} widthOf
 */
export function cut(label, room, widthOf) {
  while (label.length > 1 && widthOf(label) > room) label = `${label.slice(0, -2)}…`;
  return label;
}

/**
 * The size of a cell at which all columns are in sight, within what one can read.
 * @param {number} room
 * @param {number} columns
 */
export const fitting = (room, columns) => clamp(Math.floor(room / columns), 11, 26);

/**
 * @param {Actions} actions
 * @param {() => Reading} reading
 * @param {(event: KeyboardEvent) => void} walk
 */
export function matrix(actions, reading, walk) {
  const leave = () => actions.over(null);
  const canvas = make("canvas", { "aria-hidden": "true", pointermove: hover, pointerleave: leave, click });
  const spacer = make("div", { class: "spacer" }, canvas);
  const element = make("div", {
    class: "matrix", tabindex: "0", role: "group", scroll: actions.redraw, keydown: walk,
    "aria-label": "Matrix: rows look at columns. Up and down choose a row, left and right a column.",
  }, spacer);
  const zoom = make("input", {
    type: "range", min: 3, max: 30, value: 0, input: () => { zoomed = true; actions.redraw(); },
  });
  let zoomed = false; // else cells are as large as fits

  /** @returns {Layout} */
  function layout() {
    const { rows, cols, units } = reading();
    const wide = element.clientWidth;
    const pen = penOf(canvas);
    pen.font = `13px ${getComputedStyle(element).fontFamily}`;
    const widthOf = (/** @type {number} */ unit) => pen.measureText(units[unit].label).width;
    const longest = (/** @type {number[]} */ list) => 14 + Math.ceil(Math.max(...list.map(widthOf)));
    const left = Math.min(longest(rows), 130, Math.round(wide * 0.3));
    const top = Math.min(longest(cols), 110);
    if (!zoomed) zoom.value = `${fitting(wide - left - 4, cols.length)}`;
    return { left, top, cell: Number(zoom.value) };
  }

  /** @param {PointerEvent} event */
  function focusOf(event) {
    const box = canvas.getBoundingClientRect();
    return focusAt(reading(), cellAt({ x: event.clientX - box.left, y: event.clientY - box.top }, layout(), element));
  }

  /** @param {PointerEvent} event */
  function hover(event) {
    if (event.pointerType !== "touch") actions.over(focusOf(event));
  }

  /** @param {PointerEvent} event */
  function click(event) {
    const focus = focusOf(event);
    if (focus) actions.choose(focus.side, focus.word);
  }

  /** @param {Scene} scene */
  function draw(scene) {
    const { rows, cols } = scene.reading;
    const { left, top, cell } = layout();
    const [fullWidth, fullHeight] = [left + cols.length * cell + 2, top + rows.length * cell + 2];
    Object.assign(spacer.style, { width: `${fullWidth}px`, height: `${fullHeight}px` });
    const [width, height] = [element.clientWidth, Math.min(element.clientHeight, fullHeight)];
    const pen = prepare(canvas, width, height);
    const x = (/** @type {number} */ col) => left + col * cell - element.scrollLeft;
    const y = (/** @type {number} */ row) => top + row * cell - element.scrollTop;
    const across = [...cols.keys()].filter((col) => x(col) > left - cell && x(col) < width);
    const down = [...rows.keys()].filter((row) => y(row) > top - cell && y(row) < height);
    const frame = { pen, left, top, cell, x, y, across, down };
    pen.save();
    pen.beginPath();
    pen.rect(left, top, width, height);
    pen.clip();
    drawCells(scene, frame);
    drawFrames(scene, frame);
    pen.restore();
    drawLabels(scene, frame);
  }

  /** @param {Reading} reading @param {Side} side @param {number} word */
  function follow(reading, side, word) {
    const { cell, left, top } = layout();
    const place = reading.on(side).indexOf(word);
    const within = (/** @type {number} */ scrolled, /** @type {number} */ room) =>
      clamp(scrolled, (place + 1) * cell - room, place * cell);
    if (side === "from") element.scrollTop = within(element.scrollTop, element.clientHeight - top);
    else element.scrollLeft = within(element.scrollLeft, element.clientWidth - left);
  }

  return {
    element,
    zoom: make("label", { class: "zoom" }, "Cell size ", zoom),
    /** Another sentence: cells are as large as fits again. */
    fit: () => { zoomed = false; },
    draw,
    follow,
  };
}

/**
 * @typedef {object} Frame What is in sight, and where.
 * @property {CanvasRenderingContext2D} pen
 * @property {number} left
 * @property {number} top
 * @property {number} cell
 * @property {(col: number) => number} x
 * @property {(row: number) => number} y
 * @property {number[]} across Columns.
 * @property {number[]} down Rows.
 */

/** The weights, heads side by side in each cell. @param {Scene} scene @param {Frame} frame */
function drawCells({ reading, heads, colour, ink }, { pen, cell, x, y, across, down }) {
  const gap = cell > 8 ? 1 : 0;
  pen.fillStyle = ink;
  pen.globalAlpha = 0.06;
  if (gap) for (const row of down) for (const col of across) pen.fillRect(x(col), y(row), cell - gap, cell - gap);
  pen.globalAlpha = 1;
  const strip = (cell - gap) / heads.length;
  heads.forEach((head, place) => {
    for (const row of down) for (const col of across) {
      const weight = reading.weight(head, reading.rows[row], reading.cols[col]);
      if (weight < LEAST) continue;
      pen.fillStyle = colour(place, strength(weight));
      pen.fillRect(x(col) + place * strip, y(row), strip, cell - gap);
    }
  });
}

/** What is known, dashed; and the row and the column in question. @param {Scene} scene @param {Frame} frame */
function drawFrames({ reading: { rows, cols }, focus, marks, ink }, { pen, cell, x, y }) {
  pen.strokeStyle = ink;
  pen.lineWidth = 1.5;
  pen.setLineDash([3, 2]);
  for (const { from, to } of marks) {
    const [row, col] = [rows.indexOf(from[0]), cols.indexOf(to[0])];
    pen.strokeRect(x(col) - 1, y(row) - 1, to.length * cell + 1, from.length * cell + 1);
  }
  pen.setLineDash([]);
  if (!focus) return;
  const [row, col] = focus.side === "from" ? [focus.word, focus.other] : [focus.other, focus.word];
  if (row != null) pen.strokeRect(x(0), y(rows.indexOf(row)) - 0.5, cols.length * cell, cell);
  if (col != null) pen.strokeRect(x(cols.indexOf(col)) - 0.5, y(0), cell, rows.length * cell);
}

/**
 * Words beside the rows and, turned, above the columns; where cells are small only those in question.
 * @param {Scene} scene
 * @param {Frame} frame
 */
function drawLabels({ reading, focus, ink, font }, { pen, left, top, cell, x, y, across, down }) {
  const widthOf = (/** @type {string} */ text) => pen.measureText(text).width;
  /** @param {Side} side @param {number} unit @param {number} atX @param {number} atY @param {number} room */
  const label = (side, unit, atX, atY, room) => {
    const own = focus != null && (focus.side === side ? focus.word : focus.other) === unit;
    if (cell < 9 && !own) return;
    pen.font = `${own ? "bold " : ""}${clamp(cell, 10, 13)}px ${font}`;
    pen.save();
    pen.translate(atX, atY);
    if (side === "to") pen.rotate(-Math.PI / 2);
    pen.textAlign = side === "to" ? "left" : "right";
    pen.fillText(cut(reading.label(unit), room, widthOf), 0, 0);
    pen.restore();
  };
  pen.fillStyle = ink;
  pen.textBaseline = "middle";
  for (const row of down) {
    if (y(row) > top - cell / 2) label("from", reading.rows[row], left - 5, y(row) + cell / 2, left - 8);
  }
  for (const col of across) {
    if (x(col) > left - cell / 2) label("to", reading.cols[col], x(col) + cell / 2, top - 5, top - 8);
  }
}
