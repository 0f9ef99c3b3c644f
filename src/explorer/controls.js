/** What is shown: which sentence, as words or wordpieces, which texts of a pair; special tokens and marks, or not. */
/** @import { Data, Example } from "./data.js" */
/** @import { Choice } from "./units.js" */
import { choices, make, tick } from "./dom.js";

const PARTS = [["", "within and between"], ["00", "A to A"], ["01", "A to B"], ["10", "B to A"], ["11", "B to B"]];

/**
 * @param {Data} data
 * @param {string} serial
 * @param {{ show: (index: number) => void, divide: () => void, redraw: () => void }} on
 */
export function controls(data, serial, on) {
  const sentence = make("select", { change: () => on.show(sentence.selectedIndex) },
    ...data.examples.map((example) => make("option", null, example.title)));
  const grain = choices("Between", `${serial}-grain`, [["words", "words"], ["pieces", "wordpieces"]], on.divide);
  const hide = tick("Hide special tokens", false, on.divide);
  const marks = tick("Show marks (dashed)", true, on.redraw);
  const part = make("select", { change: on.divide }, ...PARTS.map(([value, text]) => make("option", { value }, text)));
  const partLabel = make("label", null, "Attention ", part);
  return {
    element: make("div", { class: "controls" },
      data.examples.length > 1 ? make("label", { class: "pick" }, "Sentence ", sentence) : "",
      grain.element, hide.label, marks.label, partLabel),
    /** Offer what this example has. @param {Example} example */
    fill(example) {
      sentence.selectedIndex = data.examples.indexOf(example);
      marks.label.hidden = !example.marks.length;
      partLabel.hidden = !example.parts.includes(1);
    },
    /** @returns {Choice} */
    choice: () => ({
      whole: grain.value === "words", hide: hide.box.checked, within: partLabel.hidden ? "" : part.value,
    }),
    marks: () => marks.box.checked,
  };
}
