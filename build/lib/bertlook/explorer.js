/* The attention explorer: reads the JSON beside it, draws on canvases, writes text only as text. */
(() => {
  "use strict";
  const COLOURS = 6; // heads that can be compared
  const LISTED = 8; // rows of a table
  const MAX_LINES = 400; // lines of one head drawn while no word is chosen
  const WEIGHT = Float32Array.from({ length: 256 }, (_, code) => (code / 255) ** 2);
  let explorers = 0;

  /** An element; functions become listeners, strings become text. */
  function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (typeof value === "function") node.addEventListener(name, value);
      else if (value !== false && value != null) node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children);
    return node;
  }

  /** Weights of one example, a byte each [layer, head, query, key]. */
  async function unpack(packed) {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  const nameOf = ([layer, head]) => `${layer}-${head}`;
  const inWords = ([layer, head]) => `Layer ${layer}, head ${head}`;
  const figure = (weight) => weight.toFixed(weight < 0.0995 ? 3 : 2); // no more digits than the rounding leaves
  const strength = (weight) => weight ** 0.6; // how dark a weight is drawn: small ones stay visible
  const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

  function explore(root) {
    if (!("DecompressionStream" in window)) {
      root.append("The attention explorer needs a browser of 2023 or later.");
      return;
    }
    const data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
    const serial = `bertlook-${++explorers}`;
    const title = `h${data.heading}`;
    const still = matchMedia("(prefers-reduced-motion: reduce)");
    const state = { index: 0, heads: [], side: "from", word: null, picked: false };
    let hover = null; // {side, word, other}: what the pointer or the keyboard is on
    let asked = 0; // how often a sentence was asked for
    let bytes = new Uint8Array(); // of the example shown
    let units = []; // words or wordpieces: {label, tokens, special, part, word}
    let rows = []; // indices into units: what looks …
    let cols = []; // … and what is looked at
    let maps = new Map(); // of heads, by name
    let palette = []; // colours of the theme, as "r, g, b"

    // ---- controls -------------------------------------------------------------------------------------------
    const choices = (legend, name, options, chosen, change) =>
      make("fieldset", { class: "choice" }, make("legend", null, legend),
        ...options.map(([value, text]) => make("label", null,
          make("input", { type: "radio", name: `${serial}-${name}`, value, checked: value === chosen, change }), text)));
    const tick = (text, checked, change) => {
      const box = make("input", { type: "checkbox", checked, change });
      return [box, make("label", { class: "tick" }, box, text)];
    };
    const value = (name) => root.querySelector(`input[name="${serial}-${name}"]:checked`).value;

    const sentence = make("select", { change: () => show(sentence.selectedIndex) },
      ...data.examples.map((example) => make("option", null, example.title)));
    const grain = choices("Between", "grain", [["words", "words"], ["pieces", "wordpieces"]], "words", () => divide());
    const [hide, hideLabel] = tick("Hide special tokens", false, () => divide());
    const [marked, markedLabel] = tick("Show marks (dashed)", true, () => redraw());
    const part = make("select", { change: () => divide() },
      ...[["", "within and between"], ["00", "A to A"], ["01", "A to B"], ["10", "B to A"], ["11", "B to B"]]
        .map(([value, text]) => make("option", { value }, text)));
    const partLabel = make("label", null, "Attention ", part);
    const note = make("p", { class: "note" });

    // ---- the grid of heads ----------------------------------------------------------------------------------
    const thumbs = new Map();
    let cursor = "1-1"; // the head that Tab comes to
    const visible = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const thumb = thumbs.get(entry.target.dataset.head);
        thumb.visible = entry.isIntersecting;
      }
      drawThumbs();
    }, { rootMargin: "100px" });
    const count = (number) => Array.from({ length: number }, (_, i) => i + 1);
    const grid = make("table", { role: "grid", "aria-label": "All heads", "aria-multiselectable": "true", keydown: walkGrid, class: "grid" },
      make("thead", null, make("tr", null,
        make("td", null), ...count(data.heads).map((head) => make("th", { scope: "col" }, `${head}`)))),
      make("tbody", null, ...count(data.layers).map((layer) => make("tr", null,
        make("th", { scope: "row" }, `${layer}`), ...count(data.heads).map((head) => thumbnail([layer, head]))))));

    function thumbnail(head) {
      const canvas = make("canvas", { "aria-hidden": "true" });
      const button = make("button", {
        type: "button", tabindex: "-1", "data-head": nameOf(head), "aria-label": inWords(head), title: inWords(head),
        click: (event) => pick(head, event.shiftKey || event.ctrlKey || event.metaKey, true),
      }, canvas);
      thumbs.set(nameOf(head), { head, canvas, button, stale: true, visible: false });
      visible.observe(button);
      return make("td", { "aria-selected": "false" }, button);
    }

    function walkGrid(event) {
      const [layer, head] = thumbs.get(cursor).head;
      const to = {
        ArrowUp: [layer - 1, head], ArrowDown: [layer + 1, head], ArrowLeft: [layer, head - 1],
        ArrowRight: [layer, head + 1], Home: [layer, 1], End: [layer, data.heads],
        PageUp: [1, head], PageDown: [data.layers, head],
      }[event.key];
      if (!to) return;
      event.preventDefault();
      const next = [clamp(to[0], 1, data.layers), clamp(to[1], 1, data.heads)];
      stand(nameOf(next));
      thumbs.get(cursor).button.focus();
      if (!compare.checked && !event.shiftKey) pick(next, false, false);
    }

    function stand(name) {
      thumbs.get(cursor).button.tabIndex = -1;
      cursor = name;
      thumbs.get(cursor).button.tabIndex = 0;
    }

    const [compare, compareLabel] = tick("Compare: choosing adds a head", false, () => {});
    const legend = make("p", { class: "legend" }, "Weight");
    for (const weight of [0, 0.01, 0.1, 0.3, 0.6, 1]) {
      const swatch = make("i", { class: "c0" });
      swatch.style.opacity = strength(weight);
      legend.append(make("span", null, make("u", null, swatch), `${weight}`));
    }

    // ---- the head in question -------------------------------------------------------------------------------
    const heading = make(title, { class: "name", tabindex: "-1" });
    const chips = make("ul", { class: "chips", "aria-label": "Heads shown" });
    const side = choices("A word", "side", [["from", "looks at"], ["to", "is looked at by"]], "from", () => {
      state.side = value("side");
      if (state.word != null) turn();
      redraw();
    });
    const text = make("div", { class: "text", role: "toolbar", "aria-label": "Words: choose one", keydown: walkText });
    const status = make("div", { class: "status", "aria-live": "polite" });
    const view = choices("As", "view", [["lines", "lines"], ["matrix", "matrix"]], "lines", () => redraw());
    const zoom = make("input", { type: "range", min: 3, max: 30, value: 0, input: () => { zoom.dataset.set = ""; redraw(); } });
    const zoomLabel = make("label", { class: "zoom" }, "Cell size ", zoom);
    const lines = make("canvas", { "aria-hidden": "true" });
    const lists = { from: make("ol"), to: make("ol") };
    const linesPanel = make("div", { class: "lines", tabindex: "0", role: "group", scroll: () => redraw(), keydown: walkPanel,
      "aria-label": "Lines from the words that look, left, to those they look at, right. Arrow keys choose a word." },
      make("div", { "aria-hidden": "true", class: "sides" }, lists.from, lines, lists.to));
    const matrix = make("canvas", { "aria-hidden": "true", pointermove: overMatrix, pointerleave: () => over(null), click: clickMatrix });
    const spacer = make("div", { class: "spacer" }, matrix);
    const matrixPanel = make("div", { class: "matrix", tabindex: "0", role: "group", scroll: () => redraw(), keydown: walkPanel,
      "aria-label": "Matrix: rows look at columns. Up and down choose a row, left and right a column." }, spacer);
    const tables = make("div", { class: "tables" });

    root.append(
      make("div", { class: "controls" },
        data.examples.length > 1 ? make("label", { class: "pick" }, "Sentence ", sentence) : "",
        grain, hideLabel, markedLabel, partLabel),
      note,
      make("div", { class: "columns" },
        make("section", { class: "all", "aria-label": "All heads" },
          make(title, null, "All heads"), make("p", { class: "axes" }, "Layers down, heads across. In each, rows are the words that look, columns what they look at."), grid, legend, compareLabel),
        make("section", { class: "one", "aria-label": "The heads chosen" },
          heading, chips, side, text, status, make("div", { class: "views" }, view, zoomLabel), linesPanel, matrixPanel),
        tables),
      make("p", { class: "rounding" },
        `Model ${data.model}, ${data.layers} layers of ${data.heads} heads, counted from 1. ${data.rounding} ` +
        "Between words: the sum over a word’s pieces to it, the mean over them from it."));
    const probes = count(COLOURS).map((i) => root.appendChild(make("span", { class: `c${i - 1}`, hidden: true })));

    // ---- from bytes to what is shown ------------------------------------------------------------------------
    async function show(index, heads) {
      const example = data.examples[index];
      const ticket = ++asked;
      const unpacked = await unpack(example.weights);
      if (ticket !== asked) return; // another sentence was asked for meanwhile
      if (index !== state.index) state.word = null;
      bytes = unpacked;
      state.index = index;
      sentence.selectedIndex = index;
      state.heads = heads || (state.picked ? state.heads : [example.start]);
      state.picked ||= Boolean(heads);
      markedLabel.hidden = !example.marks.length;
      status.classList.toggle("marked", Boolean(example.marks.length));
      partLabel.hidden = !example.parts.includes(1);
      note.replaceChildren(example.note ? `${example.note} ` : "", "Suggested head: ",
        make("a", { href: address([example.start]) }, nameOf(example.start)), ".");
      divide();
      chosen();
    }

    /** Words or wordpieces, with or without special tokens, of one text or both. */
    function divide() {
      const example = data.examples[state.index];
      const whole = value("grain") === "words";
      const was = state.word == null ? null : units[state.word].tokens[0];
      units = [];
      example.tokens.forEach((token, i) => {
        const word = example.words[i];
        if (whole && word >= 0 && units.length && units.at(-1).word === word) units.at(-1).tokens.push(i);
        else units.push({ label: whole && word >= 0 ? example.labels[word] : token, tokens: [i], word, special: word < 0, part: example.parts[i] });
      });
      const shown = units.map((_, i) => i).filter((i) => !(hide.checked && units[i].special));
      const within = partLabel.hidden ? "" : part.value;
      rows = shown.filter((i) => !within || units[i].part === +within[0]);
      cols = shown.filter((i) => !within || units[i].part === +within[1]);
      maps = new Map();
      hover = null;
      state.word = was == null ? null : units.findIndex((unit) => unit.tokens.includes(was));
      turn();
      restock();
      text.replaceChildren(...shown.map((i) => make("button", {
        type: "button", tabindex: "-1", "data-unit": i, class: units[i].special ? "special" : false,
        click: () => choose(value("side"), i, true),
        focus: (event) => event.target.matches(":focus-visible") && over({ side: value("side"), word: i }),
        blur: () => over(null), ...pointer(() => value("side"), i),
      }, units[i].label)));
      text.firstChild.tabIndex = 0;
      for (const [which, list] of [["from", rows], ["to", cols]]) {
        lists[which].replaceChildren(...list.map((i) => make("li", {
          class: units[i].special ? "special" : false, title: units[i].label,
          click: () => choose(which, i, true), ...pointer(() => which, i),
        }, make("b", null, units[i].label), make("small"))));
      }
      linesPanel.classList.toggle("long", shown.length > 48);
      delete zoom.dataset.set;
      tabulate();
      redraw();
    }

    const pointer = (side, word) => ({
      pointerenter: (event) => event.pointerType !== "touch" && over({ side: side(), word }),
      pointerleave: (event) => event.pointerType !== "touch" && over(null),
    });

    /** Attention of one head between units, [query × key]: as the model has it, and as shown. */
    function mapOf(head) {
      const name = nameOf(head);
      if (maps.has(name)) return maps.get(name);
      const n = units.length;
      const tokens = data.examples[state.index].tokens.length;
      const unitOf = [];
      units.forEach((unit, u) => unit.tokens.forEach((token) => { unitOf[token] = u; }));
      const raw = new Float32Array(n * n);
      let at = ((head[0] - 1) * data.heads + head[1] - 1) * tokens * tokens;
      for (let query = 0; query < tokens; query++) {
        const row = unitOf[query] * n;
        const share = 1 / units[unitOf[query]].tokens.length;
        for (let key = 0; key < tokens; key++) raw[row + unitOf[key]] += WEIGHT[bytes[at++]] * share;
      }
      const map = { raw, shown: raw, special: new Float32Array(n) };
      for (let i = 0; i < n; i++) units.forEach((unit, j) => { if (unit.special) map.special[i] += raw[i * n + j]; });
      if (hide.checked) {
        map.shown = raw.slice();
        for (let i = 0; i < n; i++) {
          let sum = 0;
          for (let j = 0; j < n; j++) if (!units[j].special) sum += raw[i * n + j];
          for (let j = 0; j < n; j++) map.shown[i * n + j] = units[j].special || !sum ? 0 : raw[i * n + j] / sum;
        }
      }
      maps.set(name, map);
      return map;
    }

    const weight = (head, from, to) => mapOf(head).shown[from * units.length + to];
    const along = (head, focus, other) => focus.side === "from" ? weight(head, focus.word, other) : weight(head, other, focus.word);
    const others = (focus) => (focus.side === "from" ? cols : rows);

    /** Pairs of one head, strongest first. */
    function strongest(head) {
      const map = mapOf(head);
      if (!map.strongest) {
        map.strongest = rows.flatMap((i) => cols.map((j) => [i, j, weight(head, i, j)])).filter((pair) => pair[2] > 0.004);
        map.strongest.sort((a, b) => b[2] - a[2]).splice(MAX_LINES);
      }
      return map.strongest;
    }

    /** What is known of the sentence, between units: [from units, to units, label]. */
    function known() {
      if (!marked.checked) return [];
      const of = (list, word) => list.filter((i) => units[i].word === word);
      return data.examples[state.index].marks.map(([from, to, label]) => [of(rows, from), of(cols, to), label])
        .filter(([from, to]) => from.length && to.length);
    }

    // ---- choosing -------------------------------------------------------------------------------------------
    function pick(head, add, reveal) {
      const name = nameOf(head);
      const has = state.heads.some((each) => nameOf(each) === name);
      state.picked = true;
      if (!add && !compare.checked) state.heads = [head];
      else if (!has) state.heads = [...state.heads, head].slice(-COLOURS);
      else if (state.heads.length > 1) state.heads = state.heads.filter((each) => nameOf(each) !== name);
      stand(name);
      chosen();
      try { history.replaceState(history.state, "", address(state.heads)); } catch { /* a frame without history */ }
      if (reveal && heading.getBoundingClientRect().top > innerHeight - 200) reach(heading);
    }

    const address = (heads) => `#${heads.map(nameOf).join("+")}${data.examples.length > 1 ? `@${state.index + 1}` : ""}`;
    const reach = (node) => node.scrollIntoView({ block: "start", behavior: still.matches ? "auto" : "smooth" });

    /** Show the heads chosen: in the grid, in the heading, as chips. */
    function chosen() {
      const names = state.heads.map(nameOf);
      stand(names.at(-1));
      for (const [name, { button }] of thumbs) {
        const place = names.indexOf(name);
        button.className = place < 0 ? "" : `chosen c${place}`;
        button.parentNode.setAttribute("aria-selected", place >= 0);
      }
      const several = state.heads.length > 1;
      heading.textContent = several ? `${state.heads.length} heads` : inWords(state.heads[0]);
      root.style.setProperty("--heads", state.heads.length);
      chips.hidden = !several;
      chips.replaceChildren(...state.heads.map((head, i) => make("li", null, make("i", { class: `c${i}` }), nameOf(head),
        make("button", { type: "button", "aria-label": `Remove ${inWords(head).toLowerCase()}`, click: () => pick(head, true) }, "×"))));
      tabulate();
      redraw();
    }

    function choose(side, word, toggle) {
      const same = toggle && state.word === word && state.side === side;
      Object.assign(state, { side, word: same ? null : word });
      hover = null;
      turn();
      tabulate();
      redraw();
    }

    /** A word that cannot look, or be looked at, within the texts chosen, is seen from its other side. */
    function turn() {
      if (state.word != null) {
        const can = { from: rows.includes(state.word), to: cols.includes(state.word) };
        if (!can.from && !can.to) state.word = null;
        else if (!can[state.side]) state.side = can.from ? "from" : "to";
      }
      root.querySelector(`input[name="${serial}-side"][value=${state.side}]`).checked = true;
    }

    function over(what) {
      hover = what;
      redraw();
    }

    const step = (list, word, by) => list[clamp(list.indexOf(word) + by, 0, list.length - 1)];

    function walkText(event) {
      const buttons = [...text.children];
      const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, Home: -buttons.length, End: buttons.length }[event.key];
      if (!by) return;
      event.preventDefault();
      const at = buttons.indexOf(document.activeElement);
      const next = buttons[clamp(at + by, 0, buttons.length - 1)];
      buttons[at].tabIndex = -1;
      next.tabIndex = 0;
      choose(value("side"), +next.dataset.unit);
      next.focus();
    }

    function walkPanel(event) {
      const move = { ArrowUp: ["from", -1], ArrowDown: ["from", 1], ArrowLeft: ["to", -1], ArrowRight: ["to", 1] }[event.key];
      if (!move) return;
      event.preventDefault();
      const inLines = event.currentTarget === linesPanel;
      const side = inLines && move[0] === "from" ? state.side : move[0];
      if (inLines && move[0] === "to") return choose(move[1] > 0 ? "to" : "from", state.word ?? rows[0]);
      const list = side === "from" ? rows : cols;
      choose(side, state.word == null ? list[0] : step(list, state.word, move[1]));
      follow(side, list.indexOf(state.word));
    }

    /** Scroll what was chosen with the keyboard into the panel. */
    function follow(side, place) {
      const item = lists[side].children[place];
      if (value("view") === "lines") linesPanel.scrollTop = clamp(linesPanel.scrollTop, item.offsetTop - linesPanel.clientHeight + 60, item.offsetTop - 40);
      else {
        const { cell, left, top } = layout();
        const [axis, room] = side === "from" ? ["scrollTop", matrixPanel.clientHeight - top] : ["scrollLeft", matrixPanel.clientWidth - left];
        matrixPanel[axis] = clamp(matrixPanel[axis], (place + 1) * cell - room, place * cell);
      }
    }

    root.addEventListener("keydown", (event) => { if (event.key === "Escape") choose(state.side, null); });

    // ---- drawing --------------------------------------------------------------------------------------------
    let waiting = false;
    function redraw() {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; if (units.length) paint(); });
    }

    const colour = (place, strength) => `rgba(${palette[place]}, ${strength})`;

    function paint() {
      const focus = hover || (state.word == null ? null : { side: state.side, word: state.word });
      const inLines = value("view") === "lines";
      linesPanel.hidden = !inLines;
      matrixPanel.hidden = zoomLabel.hidden = inLines;
      drawText(focus);
      describe(focus);
      if (inLines) drawLines(focus);
      else drawMatrix(focus);
    }

    /** A canvas of this size in the page's pixels, cleared. */
    function prepare(canvas, width, height) {
      const ratio = devicePixelRatio || 1;
      const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
      if (canvas.width !== w || canvas.height !== h) {
        Object.assign(canvas, { width: w, height: h });
        Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
      }
      const pen = canvas.getContext("2d");
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, width, height);
      return pen;
    }

    function restock() {
      for (const thumb of thumbs.values()) thumb.stale = true;
      drawThumbs();
    }

    /** Draw the small multiples that are in sight, a few in each frame, so that the page stays responsive. */
    let drawing = false;
    function drawThumbs() {
      if (drawing) return;
      drawing = true;
      requestAnimationFrame((start) => {
        drawing = false;
        if (!units.length) return;
        for (const thumb of thumbs.values()) {
          if (!thumb.stale || !thumb.visible) continue;
          if (performance.now() - start > 25) return drawThumbs();
          drawThumb(thumb);
        }
      });
    }

    /** A small multiple keeps the strongest weight of what falls on a pixel, so that thin patterns stay. */
    function drawThumb(thumb) {
      thumb.stale = false;
      const size = clamp(Math.max(rows.length, cols.length), 1, 56);
      const [high, wide] = [Math.min(size, rows.length), Math.min(size, cols.length)];
      Object.assign(thumb.canvas, { width: wide, height: high });
      const pen = thumb.canvas.getContext("2d");
      const image = pen.createImageData(wide, high);
      const rgb = palette[0].split(",").map(Number);
      rows.forEach((from, i) => cols.forEach((to, j) => {
        const at = 4 * (Math.floor(i * high / rows.length) * wide + Math.floor(j * wide / cols.length));
        const alpha = 255 * strength(weight(thumb.head, from, to));
        if (alpha > image.data[at + 3]) image.data.set([...rgb, alpha], at);
      }));
      pen.putImageData(image, 0, 0);
    }

    /** Under each word of the text a bar for each head: how much the word in question looks at it, or it at that. */
    function drawText(focus) {
      const reached = focus && new Set(others(focus));
      for (const button of text.children) {
        const unit = +button.dataset.unit;
        const heights = state.heads.map((head) => (reached && reached.has(unit) ? Math.round(Math.sqrt(along(head, focus, unit)) * 10) : 0));
        const style = button.style;
        style.backgroundImage = heights.map((_, i) => `linear-gradient(${colour(i, 1)}, ${colour(i, 1)})`).join();
        style.backgroundSize = heights.map((height) => `${100 / heights.length}% ${height}px`).join();
        style.backgroundPosition = heights.map((_, i) => `${heights.length > 1 ? (100 * i) / (heights.length - 1) : 0}% 100%`).join();
        button.classList.toggle("focus", Boolean(focus) && focus.word === unit);
        button.setAttribute("aria-pressed", state.word === unit);
      }
    }

    function describe(focus) {
      const say = state.heads.map((head) => {
        const prefix = `${inWords(head)}: `;
        if (!focus) {
          const [pair] = strongest(head);
          return prefix + (pair ? `strongest, “${units[pair[0]].label}” attends ${figure(pair[2])} to “${units[pair[1]].label}”.` : "no attention here.");
        }
        const word = `“${units[focus.word].label}”`;
        if (focus.other != null) return `${prefix}${word} attends ${figure(along(head, focus, focus.other))} to “${units[focus.other].label}”.`;
        const best = ranked(head, focus).slice(0, 3).map((other) => [units[other].label, figure(along(head, focus, other))]);
        const left = hide.checked && focus.side === "from" ? ` (Special tokens, left out, had ${figure(mapOf(head).special[focus.word])}.)` : "";
        return prefix + (focus.side === "from"
          ? `${word} attends ${best.map(([label, share]) => `${share} to “${label}”`).join(", ")}.${left}`
          : `${word} receives ${best.map(([label, share]) => `${share} from “${label}”`).join(", ")}.`);
      });
      const marks = focus ? known().filter(([from, to]) => (focus.side === "from" ? from : to).includes(focus.word)) : [];
      if (marks.length) say.push(`Marked: ${marks.map(([from, to, label]) => `“${units[from[0]].label}” → “${units[to[0]].label}” (${label})`).join(", ")}.`);
      if (status.textContent !== say.join("")) status.replaceChildren(...say.map((line) => make("div", null, line)));
    }

    const ranked = (head, focus) => [...others(focus)].sort((a, b) => along(head, focus, b) - along(head, focus, a));

    function drawLines(focus) {
      const rowHeight = lists.from.firstChild.getBoundingClientRect().height;
      const width = lines.parentNode.clientWidth - lists.from.offsetWidth - lists.to.offsetWidth;
      const height = Math.min(linesPanel.clientHeight, rowHeight * Math.max(rows.length, cols.length));
      const top = linesPanel.scrollTop;
      const pen = prepare(lines, width, height);
      const place = { from: new Map(rows.map((u, i) => [u, i])), to: new Map(cols.map((u, i) => [u, i])) };
      const y = (side, unit) => (place[side].get(unit) + 0.5) * rowHeight - top;
      const edge = 5 * state.heads.length;
      const stroke = (a, b, c = (state.heads.length - 1) / 2) => {
        const aside = 3 * (c - (state.heads.length - 1) / 2); // heads side by side
        [a, b] = [a + aside, b + aside];
        if (Math.max(a, b) < 0 || Math.min(a, b) > height) return; // out of sight
        pen.beginPath();
        pen.moveTo(2, a);
        pen.bezierCurveTo(width / 2, a, width / 2, b, width - 2, b);
        pen.stroke();
      };
      state.heads.forEach((head, c) => {
        if (!focus) {
          for (const [i, j, w] of strongest(head)) {
            pen.strokeStyle = colour(c, Math.max(0.05, strength(w)));
            pen.lineWidth = 1 + 2 * w;
            stroke(y("from", i), y("to", j), c);
          }
          return;
        }
        for (const other of others(focus)) {
          const w = along(head, focus, other);
          if (w < 0.004) continue;
          const [i, j] = focus.side === "from" ? [focus.word, other] : [other, focus.word];
          pen.strokeStyle = colour(c, Math.max(0.1, strength(w)));
          pen.lineWidth = 1 + 3 * w;
          stroke(y("from", i), y("to", j), c);
          pen.fillStyle = colour(c, strength(w)); // a block beside each word, as dark as the line
          const at = y(focus.side === "from" ? "to" : "from", other);
          pen.fillRect(focus.side === "from" ? width - edge + 5 * c : 5 * c, at - rowHeight / 2 + 1, 5, rowHeight - 2);
        }
      });
      pen.setLineDash([3, 3]);
      pen.lineWidth = 1.5;
      pen.strokeStyle = getComputedStyle(root).color;
      for (const [from, to] of known()) {
        if (focus && !(focus.side === "from" ? from : to).includes(focus.word)) continue;
        stroke(y("from", from[0]), y("to", to[0]));
      }
      pen.setLineDash([]);
      for (const side of ["from", "to"]) {
        const list = side === "from" ? rows : cols;
        [...lists[side].children].forEach((item, i) => {
          const w = focus && focus.side !== side && state.heads.length === 1 ? along(state.heads[0], focus, list[i]) : 0;
          item.classList.toggle("focus", Boolean(focus) && (focus.side === side ? focus.word : focus.other) === list[i]);
          item.classList.toggle("dim", Boolean(focus) && focus.side === side && focus.word !== list[i]);
          item.lastChild.textContent = w >= 0.05 ? figure(w) : "";
        });
      }
    }

    /** Where things are in the matrix. */
    function layout() {
      const wide = matrixPanel.clientWidth;
      const pen = matrix.getContext("2d");
      pen.font = `13px ${getComputedStyle(root).fontFamily}`;
      const longest = (list) => 14 + Math.ceil(Math.max(...list.map((i) => pen.measureText(units[i].label).width)));
      const left = Math.min(longest(rows), 130, Math.round(wide * 0.3));
      const top = Math.min(longest(cols), 110);
      if (!("set" in zoom.dataset)) zoom.value = clamp(Math.floor((wide - left - 4) / cols.length), 11, 26);
      return { left, top, cell: +zoom.value };
    }

    function drawMatrix(focus) {
      const { left, top, cell } = layout();
      Object.assign(spacer.style, { width: `${left + cols.length * cell + 2}px`, height: `${top + rows.length * cell + 2}px` });
      const [width, height] = [matrixPanel.clientWidth, Math.min(matrixPanel.clientHeight, top + rows.length * cell + 2)];
      const pen = prepare(matrix, width, height);
      const ink = getComputedStyle(root).color;
      const x = (j) => left + j * cell - matrixPanel.scrollLeft;
      const y = (i) => top + i * cell - matrixPanel.scrollTop;
      const across = count(cols.length).map((j) => j - 1).filter((j) => x(j) > left - cell && x(j) < width);
      const down = count(rows.length).map((i) => i - 1).filter((i) => y(i) > top - cell && y(i) < height);
      const line = cell > 8 ? 1 : 0;
      pen.save();
      pen.beginPath();
      pen.rect(left, top, width, height);
      pen.clip();
      pen.fillStyle = ink;
      pen.globalAlpha = 0.06;
      if (line) for (const i of down) for (const j of across) pen.fillRect(x(j), y(i), cell - line, cell - line);
      pen.globalAlpha = 1;
      const strip = (cell - line) / state.heads.length;
      state.heads.forEach((head, c) => {
        for (const i of down) for (const j of across) {
          const w = weight(head, rows[i], cols[j]);
          if (w < 0.0005) continue;
          pen.fillStyle = colour(c, strength(w));
          pen.fillRect(x(j) + c * strip, y(i), strip, cell - line);
        }
      });
      pen.strokeStyle = ink;
      pen.lineWidth = 1.5;
      pen.setLineDash([3, 2]);
      for (const [from, to] of known()) {
        const [i, j] = [rows.indexOf(from[0]), cols.indexOf(to[0])];
        pen.strokeRect(x(j) - 1, y(i) - 1, to.length * cell + 1, from.length * cell + 1);
      }
      pen.setLineDash([]);
      if (focus) {
        const [row, col] = focus.side === "from" ? [focus.word, focus.other] : [focus.other, focus.word];
        if (row != null) pen.strokeRect(x(0), y(rows.indexOf(row)) - 0.5, cols.length * cell, cell);
        if (col != null) pen.strokeRect(x(cols.indexOf(col)) - 0.5, y(0), cell, rows.length * cell);
      }
      pen.restore();
      const font = getComputedStyle(root).fontFamily;
      const short = (label, room) => { let cut = label; while (cut.length > 1 && pen.measureText(cut).width > room) cut = `${cut.slice(0, -2)}…`; return cut; };
      const strong = (side, unit) => focus && (focus.side === side ? focus.word : focus.other) === unit;
      pen.fillStyle = ink;
      pen.textBaseline = "middle";
      const label = (side, unit, x0, y0, room, turned) => {
        if (cell < 9 && !strong(side, unit)) return;
        pen.font = `${strong(side, unit) ? "bold " : ""}${clamp(cell, 10, 13)}px ${font}`;
        pen.save();
        pen.translate(x0, y0);
        if (turned) pen.rotate(-Math.PI / 2);
        pen.textAlign = turned ? "left" : "right";
        pen.fillText(short(units[unit].label, room), 0, 0);
        pen.restore();
      };
      for (const i of down) if (y(i) > top - cell / 2) label("from", rows[i], left - 5, y(i) + cell / 2, left - 8, false);
      for (const j of across) if (x(j) > left - cell / 2) label("to", cols[j], x(j) + cell / 2, top - 5, top - 8, true);
    }

    function cellAt(event) {
      const { left, top, cell } = layout();
      const box = matrix.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      return { i: y < top ? -1 : Math.floor((y - top + matrixPanel.scrollTop) / cell), j: x < left ? -1 : Math.floor((x - left + matrixPanel.scrollLeft) / cell) };
    }

    function overMatrix(event) {
      if (event.pointerType === "touch") return;
      const { i, j } = cellAt(event);
      if (i in rows) over({ side: "from", word: rows[i], other: cols[j] });
      else over(j in cols ? { side: "to", word: cols[j] } : null);
    }

    function clickMatrix(event) {
      const { i, j } = cellAt(event);
      if (i in rows) choose("from", rows[i], true);
      else if (j in cols) choose("to", cols[j], true);
    }

    /** The same in numbers: for the word chosen, else for the heads as a whole. */
    function tabulate() {
      if (!units.length) return;
      const place = (unit) => `${units.indexOf(units[unit]) + 1}`;
      const table = (caption, names, lines) => make("div", { class: "table" }, make("table", null, make("caption", null, caption),
        make("thead", null, make("tr", null, ...names.map((name) => make("th", { scope: "col" }, name)),
          ...state.heads.map((head, c) => make("th", { scope: "col", class: "number" }, state.heads.length > 1 ? make("i", { class: `c${c}` }) : "", nameOf(head))))),
        make("tbody", null, ...lines.map(([labels, weights]) => make("tr", null, ...labels.map((label) => make("td", null, label)),
          ...weights.map((w) => make("td", { class: "number" }, figure(w))))))));
      const of = (side, word, caption) => {
        const focus = { side, word };
        const most = (other) => Math.max(...state.heads.map((head) => along(head, focus, other)));
        const best = [...others(focus)].sort((a, b) => most(b) - most(a)).slice(0, LISTED);
        return table(caption, ["word", "place"], best.map((other) => [[units[other].label, place(other)], state.heads.map((head) => along(head, focus, other))]));
      };
      if (state.word == null) {
        const best = state.heads.flatMap((head) => strongest(head).slice(0, LISTED)).sort((a, b) => b[2] - a[2]);
        const pairs = new Map(best.map((pair) => [`${pair[0]} ${pair[1]}`, pair]));
        tables.replaceChildren(table("Strongest attention", ["word", "looks at"], [...pairs.values()].slice(0, LISTED)
          .map(([i, j]) => [[units[i].label, units[j].label], state.heads.map((head) => weight(head, i, j))])));
      } else {
        const name = `“${units[state.word].label}” (place ${place(state.word)})`;
        tables.replaceChildren(
          ...(rows.includes(state.word) ? [of("from", state.word, `${name} looks at`)] : []),
          ...(cols.includes(state.word) ? [of("to", state.word, `${name} is looked at by`)] : []));
      }
    }

    // ---- theme, size, address -------------------------------------------------------------------------------
    function recolour() {
      palette = probes.map((probe) => getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).join(", "));
      restock();
      redraw();
    }

    /** #4-10, #4-10@2, #4-10+5-3@2: heads, and the number of the sentence. */
    async function jump(reveal) {
      const found = /^#(\d+-\d+(?:\+\d+-\d+)*)(?:@(\d+))?$/.exec(decodeURIComponent(location.hash));
      if (!found) return false;
      const heads = found[1].split("+").map((name) => name.split("-").map(Number)).slice(0, COLOURS);
      const index = found[2] ? found[2] - 1 : state.index;
      if (!data.examples[index] || !heads.every((head) => thumbs.has(nameOf(head)))) return false;
      await show(index, heads);
      if (reveal) reach(root);
      return true;
    }

    new MutationObserver(recolour).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme", "class"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
    new ResizeObserver(redraw).observe(root);
    addEventListener("hashchange", () => jump(true));
    addEventListener("beforeprint", () => { for (const thumb of thumbs.values()) if (thumb.stale) drawThumb(thumb); });
    recolour();
    jump(true).then((jumped) => jumped || show(0)).then(() => { root.dataset.ready = ""; });
  }

  for (const root of document.querySelectorAll(".bertlook-explorer:not([data-started])")) {
    root.dataset.started = "";
    explore(root);
  }
})();
