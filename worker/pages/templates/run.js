"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const items = JSON.parse(document.getElementById("figures").textContent);
  const OTHER = "#8a929c", STATUS = {pass: UP, revise: "#c79200", block: DOWN, error: "#b4568a"};
  const MOST_CANDLES = 1500, MOST_POINTS = 3000, MOST_DOTS = 1500, PAGE = 50, LAST_BARS = 150;
  const TYPES = {u4: Uint32Array, f4: Float32Array, f8: Float64Array};

  // Packed data: base64 of raw deflate.
  async function inflated(text) {
    const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Response(stream).arrayBuffer();
  }
  async function numbers(packed) {
    const found = new TYPES[packed.type](await inflated(packed.data));
    if (packed.steps) for (let k = 1; k < found.length; k++) found[k] += found[k - 1];
    return found;
  }
  const records = async (text) => JSON.parse(new TextDecoder().decode(await inflated(text)));
  const columns = (names, rows) => Object.fromEntries(names.map((name, k) => [name, rows.map((row) => row[k])]));

  // A name of several words may go on in the next line behind an underscore.
  const foldable = (text) => String(text).split(/(?<=_)/).flatMap((word, k) => (k ? [element("wbr"), word] : [word]));
  const times_r = (r) => (r === null ? "-" : `${r >= 0 ? "+" : ""}${r.toFixed(2)} R`);
  function amount(value) {
    const size = Math.abs(value);
    if (size >= 1e15 || (size > 0 && size < 1e-4)) return value.toExponential(2);
    const digits = Number.isInteger(value) ? 0 : size >= 1 ? 2 : 4;
    return value.toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits});
  }

  // The first position whose value is not below.
  function position(sorted, value) {
    let low = 0, high = sorted.length;
    for (let middle; low < high;) {
      middle = (low + high) >> 1;
      if (sorted[middle] < value) low = middle + 1; else high = middle;
    }
    return low;
  }
  const colorOf = (r) => (r === null ? NEUTRAL : r > 0 ? UP : DOWN);
  const edges = (values) => [...values].reduce(([low, high], value) =>
    [value < low ? value : low, value > high ? value : high], [Infinity, -Infinity]);
  // A log axis where a box is ticked; the range is fitted anew by what draws.
  function onLog(id, made, name, draw) {
    const box = document.getElementById(id), plot = made.get_model_by_name(name);
    const of = (kind) => new (Bokeh.Models.get(kind))();
    box.addEventListener("change", () => {
      draw();
      plot.y_scale = of(box.checked ? "LogScale" : "LinearScale");
      for (const axis of plot.left) axis.ticker = of(box.checked ? "LogTicker" : "BasicTicker");
    });
    return () => box.checked;
  }

  const figure = (name) => (document.getElementById(name) === null ? null : embed(items[name], name));

  // Curves: the lowest and the highest point of every curve in each piece of what is in view.
  async function curves() {
    const closes = await numbers(data.closes), lines = {};
    for (const [name, packed] of Object.entries(data.curves)) lines[name] = await numbers(packed);
    const made = await figure("curves"), source = made.get_model_by_name("curve"), range = made.get_model_by_name("curve_x");
    const beside = {hold: made.get_model_by_name("hold_line"), exposed: made.get_model_by_name("exposed_line")};
    const log = onLog("equity_log", made, "equity", draw);
    function draw() {
      const first = Math.max(0, position(closes, range.start) - 1), end = Math.min(closes.length, position(closes, range.end) + 1);
      const step = Math.max(1, Math.ceil((2 * (end - first)) / MOST_POINTS)), rows = [];
      for (let from = first; from < end; from += step) {
        const to = Math.min(end, from + step), kept = new Set([from, to - 1]);
        for (const line of Object.values(lines)) {
          let low = from, high = from;
          for (let row = from; row < to; row++) {
            if (line[row] < line[low] || Number.isNaN(line[low])) low = row;
            if (line[row] > line[high] || Number.isNaN(line[high])) high = row;
          }
          kept.add(low).add(high);
        }
        rows.push(...[...kept].sort((a, b) => a - b));
      }
      const column = (name) => rows.map((row) => lines[name][row]);
      const fit = (name, values, log = false) => fitted(made.get_model_by_name(name), ...edges(values), log);
      fit("equity_y", ["equity", ...Object.keys(beside).filter((name) => beside[name].visible)].flatMap(column), log());
      fit("drawdown_y", [0, ...column("drawdown")]);
      fit("rolling_y", column("rolling"));
      source.data = {x: rows.map((row) => closes[row]), time: rows.map((row) => time(closes[row])),
                     ...Object.fromEntries(Object.keys(lines).map((name) => [name, column(name)]))};
    }
    const [start, end] = [closes[0], closes.length > 1 ? closes.at(-1) : closes[0] + data.bar_ms];
    range.setv({start, end, reset_start: start, reset_end: end});
    for (const line of Object.values(beside)) line.properties.visible.change.connect(draw);
    onRange(range, draw);
    draw();
  }

  // Candles of one symbol; unpacked when it is chosen.
  const unpacked = new Map();
  let labels = null;
  async function symbolAt(place) {
    if (!unpacked.has(place)) {
      const packed = data.symbols[place];
      const [rows, prices, marks] = await Promise.all([numbers(packed.rows), numbers(packed.prices), records(packed.marks)]);
      const count = rows.length, part = (k) => prices.subarray(k * count, (k + 1) * count);
      const x = Float64Array.from(rows, (row) => labels[row]);
      unpacked.set(place, {rows, x, open: part(0), high: part(1), low: part(2), close: part(3), marks});
    }
    return unpacked.get(place);
  }
  let candles = null, chosen = null, shownEntry = null;
  const notes = document.getElementById("notes");
  const FILLS = ["x", "y", "time", "told", "r", "color", "chain", "marker"];
  const DOTS = ["x", "y", "time", "status", "decision", "told", "color", "size", "chain"];
  async function read(place, start, end) {
    const found = chosen = await symbolAt(place), {bar_ms} = data;
    const first = Math.max(0, position(found.x, start) - 1), last = Math.min(found.x.length, position(found.x, end) + 1);
    const step = Math.max(1, Math.ceil((last - first) / MOST_CANDLES)), drawn = [];
    // Pieces begin at multiples of their length: they stay the same while the view moves.
    for (let from = first - (first % step); from < last; from += step) {
      const to = Math.min(found.x.length, from + step), open = found.open[from], close = found.close[to - 1];
      const [low, high] = [edges(found.low.subarray(from, to))[0], edges(found.high.subarray(from, to))[1]];
      const when = step > 1 ? `${time(found.x[from])} to ${time(found.x[to - 1])}` : time(found.x[from]);
      drawn.push([found.x[from], when, open, high, low, close, 0.7 * step * bar_ms, close >= open ? UP : DOWN]);
    }
    const inside = (x) => x >= start - bar_ms && x <= end + bar_ms;
    const levels = found.marks.levels.filter(([, from, to]) => to >= start && from <= end && to - from >= (step - 1) * bar_ms);
    const fills = found.marks.fills.filter(([x]) => inside(x));
    const [low, high] = edges([...drawn.flatMap((candle) => [candle[4], candle[3]]), ...fills.map((fill) => fill[1])]);
    let seen = found.marks.reflections.filter((mark) => (mark[4] || notes.checked) && inside(labels[mark[0]]));
    const every = Math.ceil(seen.length / MOST_DOTS), below = (high - low) * 0.025;
    seen = seen.filter((mark, k) => k % every === 0);
    return {
      candles: columns(["x", "time", "open", "high", "low", "close", "width", "color"], drawn),
      levels: columns(["x0", "x1", "y", "color"],
        levels.map(([kind, from, to, price]) => [from, to, price, kind === "stop" ? DOWN : NEUTRAL])),
      fills: columns(FILLS, fills.map(([x, price, what, direction, r, told, chain]) =>
        [x, price, time(x), told, times_r(r), colorOf(r), chain, what === "exit" ? "x" : what !== "entry" ? "diamond"
          : direction === "long" ? "triangle" : "inverted_triangle"])),
      reflections: columns(DOTS, seen.map(([row, status, decision, told, matters, chain]) =>
        [labels[row], (found.low[position(found.rows, row)] ?? low + below) - below, time(labels[row]), status, decision,
          told, STATUS[status] || OTHER, matters ? 7 : 4, chain])),
      low: candles.isLog() ? low : low - 2 * below,
      high,
    };
  }
  // The trade whose entry comes next to the middle of the view, or to the one shown last.
  function step(forward) {
    const {range} = candles, marks = chosen.marks.fills, at = shownEntry ?? (forward ? range.start : range.end);
    const entries = marks.filter((mark) => mark[2] === "entry" && (forward ? mark[0] > at : mark[0] < at));
    const entry = entries.at(forward ? 0 : -1);
    if (entry === undefined) return;
    const exit = marks.find((mark) => mark[2] === "exit" && mark[0] >= entry[0]);
    show(entry[0], exit === undefined ? chosen.x.at(-1) : exit[0]);
    explain(entry[6]);
  }
  function show(start, end) {
    const room = Math.max(30 * data.bar_ms, end - start);
    candles.show(start - room, end + room);
    shownEntry = start;
  }
  async function choose(place) {
    const {x} = await symbolAt(place), {bar_ms} = data;
    shownEntry = null;
    candles.select.value = String(place);
    if (!x.length) return;
    const last = x.at(-1) + bar_ms;
    candles.range.setv({reset_start: x[0] - bar_ms, reset_end: last});
    await candles.show(x[Math.max(0, x.length - LAST_BARS)] - bar_ms, last);
  }
  async function chart() {
    labels = await numbers(data.times);
    candles = await candleChart(items.candles, data.symbols, read);
    for (const name of ["fills", "reflections"]) tapped(candles.made, name);
    candles.isLog = onLog("price_log", candles.made, "candle_plot", candles.draw);
    onClick("previous", () => step(false));
    onClick("next", () => step(true));
    candles.select.addEventListener("change", () => {
      asked = null;
      mark();
      panel.replaceChildren(...unasked);
      choose(Number(candles.select.value));
    });
    notes.addEventListener("change", candles.draw);
    await choose(data.first);
  }

  // Why-chains.
  const panel = document.getElementById("why"), unasked = [...panel.children], tappable = [];
  let nodes = null, asked = null;
  function branch(number, depth) {
    const [title, id, place, found, facts, children] = nodes[number];
    const line = element("li"), box = element("details"), head = element("summary"), told = element("dl"), list = element("ul");
    head.append(element("strong", title), " ", element("span", [title.includes(id) ? "" : id, place].filter(Boolean).join("  "), "soft"));
    if (!found) head.append(" ", element("span", "not found in the journal", "lost"));
    for (let k = 0; k < facts.length; k += 2) told.append(element("dt", facts[k]), element("dd", facts[k + 1]));
    list.append(...children.map((child) => branch(child, depth + 1)));
    box.append(head, ...(facts.length ? [told] : []), ...(children.length ? [list] : []));
    box.open = depth < 2;
    line.append(box);
    return line;
  }
  function mark() {
    for (const line of document.querySelectorAll("#trades tbody tr")) line.ariaCurrent = line.dataset.chain === String(asked) ? "true" : null;
  }
  async function explain(chain, from) {
    asked = chain;
    mark();
    for (const source of tappable) if (source !== from) source.selected.indices = [];
    nodes = nodes || await records(data.chains);
    if (asked !== chain) return;
    const kept = chain !== null && chain !== undefined, list = element("ul");
    if (kept) list.append(branch(chain, 0));
    panel.replaceChildren(kept ? list : element("p", "The page keeps no chain of this one: the journal has it.", "soft"));
  }
  const tapped = (made, name) => { tappable.push(made.get_model_by_name(name)); onTap(made, name, explain); };

  // Trades.
  async function trades() {
    const rows = await records(data.trades), fields = data.trade_fields;
    const column = Object.fromEntries(fields.map((name, k) => [name, k])), chain = fields.length;
    const excursions = await figure("excursions");
    if (excursions !== null) {
      const told = (row) => `${row[column.symbol]} ${row[column.direction]}, ${row[column.playbook_id]}`;
      const of = (name) => rows.map((row) => row[column[name]]);
      excursions.get_model_by_name("excursions").data = {x: of("mae_r"), y: of("mfe_r"), told: rows.map(told),
        r: of("r").map(times_r), color: of("r").map(colorOf), chain: rows.map((row) => row[chain])};
      fitted(excursions.get_model_by_name("excursion_x"), ...edges(of("mae_r")));
      fitted(excursions.get_model_by_name("excursion_y"), ...edges(of("mfe_r")));
      tapped(excursions, "excursions");
    }
    const table = document.getElementById("trades");
    if (table === null) return;
    const SHOWN = {entry_label: time, exit_label: time, r: times_r, mae_r: times_r, mfe_r: times_r};
    const text = (row, k) => (SHOWN[fields[k]] || ((value) => (typeof value === "number" ? amount(value) : value ?? "")))(row[k]);
    const searched = rows.map((row) => fields.map((name, k) => text(row, k)).join(" ").toLowerCase().split(/\s+/));
    let by = null, falling = false, from = 0;
    const heads = data.trade_heads.map((name, k) => {
      const cell = element("th"), button = element("button", name);
      Object.assign(cell, {scope: "col"}).append(Object.assign(button, {type: "button"}));
      button.addEventListener("click", () => { falling = by === k && !falling; by = k; from = 0; draw(); });
      return cell;
    });
    table.tHead.append(element("tr"));
    table.tHead.rows[0].append(...heads);
    const filter = document.getElementById("filter");
    function draw() {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean), every = rows.map((row, k) => k);
      const order = every.filter((k) => words.every((word) => searched[k].some((shown) => shown.startsWith(word))));
      const value = (k) => rows[k][by], last = (k) => value(k) === null;
      if (by !== null) order.sort((a, b) => last(a) - last(b) || (value(a) === value(b) ? a - b : value(a) < value(b) === falling ? 1 : -1));
      heads.forEach((cell, k) => cell.setAttribute("aria-sort", k !== by ? "none" : falling ? "descending" : "ascending"));
      from = Math.max(0, Math.min(from, Math.floor((order.length - 1) / PAGE) * PAGE));
      const lines = order.slice(from, from + PAGE).map((k) => {
        const line = Object.assign(element("tr"), {tabIndex: 0});
        line.dataset.chain = rows[k][chain];
        line.append(...fields.map((name, at) => element("td", undefined, typeof rows[k][at] === "number" ? "number" : "")));
        fields.forEach((name, at) => line.cells[at].append(...foldable(text(rows[k], at))));
        const open = async () => {
          explain(rows[k][chain]);
          document.getElementById("chart").scrollIntoView();
          await choose(data.symbols.findIndex((one) => one.name === rows[k][column.symbol]));
          show(rows[k][column.entry_label], rows[k][column.exit_label]);
        };
        line.addEventListener("click", open);
        line.addEventListener("keydown", (event) => { if (event.key === "Enter") open(); });
        return line;
      });
      table.tBodies[0].replaceChildren(...lines);
      mark();
      document.getElementById("found").textContent = order.length ? `${from + 1} to ${from + lines.length} of ${order.length}` : "none";
    }
    filter.addEventListener("input", () => { from = 0; draw(); });
    onClick("earlier", () => { from -= PAGE; draw(); });
    onClick("later", () => { from += PAGE; draw(); });
    draw();
  }

  onClick("theme", () => {
    const root = document.documentElement, dark = getComputedStyle(root).colorScheme === "dark"
      || (root.dataset.theme === undefined && matchMedia("(prefers-color-scheme: dark)").matches);
    root.dataset.theme = dark ? "light" : "dark";
    embedded.forEach(dress);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => embedded.forEach(dress));

  async function all() {
    for (const draw of [chart, curves, trades]) await draw();
    for (const name of ["years", "spread", "outcomes"]) await figure(name);
    document.documentElement.dataset.drawn = "true";
  }
  all().catch((error) => {
    document.body.prepend(element("p", `This page cannot be drawn: ${error.message}`, "warn"));
    throw error;
  });
})();
