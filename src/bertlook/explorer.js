"use strict";
(() => {
  // dom.js
  function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (typeof value === "function") node.addEventListener(name, value);
      else if (value !== false && value != null) node.setAttribute(name, value === true ? "" : `${value}`);
    }
    node.append(...children);
    return node;
  }
  function choices(legend2, name, options, change) {
    const inputs = options.map(([value], i) => make("input", { type: "radio", name, value, checked: i === 0, change }));
    const labels = options.map(([, text], i) => make("label", null, inputs[i], text));
    return {
      element: make("fieldset", { class: "choice" }, make("legend", null, legend2), ...labels),
      get value() {
        return inputs.find((input) => input.checked)?.value ?? "";
      },
      set value(value) {
        for (const input of inputs) input.checked = input.value === value;
      }
    };
  }
  function tick(text, checked, change) {
    const box = make("input", { type: "checkbox", checked, change });
    return { box, label: make("label", { class: "tick" }, box, text) };
  }
  var pointer = ({ over }, focus) => ({
    pointerenter: (event) => event.pointerType !== "touch" && over(focus()),
    pointerleave: (event) => event.pointerType !== "touch" && over(null)
  });
  function prepare(canvas, width, height) {
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
  var penOf = (canvas) => (
    /** @type {CanvasRenderingContext2D} */
    canvas.getContext("2d")
  );

  // heads.js
  var COLOURS = 6;
  var nameOf = ([layer, head]) => `${layer}-${head}`;
  var inWords = ([layer, head]) => `Layer ${layer}, head ${head}`;
  function picked(heads, head, add) {
    if (!add) return [head];
    const rest = heads.filter((each) => nameOf(each) !== nameOf(head));
    if (rest.length === heads.length) return [...heads, head].slice(-COLOURS);
    return rest.length ? rest : heads;
  }
  var address = (heads, index) => `#${heads.map(nameOf).join("+")}${index == null ? "" : `@${index + 1}`}`;
  function addressed(hash) {
    const plain = hash.replaceAll("%2B", "+").replaceAll("%40", "@");
    const found = /^#(\d+-\d+(?:\+\d+-\d+)*)(?:@(\d+))?$/.exec(plain);
    if (!found) return null;
    const heads = found[1].split("+").map((name) => (
      /** @type {Head} */
      name.split("-").map(Number)
    ));
    return { heads: heads.slice(0, COLOURS), index: found[2] ? Number(found[2]) - 1 : null };
  }

  // chips.js
  function chips(heading, remove) {
    const list = make("ul", { class: "chips", "aria-label": "Heads shown" });
    const chip = (head, place) => {
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
      }
    };
  }

  // colours.js
  var strength = (weight) => weight ** 0.6;
  var channels = (colour) => (colour.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
  function palette(root) {
    const probes = Array.from({ length: COLOURS }, (_, i) => make("span", { class: `c${i}`, hidden: true }));
    root.append(...probes);
    let colours = [];
    return {
      read() {
        colours = probes.map((probe) => channels(getComputedStyle(probe).color));
      },
      /** @param {number} place */
      rgb: (place) => colours[place],
      /** @param {number} place @param {number} alpha */
      rgba: (place, alpha) => `rgba(${colours[place].join(", ")}, ${alpha})`
    };
  }

  // controls.js
  var PARTS = [["", "within and between"], ["00", "A to A"], ["01", "A to B"], ["10", "B to A"], ["11", "B to B"]];
  function controls(data, serial, on) {
    const sentence = make(
      "select",
      { change: () => on.show(sentence.selectedIndex) },
      ...data.examples.map((example) => make("option", null, example.title))
    );
    const grain = choices("Between", `${serial}-grain`, [["words", "words"], ["pieces", "wordpieces"]], on.divide);
    const hide = tick("Hide special tokens", false, on.divide);
    const marks = tick("Show marks (dashed)", true, on.redraw);
    const part = make("select", { change: on.divide }, ...PARTS.map(([value, text]) => make("option", { value }, text)));
    const partLabel = make("label", null, "Attention ", part);
    return {
      element: make(
        "div",
        { class: "controls" },
        data.examples.length > 1 ? make("label", { class: "pick" }, "Sentence ", sentence) : "",
        grain.element,
        hide.label,
        marks.label,
        partLabel
      ),
      /** Offer what this example has. @param {Example} example */
      fill(example) {
        sentence.selectedIndex = data.examples.indexOf(example);
        marks.label.hidden = !example.marks.length;
        partLabel.hidden = !example.parts.includes(1);
      },
      /** @returns {Choice} */
      choice: () => ({
        whole: grain.value === "words",
        hide: hide.box.checked,
        within: partLabel.hidden ? "" : part.value
      }),
      marks: () => marks.box.checked
    };
  }

  // data.js
  var WEIGHT = Float32Array.from({ length: 256 }, (_, code) => (code / 255) ** 2);
  async function unpack(packed) {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  // keyboard.js
  var clamp = (value, low, high) => Math.max(low, Math.min(high, value));
  function inGrid(key, [layer, head], layers, heads) {
    const moves = {
      ArrowUp: [layer - 1, head],
      ArrowDown: [layer + 1, head],
      ArrowLeft: [layer, head - 1],
      ArrowRight: [layer, head + 1],
      Home: [layer, 1],
      End: [layer, heads],
      PageUp: [1, head],
      PageDown: [layers, head]
    };
    const to = moves[key];
    return to ? [clamp(to[0], 1, layers), clamp(to[1], 1, heads)] : null;
  }
  function inText(key, place, count2) {
    const steps = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, Home: -count2, End: count2 };
    return key in steps ? clamp(place + steps[key], 0, count2 - 1) : null;
  }
  var ARROWS = { ArrowUp: ["from", -1], ArrowDown: ["from", 1], ArrowLeft: ["to", -1], ArrowRight: ["to", 1] };
  function inLines(key, state, reading) {
    if (!(key in ARROWS)) return null;
    const [axis, by] = ARROWS[key];
    if (axis === "from") return step(state.side, by, state.word, reading);
    return { side: by > 0 ? "to" : "from", word: state.word ?? reading.rows[0], follow: false };
  }
  function inMatrix(key, state, reading) {
    return key in ARROWS ? step(...ARROWS[key], state.word, reading) : null;
  }
  function step(side, by, word, reading) {
    const list = reading.on(side);
    const place = word == null ? 0 : clamp(list.indexOf(word) + by, 0, list.length - 1);
    return { side, word: list[place], follow: true };
  }

  // grid.js
  var MOST = 56;
  var PATIENCE = 25;
  function smallMap(reading, head, rgb) {
    const { rows, cols } = reading;
    const size = clamp(Math.max(rows.length, cols.length), 1, MOST);
    const [height, width] = [Math.min(size, rows.length), Math.min(size, cols.length)];
    const pixels = new Uint8ClampedArray(4 * width * height);
    rows.forEach((from, i) => cols.forEach((to, j) => {
      const at = 4 * (Math.floor(i * height / rows.length) * width + Math.floor(j * width / cols.length));
      const alpha = 255 * strength(reading.weight(head, from, to));
      if (alpha > pixels[at + 3]) pixels.set([...rgb, alpha], at);
    }));
    return { width, height, pixels };
  }
  var count = (number) => Array.from({ length: number }, (_, i) => i + 1);
  function grid(data, title, pick) {
    const thumbs = /* @__PURE__ */ new Map();
    let source = null;
    let cursor = thumbOf([1, 1]);
    let drawing = false;
    const compare = tick("Compare: choosing adds a head", false);
    const visible = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        const thumb = thumbs.get(
          /** @type {HTMLElement} */
          target.dataset.head ?? ""
        );
        if (thumb) thumb.visible = isIntersecting;
      }
      drawVisible();
    }, { rootMargin: "100px" });
    const name = { role: "grid", "aria-label": "All heads", "aria-multiselectable": "true", class: "grid" };
    const numbers = count(data.heads).map((head) => make("th", { scope: "col" }, `${head}`));
    const table = make(
      "table",
      { ...name, keydown: walk },
      make("thead", null, make("tr", null, make("td"), ...numbers)),
      make("tbody", null, ...count(data.layers).map((layer) => make(
        "tr",
        null,
        make("th", { scope: "row" }, `${layer}`),
        ...count(data.heads).map((head) => make("td", { "aria-selected": "false" }, thumbOf([layer, head]).button))
      )))
    );
    for (const { button } of thumbs.values()) visible.observe(button);
    function thumbOf(head) {
      const name2 = nameOf(head);
      const known = thumbs.get(name2);
      if (known) return known;
      const canvas = make("canvas", { "aria-hidden": "true" });
      const button = make("button", {
        type: "button",
        tabindex: "-1",
        "data-head": name2,
        "aria-label": inWords(head),
        title: inWords(head),
        click: (event) => pick(head, compare.box.checked || event.shiftKey || event.ctrlKey || event.metaKey, true)
      }, canvas);
      const thumb = { head, canvas, button, stale: true, visible: false };
      thumbs.set(name2, thumb);
      return thumb;
    }
    function walk(event) {
      const next = inGrid(event.key, cursor.head, data.layers, data.heads);
      if (!next) return;
      event.preventDefault();
      stand(next);
      cursor.button.focus();
      if (!compare.box.checked && !event.shiftKey) pick(next, false, false);
    }
    function stand(head) {
      cursor.button.tabIndex = -1;
      cursor = thumbOf(head);
      cursor.button.tabIndex = 0;
    }
    function draw(thumb) {
      if (!source) return;
      thumb.stale = false;
      const { width, height, pixels } = smallMap(source.reading, thumb.head, source.rgb);
      Object.assign(thumb.canvas, { width, height });
      penOf(thumb.canvas).putImageData(new ImageData(pixels, width, height), 0, 0);
    }
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
    addEventListener("beforeprint", () => {
      for (const thumb of thumbs.values()) if (thumb.stale) draw(thumb);
    });
    return {
      element: make(
        "section",
        { class: "all", "aria-label": "All heads" },
        title,
        make(
          "p",
          { class: "axes" },
          "Layers down, heads across. In each, rows are the words that look, columns what they look at."
        ),
        table,
        legend(),
        compare.label
      ),
      /** @param {Head} head */
      has: (head) => thumbs.has(nameOf(head)),
      /** Mark the heads chosen; the keyboard stands on the last. @param {Head[]} heads */
      choose(heads) {
        const names = heads.map(nameOf);
        for (const [name2, { button }] of thumbs) {
          const place = names.indexOf(name2);
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
      }
    };
  }
  function legend() {
    const swatches = [0, 0.01, 0.1, 0.3, 0.6, 1].map((weight) => {
      const swatch = make("i", { class: "c0" });
      swatch.style.opacity = `${strength(weight)}`;
      return make("span", null, make("u", null, swatch), `${weight}`);
    });
    return make("p", { class: "legend" }, "Weight", ...swatches);
  }

  // units.js
  function unitsOf(example, whole) {
    const units = [];
    example.tokens.forEach((token, i) => {
      const word = example.words[i];
      const special = word < 0;
      const last = units.at(-1);
      const label = whole && !special ? example.labels[word] : token;
      if (whole && !special && last?.word === word) last.tokens.push(i);
      else units.push({ label, tokens: [i], word, part: example.parts[i], special });
    });
    return units;
  }
  function inSight(units, { hide, within }) {
    const all = [...units.keys()].filter((i) => !(hide && units[i].special));
    const of = (part) => all.filter((i) => !within || units[i].part === Number(part));
    return { all, rows: of(within[0]), cols: of(within[1]) };
  }

  // reading.js
  var MAX_PAIRS = 400;
  var concerning = (marks, focus) => focus ? marks.filter((mark) => mark[focus.side].includes(focus.word)) : marks;
  var Reading = class {
    /** @type {Map<string, HeadMap>} */
    #maps = /* @__PURE__ */ new Map();
    /**
     * @param {Example} example
     * @param {Uint8Array} codes [layer, head, query, key]
     * @param {number} heads A layer.
     * @param {Choice} choice
     */
    constructor(example, codes, heads, choice) {
      this.example = example;
      this.codes = codes;
      this.heads = heads;
      this.hide = choice.hide;
      this.units = unitsOf(example, choice.whole);
      const { all, rows, cols } = inSight(this.units, choice);
      this.all = all;
      this.rows = rows;
      this.cols = cols;
    }
    /** The unit that has this wordpiece. @param {number} token */
    unitAt(token) {
      return this.units.findIndex((unit) => unit.tokens.includes(token));
    }
    /** @param {number} unit */
    label(unit) {
      return this.units[unit].label;
    }
    /** The units on one side. @param {Side} side */
    on(side) {
      return side === "from" ? this.rows : this.cols;
    }
    /** The units that this one is seen with. @param {Focus} focus */
    others(focus) {
      return this.on(focus.side === "from" ? "to" : "from");
    }
    /**
     * @param {Head} head
     * @param {number} from
     * @param {number} to
     */
    weight(head, from, to) {
      return this.#map(head).shown[from * this.units.length + to];
    }
    /**
     * The weight between a word in question and another.
     * @param {Head} head
     * @param {Focus} focus
     * @param {number} other
     */
    along(head, focus, other) {
      return focus.side === "from" ? this.weight(head, focus.word, other) : this.weight(head, other, focus.word);
    }
    /**
     * What a word gives to special tokens, hidden or not.
     * @param {Head} head
     * @param {number} from
     */
    toSpecial(head, from) {
      return this.#map(head).special[from];
    }
    /**
     * The other words, those with most weight in any of the heads first.
     * @param {Head[]} heads
     * @param {Focus} focus
     */
    ranked(heads, focus) {
      const most = (other) => Math.max(...heads.map((head) => this.along(head, focus, other)));
      const weighed = this.others(focus).map((other) => ({ other, weight: most(other) }));
      return weighed.sort((a, b) => b.weight - a.weight).map(({ other }) => other);
    }
    /** Pairs of one head, strongest first. @param {Head} head */
    strongest(head) {
      const map = this.#map(head);
      map.strongest ??= this.rows.flatMap((i) => this.cols.map((j) => (
        /** @type {Pair} */
        [i, j, this.weight(head, i, j)]
      ))).filter((pair) => pair[2] > 4e-3).sort((a, b) => b[2] - a[2]).slice(0, MAX_PAIRS);
      return map.strongest;
    }
    /** What is known of the sentence, between units in sight. @returns {Known[]} */
    known() {
      const of = (list, word) => list.filter((i) => this.units[i].word === word);
      return this.example.marks.map(([from, to, label]) => ({ from: of(this.rows, from), to: of(this.cols, to), label })).filter(({ from, to }) => from.length && to.length);
    }
    /** @param {Head} head */
    #map(head) {
      const name = nameOf(head);
      let map = this.#maps.get(name);
      if (!map) this.#maps.set(name, map = this.#between(head));
      return map;
    }
    /**
     * From wordpieces to units: the sum over a word's pieces to it, the mean over them from it. Where special tokens
     * are hidden, what is left of each row is scaled up to sum to 1.
     * @param {Head} head
     * @returns {HeadMap}
     */
    #between([layer, head]) {
      const { units, codes } = this;
      const n = units.length;
      const unitOf = units.flatMap((unit, i) => unit.tokens.map(() => i));
      const tokens = unitOf.length;
      const shown = new Float32Array(n * n);
      let at = ((layer - 1) * this.heads + head - 1) * tokens * tokens;
      for (let query = 0; query < tokens; query++) {
        const row = unitOf[query] * n;
        const share = 1 / units[unitOf[query]].tokens.length;
        for (let key = 0; key < tokens; key++) shown[row + unitOf[key]] += WEIGHT[codes[at++]] * share;
      }
      const special = new Float32Array(n);
      for (let i = 0; i < n; i++) units.forEach((unit, j) => {
        if (unit.special) special[i] += shown[i * n + j];
      });
      if (this.hide) {
        for (let i = 0; i < n; i++) {
          let sum = 0;
          units.forEach((unit, j) => {
            if (!unit.special) sum += shown[i * n + j];
          });
          units.forEach((unit, j) => {
            shown[i * n + j] = unit.special || !sum ? 0 : shown[i * n + j] / sum;
          });
        }
      }
      return { shown, special };
    }
  };

  // text.js
  var figure = (weight) => weight.toFixed(weight < 0.0995 ? 3 : 2);
  var quoted = (label) => `“${label}”`;
  function description({ reading, heads, focus, marks }) {
    const say = heads.map((head) => `${inWords(head)}: ${focus ? ofWord(reading, head, focus) : ofHead(reading, head)}`);
    const about = concerning(marks, focus);
    if (focus && about.length) {
      const first = (units) => quoted(reading.label(units[0]));
      const each = about.map(({ from, to, label }) => `${first(from)} → ${first(to)} (${label})`);
      say.push(`Marked: ${each.join(", ")}.`);
    }
    return say;
  }
  function ofHead(reading, head) {
    const [pair] = reading.strongest(head);
    if (!pair) return "no attention here.";
    const [from, to, weight] = pair;
    return `strongest, ${quoted(reading.label(from))} attends ${figure(weight)} to ${quoted(reading.label(to))}.`;
  }
  function ofWord(reading, head, focus) {
    const word = quoted(reading.label(focus.word));
    const share = (other) => figure(reading.along(head, focus, other));
    if (focus.other != null) return `${word} attends ${share(focus.other)} to ${quoted(reading.label(focus.other))}.`;
    const [verb, towards] = focus.side === "from" ? ["attends", "to"] : ["receives", "from"];
    const best = reading.ranked([head], focus).slice(0, 3).map((other) => `${share(other)} ${towards} ${quoted(reading.label(other))}`);
    const left = reading.hide && focus.side === "from" ? ` (Special tokens, left out, had ${figure(reading.toSpecial(head, focus.word))}.)` : "";
    return `${word} ${verb} ${best.join(", ")}.${left}`;
  }

  // lines.js
  var LEAST = 4e-3;
  var BLOCK = 5;
  var LONG = 48;
  var SIDES = ["from", "to"];
  function linesOf(reading, head, focus) {
    if (!focus) return reading.strongest(head);
    return reading.others(focus).map((other) => {
      const weight = reading.along(head, focus, other);
      return (
        /** @type {Pair} */
        focus.side === "from" ? [focus.word, other, weight] : [other, focus.word, weight]
      );
    }).filter((pair) => pair[2] >= LEAST);
  }
  function lines(actions, walk) {
    const lists = { from: make("ol"), to: make("ol") };
    const canvas = make("canvas", { "aria-hidden": "true" });
    const sides = make("div", { "aria-hidden": "true", class: "sides" }, lists.from, canvas, lists.to);
    const element2 = make("div", {
      class: "lines",
      tabindex: "0",
      role: "group",
      scroll: actions.redraw,
      keydown: walk,
      "aria-label": "Lines from the words that look, left, to those they look at, right. Arrow keys choose a word."
    }, sides);
    function drawLines({ reading, heads, focus, marks, colour, ink }) {
      const rowHeight = lists.from.children[0].getBoundingClientRect().height;
      const width = sides.clientWidth - lists.from.offsetWidth - lists.to.offsetWidth;
      const height = Math.min(element2.clientHeight, rowHeight * Math.max(reading.rows.length, reading.cols.length));
      const pen = prepare(canvas, width, height);
      const middle = (heads.length - 1) / 2;
      const y = (side, unit) => (reading.on(side).indexOf(unit) + 0.5) * rowHeight - element2.scrollTop;
      const stroke = (from, to, place = middle) => {
        const aside = 3 * (place - middle);
        const [a, b] = [y("from", from) + aside, y("to", to) + aside];
        if (Math.max(a, b) < 0 || Math.min(a, b) > height) return;
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
          pen.fillStyle = colour(place, strength(weight));
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
      element: element2,
      /** @param {Reading} reading */
      fill(reading) {
        for (const side of SIDES) {
          lists[side].replaceChildren(...reading.on(side).map((word) => make("li", {
            class: reading.units[word].special ? "special" : false,
            title: reading.label(word),
            click: () => actions.choose(side, word),
            ...pointer(actions, () => ({ side, word }))
          }, make("b", null, reading.label(word)), make("small"))));
        }
        element2.classList.toggle("long", reading.all.length > LONG);
      },
      /** @param {Scene} scene */
      draw(scene) {
        drawLines(scene);
        drawLists(scene);
      },
      /** Scroll a word into the panel. @param {Reading} reading @param {Side} side @param {number} word */
      follow(reading, side, word) {
        const item = (
          /** @type {HTMLElement} */
          lists[side].children[reading.on(side).indexOf(word)]
        );
        element2.scrollTop = clamp(element2.scrollTop, item.offsetTop - element2.clientHeight + 60, item.offsetTop - 40);
      }
    };
  }

  // matrix.js
  var LEAST2 = 5e-4;
  function cellAt({ x, y }, { left, top, cell }, { scrollLeft, scrollTop }) {
    return {
      row: y < top ? -1 : Math.floor((y - top + scrollTop) / cell),
      col: x < left ? -1 : Math.floor((x - left + scrollLeft) / cell)
    };
  }
  function focusAt({ rows, cols }, { row, col }) {
    if (row in rows) return { side: "from", word: rows[row], other: cols[col] };
    return col in cols ? { side: "to", word: cols[col] } : null;
  }
  function cut(label, room, widthOf) {
    while (label.length > 1 && widthOf(label) > room) label = `${label.slice(0, -2)}…`;
    return label;
  }
  var fitting = (room, columns) => clamp(Math.floor(room / columns), 11, 26);
  function matrix(actions, reading, walk) {
    const leave = () => actions.over(null);
    const canvas = make("canvas", { "aria-hidden": "true", pointermove: hover, pointerleave: leave, click });
    const spacer = make("div", { class: "spacer" }, canvas);
    const element2 = make("div", {
      class: "matrix",
      tabindex: "0",
      role: "group",
      scroll: actions.redraw,
      keydown: walk,
      "aria-label": "Matrix: rows look at columns. Up and down choose a row, left and right a column."
    }, spacer);
    const zoom = make("input", {
      type: "range",
      min: 3,
      max: 30,
      value: 0,
      input: () => {
        zoomed = true;
        actions.redraw();
      }
    });
    let zoomed = false;
    function layout() {
      const { rows, cols, units } = reading();
      const wide = element2.clientWidth;
      const pen = penOf(canvas);
      pen.font = `13px ${getComputedStyle(element2).fontFamily}`;
      const widthOf = (unit) => pen.measureText(units[unit].label).width;
      const longest = (list) => 14 + Math.ceil(Math.max(...list.map(widthOf)));
      const left = Math.min(longest(rows), 130, Math.round(wide * 0.3));
      const top = Math.min(longest(cols), 110);
      if (!zoomed) zoom.value = `${fitting(wide - left - 4, cols.length)}`;
      return { left, top, cell: Number(zoom.value) };
    }
    function focusOf(event) {
      const box = canvas.getBoundingClientRect();
      return focusAt(reading(), cellAt({ x: event.clientX - box.left, y: event.clientY - box.top }, layout(), element2));
    }
    function hover(event) {
      if (event.pointerType !== "touch") actions.over(focusOf(event));
    }
    function click(event) {
      const focus = focusOf(event);
      if (focus) actions.choose(focus.side, focus.word);
    }
    function draw(scene) {
      const { rows, cols } = scene.reading;
      const { left, top, cell } = layout();
      const [fullWidth, fullHeight] = [left + cols.length * cell + 2, top + rows.length * cell + 2];
      Object.assign(spacer.style, { width: `${fullWidth}px`, height: `${fullHeight}px` });
      const [width, height] = [element2.clientWidth, Math.min(element2.clientHeight, fullHeight)];
      const pen = prepare(canvas, width, height);
      const x = (col) => left + col * cell - element2.scrollLeft;
      const y = (row) => top + row * cell - element2.scrollTop;
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
    function follow(reading2, side, word) {
      const { cell, left, top } = layout();
      const place = reading2.on(side).indexOf(word);
      const within = (scrolled, room) => clamp(scrolled, (place + 1) * cell - room, place * cell);
      if (side === "from") element2.scrollTop = within(element2.scrollTop, element2.clientHeight - top);
      else element2.scrollLeft = within(element2.scrollLeft, element2.clientWidth - left);
    }
    return {
      element: element2,
      zoom: make("label", { class: "zoom" }, "Cell size ", zoom),
      /** Another sentence: cells are as large as fits again. */
      fit: () => {
        zoomed = false;
      },
      draw,
      follow
    };
  }
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
        if (weight < LEAST2) continue;
        pen.fillStyle = colour(place, strength(weight));
        pen.fillRect(x(col) + place * strip, y(row), strip, cell - gap);
      }
    });
  }
  function drawFrames({ reading: { rows, cols }, focus, marks, ink }, { pen, cell, x, y }) {
    pen.strokeStyle = ink;
    pen.lineWidth = 1.5;
    pen.setLineDash([3, 2]);
    for (const { from, to } of marks) {
      const [row2, col2] = [rows.indexOf(from[0]), cols.indexOf(to[0])];
      pen.strokeRect(x(col2) - 1, y(row2) - 1, to.length * cell + 1, from.length * cell + 1);
    }
    pen.setLineDash([]);
    if (!focus) return;
    const [row, col] = focus.side === "from" ? [focus.word, focus.other] : [focus.other, focus.word];
    if (row != null) pen.strokeRect(x(0), y(rows.indexOf(row)) - 0.5, cols.length * cell, cell);
    if (col != null) pen.strokeRect(x(cols.indexOf(col)) - 0.5, y(0), cell, rows.length * cell);
  }
  function drawLabels({ reading, focus, ink, font }, { pen, left, top, cell, x, y, across, down }) {
    const widthOf = (text) => pen.measureText(text).width;
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

  // state.js
  var initial = () => ({ index: 0, heads: [], picked: false, side: "from", word: null });
  var focused = ({ side, word }, hover) => hover ?? (word == null ? null : { side, word });
  function chosen(state, side, word, toggle = false) {
    const again = toggle && state.word === word && state.side === side;
    return { ...state, side, word: again ? null : word };
  }
  function turned(state, { rows, cols }) {
    if (state.word == null) return state;
    const looks = rows.includes(state.word);
    const isLookedAt = cols.includes(state.word);
    if (!looks && !isLookedAt) return { ...state, word: null };
    if (state.side === "from" ? looks : isLookedAt) return state;
    return { ...state, side: looks ? "from" : "to" };
  }

  // tables.js
  var LISTED = 8;
  function tables(reading, heads, word) {
    const place = (unit) => `${unit + 1}`;
    if (word == null) {
      const best = heads.flatMap((head) => reading.strongest(head).slice(0, LISTED)).sort((a, b) => b[2] - a[2]);
      const pairs = [...new Map(best.map((pair) => [`${pair[0]} ${pair[1]}`, pair])).values()].slice(0, LISTED);
      return [{
        caption: "Strongest attention",
        names: ["word", "looks at"],
        rows: pairs.map(([from, to]) => ({
          labels: [reading.label(from), reading.label(to)],
          weights: heads.map((head) => reading.weight(head, from, to))
        }))
      }];
    }
    const name = `${quoted(reading.label(word))} (place ${place(word)})`;
    const sides = [[{ side: "from", word }, "looks at"], [{ side: "to", word }, "is looked at by"]];
    return sides.filter(([{ side }]) => reading.on(side).includes(word)).map(([focus, verb]) => ({
      caption: `${name} ${verb}`,
      names: ["word", "place"],
      rows: reading.ranked(heads, focus).slice(0, LISTED).map((other) => ({
        labels: [reading.label(other), place(other)],
        weights: heads.map((head) => reading.along(head, focus, other))
      }))
    }));
  }
  function element({ caption, names, rows }, heads) {
    const titles = heads.map((head, i) => make(
      "th",
      { scope: "col", class: "number" },
      heads.length > 1 ? make("i", { class: `c${i}` }) : "",
      nameOf(head)
    ));
    return make("div", { class: "table" }, make(
      "table",
      null,
      make("caption", null, caption),
      make("thead", null, make("tr", null, ...names.map((name) => make("th", { scope: "col" }, name)), ...titles)),
      make("tbody", null, ...rows.map(({ labels, weights }) => make(
        "tr",
        null,
        ...labels.map((label) => make("td", null, label)),
        ...weights.map((weight) => make("td", { class: "number" }, figure(weight)))
      )))
    ));
  }

  // words.js
  var BAR = 10;
  function bars({ reading, heads, focus }, unit) {
    if (!focus || !reading.others(focus).includes(unit)) return heads.map(() => 0);
    return heads.map((head) => Math.round(Math.sqrt(reading.along(head, focus, unit)) * BAR));
  }
  function words(actions, state, walkTo) {
    const element2 = make("div", { class: "text", role: "toolbar", "aria-label": "Words: choose one", keydown: walk });
    let buttons = [];
    let units = [];
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
      element: element2,
      /** @param {Reading} reading */
      fill(reading) {
        units = reading.all;
        buttons = units.map((word) => {
          const focus = () => ({ side: state().side, word });
          return make("button", {
            type: "button",
            tabindex: "-1",
            class: reading.units[word].special ? "special" : false,
            click: () => actions.choose(state().side, word),
            focus: (event) => event.target.matches(":focus-visible") && actions.over(focus()),
            blur: () => actions.over(null),
            ...pointer(actions, focus)
          }, reading.label(word));
        });
        buttons[0].tabIndex = 0;
        element2.replaceChildren(...buttons);
      },
      /** @param {Scene} scene */
      draw(scene) {
        const { heads, focus, colour } = scene;
        const fills = heads.map((_, i) => `linear-gradient(${colour(i, 1)}, ${colour(i, 1)})`).join();
        const places = heads.map((_, i) => `${heads.length > 1 ? 100 * i / (heads.length - 1) : 0}% 100%`).join();
        buttons.forEach((button, i) => {
          const heights = bars(scene, units[i]);
          button.style.backgroundImage = fills;
          button.style.backgroundSize = heights.map((height) => `${100 / heights.length}% ${height}px`).join();
          button.style.backgroundPosition = places;
          button.classList.toggle("focus", focus?.word === units[i]);
          button.setAttribute("aria-pressed", `${state().word === units[i]}`);
        });
      }
    };
  }

  // explorer.js
  async function explore(root, serial) {
    const data = JSON.parse(root.querySelector('script[type="application/json"]')?.textContent ?? "");
    let state = initial();
    let reading;
    let codes = new Uint8Array();
    let hover = null;
    let asked = 0;
    let waiting = false;
    const actions = {
      choose: (side2, word) => choose(side2, word, true),
      over: (focus) => {
        hover = focus;
        redraw();
      },
      redraw
    };
    const title = (...text2) => make(
      /** @type {"h3"} */
      `h${data.heading}`,
      null,
      ...text2
    );
    const colours = palette(root);
    const top = controls(data, serial, { show, divide, redraw });
    const note = make("p", { class: "note" });
    const all = grid(data, title("All heads"), pick);
    const name = make(
      /** @type {"h3"} */
      `h${data.heading}`,
      { class: "name", tabindex: "-1" }
    );
    const shown = chips(name, (head) => pick(head, true));
    const side = choices("A word", `${serial}-side`, [["from", "looks at"], ["to", "is looked at by"]], () => {
      set({ ...state, side: (
        /** @type {Side} */
        side.value
      ) });
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
      make(
        "div",
        { class: "columns" },
        all.element,
        make(
          "section",
          { class: "one", "aria-label": "The heads chosen" },
          name,
          shown.list,
          side.element,
          text.element,
          status,
          make("div", { class: "views" }, view.element, asMatrix.zoom),
          asLines.element,
          asMatrix.element
        ),
        numbers
      ),
      make(
        "p",
        { class: "rounding" },
        `Model ${data.model}, ${data.layers} layers of ${data.heads} heads, counted from 1. ${data.rounding} Between words: the sum over a word’s pieces to it, the mean over them from it.`
      )
    ];
    async function show(index, heads) {
      const example = data.examples[index];
      const ticket = ++asked;
      const unpacked = await unpack(example.weights);
      if (ticket !== asked) return;
      codes = unpacked;
      state = {
        ...state,
        index,
        heads: heads ?? (state.picked ? state.heads : [example.start]),
        picked: state.picked || heads != null,
        word: index === state.index ? state.word : null
      };
      top.fill(example);
      status.classList.toggle("marked", example.marks.length > 0);
      note.replaceChildren(
        example.note ? `${example.note} ` : "",
        "Suggested head: ",
        make("a", { href: link([example.start]) }, `${example.start.join("-")}`),
        "."
      );
      divide();
      showHeads();
    }
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
    function set(next) {
      state = turned(next, reading);
      side.value = state.side;
    }
    function pick(head, add, reveal = false) {
      state = { ...state, heads: picked(state.heads, head, add), picked: true };
      showHeads();
      try {
        history.replaceState(history.state, "", link(state.heads));
      } catch {
      }
      if (reveal && name.getBoundingClientRect().top > innerHeight - 200) reach(name);
    }
    function showHeads() {
      all.choose(state.heads);
      shown.fill(state.heads);
      root.style.setProperty("--heads", `${state.heads.length}`);
      tabulate();
      redraw();
    }
    function choose(side2, word, toggle) {
      hover = null;
      set(chosen(state, side2, word, toggle));
      tabulate();
      redraw();
    }
    function walk(event, move, follow) {
      if (!move) return;
      event.preventDefault();
      choose(move.side, move.word);
      if (move.follow) follow(reading, move.side, move.word);
    }
    const link = (heads) => address(heads, data.examples.length > 1 ? state.index : null);
    function reach(node) {
      const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
      node.scrollIntoView({ block: "start", behavior: still ? "auto" : "smooth" });
    }
    async function jump() {
      const wanted = addressed(location.hash);
      const index = wanted?.index ?? state.index;
      if (!wanted || !data.examples[index] || !wanted.heads.every(all.has)) return false;
      await show(index, wanted.heads);
      return true;
    }
    function redraw() {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        paint();
      });
    }
    function paint() {
      const { color: ink, fontFamily: font } = getComputedStyle(root);
      const scene = {
        reading,
        heads: state.heads,
        focus: focused(state, hover),
        marks: top.marks() ? reading.known() : [],
        colour: colours.rgba,
        ink,
        font
      };
      const panel = view.value === "lines" ? asLines : asMatrix;
      asLines.element.hidden = panel !== asLines;
      asMatrix.element.hidden = asMatrix.zoom.hidden = panel !== asMatrix;
      text.draw(scene);
      tell(description(scene));
      panel.draw(scene);
    }
    function tell(say) {
      if (status.textContent !== say.join("")) status.replaceChildren(...say.map((line) => make("div", null, line)));
    }
    function tabulate() {
      const each = tables(reading, state.heads, state.word);
      numbers.replaceChildren(...each.map((table) => element(table, state.heads)));
    }
    function recolour() {
      colours.read();
      all.draw(reading, colours.rgb(0));
      redraw();
    }
    colours.read();
    const jumped = await jump();
    if (!jumped) await show(0);
    root.append(...parts);
    if (jumped) reach(root);
    root.addEventListener("keydown", (event) => {
      if (event.key === "Escape") choose(state.side, null);
    });
    const theme = { attributes: true, attributeFilter: ["data-theme", "class"] };
    new MutationObserver(recolour).observe(document.documentElement, theme);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
    new ResizeObserver(redraw).observe(root);
    addEventListener("hashchange", async () => {
      if (await jump()) reach(root);
    });
    root.dataset.ready = "";
  }

  // main.js
  var roots = document.querySelectorAll(".bertlook-explorer:not([data-started])");
  for (const root of roots) {
    root.dataset.started = "";
    if ("DecompressionStream" in window) explore(root, `bertlook-${document.querySelectorAll("[data-started]").length}`);
    else root.append("The attention explorer needs a browser of 2023 or later.");
  }
})();
