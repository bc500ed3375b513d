"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const items = JSON.parse(document.getElementById("figures").textContent);
  const UP = "#009e73", DOWN = "#d55e00", NEUTRAL = "#0072b2", OTHER = "#8a929c";
  const STATUS = {pass: UP, revise: "#c79200", block: DOWN, error: "#b4568a"};
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

  // Texts: everything foreign goes through textContent.
  function element(name, text, kind) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  }
  // A name of several words may go on in the next line behind an underscore.
  function foldable(cell) {
    const words = cell.textContent.split(/(?<=_)/);
    cell.replaceChildren(...words.flatMap((word, k) => (k ? [element("wbr"), word] : [word])));
    return cell;
  }
  function time(ms) {
    const moment = new Date(ms);
    if (Number.isNaN(moment.getTime())) return "";
    const text = moment.toISOString();
    return text.endsWith("T00:00:00.000Z") ? text.slice(0, 10) : `${text.slice(0, 10)} ${text.slice(11, 19)}Z`;
  }
  const times_r = (r) => (r === null ? "-" : `${r >= 0 ? "+" : ""}${r.toFixed(2)} R`);
  function amount(value) {
    if (value === null) return "-";
    const size = Math.abs(value);
    if (size >= 1e15 || (size > 0 && size < 1e-4)) return value.toExponential(2);
    if (Number.isInteger(value)) return value.toLocaleString("en");
    const digits = size >= 1 ? 2 : 4;
    return value.toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits});
  }

  // The first position whose value is not below.
  function position(sorted, value) {
    let low = 0, high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] < value) low = middle + 1; else high = middle;
    }
    return low;
  }
  const colorOf = (r) => (r === null ? NEUTRAL : r > 0 ? UP : DOWN);
  function onRange(range, draw) {
    let asked = false;
    const ask = () => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => { asked = false; draw(); });
    };
    range.properties.start.change.connect(ask);
    range.properties.end.change.connect(ask);
    draw();
  }
  function edges(values) {
    let low = Infinity, high = -Infinity;
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return [low, high];
  }
  function fitted(range, low, high, log = false) {
    if (!Number.isFinite(low) || !Number.isFinite(high)) return;
    const room = (high - low) * 0.06 || Math.abs(high) * 0.06 || 1;
    let start = low - room, end = high + room;
    if (log && low > 0) [start, end] = [low / (high / low) ** 0.06, high * (high / low) ** 0.06];
    range.setv({start, end, reset_start: start, reset_end: end});
  }
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

  const shown = [];
  const figuresIn = (root) => [root, ...(root.children || [])].filter((one) => one.renderers !== undefined);
  async function embed(name) {
    const place = document.getElementById(name);
    if (place === null) return null;
    await Bokeh.embed.embed_item({...items[name], target_id: name}, name);
    const made = Bokeh.documents[Bokeh.documents.length - 1];
    shown.push(made);
    dress(made);
    return made;
  }
  const coarse = matchMedia("(pointer: coarse)").matches;
  function dress(made) {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink").trim(), rule = style.getPropertyValue("--rule").trim();
    for (const root of made.roots()) for (const plot of root.children === undefined ? [root] : figuresIn(root)) {
      for (const axis of [...plot.below, ...plot.left].filter((one) => "axis_label" in one.attributes)) {
        axis.setv({axis_label_text_color: ink, major_label_text_color: ink, axis_line_color: rule,
                   major_tick_line_color: rule, minor_tick_line_color: null});
      }
      for (const part of plot.center) {
        if ("grid_line_color" in part.attributes) part.grid_line_color = rule;
        if ("label_text_color" in part.attributes) {
          part.setv({label_text_color: ink, background_fill_alpha: 0, border_line_alpha: 0});
        }
      }
      if (coarse) for (const tool of plot.toolbar.tools) if (/Pan/.test(tool.type)) tool.active = false;
    }
  }

  // Curves: the lowest and the highest point of every curve in each piece of what is in view.
  async function curves() {
    const closes = await numbers(data.closes);
    const lines = {};
    for (const [name, packed] of Object.entries(data.curves)) lines[name] = await numbers(packed);
    const {equity, hold} = lines;
    lines.exposed = new Float64Array(hold.length);
    lines.drawdown = new Float64Array(equity.length);
    for (let k = 0, before = data.cash, peak = -Infinity; k < equity.length; k++) {
      const worth = k ? lines.exposed[k - 1] : data.cash;
      lines.exposed[k] = worth * (1 + data.exposure * (hold[k] / before - 1));
      before = hold[k];
      peak = Math.max(peak, equity[k]);
      lines.drawdown[k] = -Math.min((peak - equity[k]) / peak, 1);
    }
    const made = await embed("curves"), source = made.get_model_by_name("curve");
    const range = made.get_model_by_name("curve_x");
    const beside = {hold: made.get_model_by_name("hold_line"), exposed: made.get_model_by_name("exposed_line")};
    const of = (name, row) => (lines[name] && row < lines[name].length ? lines[name][row] : NaN);
    const log = onLog("equity_log", made, "equity", draw);
    function draw() {
      const first = Math.max(0, position(closes, range.start) - 1);
      const end = Math.min(closes.length, position(closes, range.end) + 1);
      const step = Math.max(1, Math.ceil((2 * (end - first)) / MOST_POINTS));
      const rows = [];
      for (let from = first; from < end; from += step) {
        const to = Math.min(end, from + step);
        const kept = new Set([from, to - 1]);
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
      const column = (name) => rows.map((row) => of(name, row));
      const fit = (name, values, log = false) => {
        const [low, high] = edges(values), range = made.get_model_by_name(name);
        if (range) fitted(range, low, high, log);
      };
      const seen = ["equity", ...Object.keys(beside).filter((name) => beside[name].visible)];
      fit("equity_y", seen.flatMap(column), log());
      fit("drawdown_y", [0, ...column("drawdown")]);
      fit("rolling_y", column("rolling"));
      source.data = {x: rows.map((row) => closes[row]), time: rows.map((row) => time(closes[row])),
                     ...Object.fromEntries(Object.keys(lines).map((name) => [name, column(name)]))};
    }
    range.start = closes[0];
    range.end = closes.length > 1 ? closes[closes.length - 1] : closes[0] + data.bar_ms;
    range.reset_start = range.start; range.reset_end = range.end;
    for (const line of Object.values(beside)) line.properties.visible.change.connect(draw);
    onRange(range, draw);
  }

  // Candles of one symbol; unpacked when it is chosen.
  const unpacked = new Map();
  let labels = null;
  async function symbolAt(place) {
    if (!unpacked.has(place)) {
      const packed = data.symbols[place];
      const [rows, prices, marks] = await Promise.all(
        [numbers(packed.rows), numbers(packed.prices), records(packed.marks)]);
      const count = rows.length, part = (k) => prices.subarray(k * count, (k + 1) * count);
      const x = Float64Array.from(rows, (row) => labels[row]);
      unpacked.set(place, {rows, x, open: part(0), high: part(1), low: part(2), close: part(3), marks});
    }
    return unpacked.get(place);
  }
  let candles = null, chosen = null;
  const select = document.getElementById("symbol"), notes = document.getElementById("notes");
  function drawCandles() {
    if (chosen === null) return;
    const range = candles.get_model_by_name("candle_x"), found = chosen;
    const first = Math.max(0, position(found.x, range.start) - 1);
    const end = Math.min(found.x.length, position(found.x, range.end) + 1);
    const step = Math.max(1, Math.ceil((end - first) / MOST_CANDLES));
    const columns = {x: [], time: [], open: [], high: [], low: [], close: [], width: [], color: []};
    let lowest = Infinity, highest = -Infinity;
    // Pieces begin at multiples of their length: they stay the same while the view moves.
    for (let from = first - (first % step); from < end; from += step) {
      const to = Math.min(found.x.length, from + step);
      let low = Infinity, high = -Infinity;
      for (let k = from; k < to; k++) {
        if (found.low[k] < low) low = found.low[k];
        if (found.high[k] > high) high = found.high[k];
      }
      const open = found.open[from], close = found.close[to - 1];
      columns.x.push(found.x[from]);
      columns.time.push(step > 1 ? `${time(found.x[from])} to ${time(found.x[to - 1])}` : time(found.x[from]));
      columns.open.push(open); columns.high.push(high); columns.low.push(low); columns.close.push(close);
      columns.width.push(0.7 * step * data.bar_ms);
      columns.color.push(close >= open ? UP : DOWN);
      if (low < lowest) lowest = low;
      if (high > highest) highest = high;
    }
    const inside = (x) => x >= range.start - data.bar_ms && x <= range.end + data.bar_ms;
    const levels = {x0: [], x1: [], y: [], color: []};
    for (const [kind, from, to, price] of found.marks.levels) {
      if (to < range.start || from > range.end || to - from < (step - 1) * data.bar_ms) continue;
      levels.x0.push(from); levels.x1.push(to); levels.y.push(price);
      levels.color.push(kind === "stop" ? DOWN : NEUTRAL);
    }
    const fills = {x: [], y: [], time: [], told: [], r: [], marker: [], color: [], chain: []};
    for (const [x, price, what, direction, r, told, chain] of found.marks.fills) {
      if (!inside(x)) continue;
      fills.x.push(x); fills.y.push(price); fills.time.push(time(x)); fills.told.push(told);
      fills.r.push(times_r(r)); fills.color.push(colorOf(r)); fills.chain.push(chain);
      fills.marker.push(what === "exit" ? "x" : what !== "entry" ? "diamond"
        : direction === "long" ? "triangle" : "inverted_triangle");
      if (price < lowest) lowest = price;
      if (price > highest) highest = price;
    }
    const dots = {x: [], y: [], time: [], status: [], decision: [], told: [], color: [], size: [], chain: []};
    const below = (highest - lowest) * 0.025;
    let seen = found.marks.reflections.filter((mark) => (mark[4] || notes.checked) && inside(labels[mark[0]]));
    if (seen.length > MOST_DOTS) {
      const every = Math.ceil(seen.length / MOST_DOTS);
      seen = seen.filter((mark, k) => k % every === 0);
    }
    for (const [row, status, decision, told, matters, chain] of seen) {
      const k = position(found.rows, row);
      dots.x.push(labels[row]); dots.y.push(k < found.low.length ? found.low[k] - below : lowest);
      dots.time.push(time(labels[row])); dots.status.push(status); dots.decision.push(decision);
      dots.told.push(told); dots.color.push(STATUS[status] || OTHER); dots.size.push(matters ? 7 : 4);
      dots.chain.push(chain);
    }
    // A selected place means nothing in other data.
    for (const name of ["fills", "reflections"]) candles.get_model_by_name(name).selected.indices = [];
    candles.get_model_by_name("candles").data = columns;
    candles.get_model_by_name("levels").data = levels;
    candles.get_model_by_name("fills").data = fills;
    candles.get_model_by_name("reflections").data = dots;
    fitted(candles.get_model_by_name("candle_y"), onPriceLog() ? lowest : lowest - 2 * below, highest, onPriceLog());
  }
  // The trade whose entry comes next to the middle of the view, or to the one shown last.
  let shownEntry = null, onPriceLog = () => false;
  function step(forward) {
    const range = candles.get_model_by_name("candle_x"), marks = chosen.marks.fills;
    const at = shownEntry ?? (forward ? range.start : range.end);
    const entries = marks.filter((mark) => mark[2] === "entry" && (forward ? mark[0] > at : mark[0] < at));
    const entry = entries[forward ? 0 : entries.length - 1];
    if (entry === undefined) return;
    const exit = marks.find((mark) => mark[2] === "exit" && mark[0] >= entry[0]);
    show(entry[0], exit === undefined ? chosen.x[chosen.x.length - 1] : exit[0]);
    shownEntry = entry[0];
    explain(entry[6]);
  }
  function show(start, end) {
    const room = Math.max(30 * data.bar_ms, end - start);
    candles.get_model_by_name("candle_x").setv({start: start - room, end: end + room});
    drawCandles();
  }
  async function choose(place) {
    chosen = await symbolAt(place);
    shownEntry = null;
    select.value = String(place);
    const range = candles.get_model_by_name("candle_x"), x = chosen.x;
    if (!x.length) return;
    const last = Math.max(x[x.length - 1] + data.bar_ms, x[0] + data.bar_ms);
    range.reset_start = x[0] - data.bar_ms; range.reset_end = last;
    range.setv({start: x[Math.max(0, x.length - LAST_BARS)] - data.bar_ms, end: last});
    drawCandles();
  }
  async function chart() {
    labels = await numbers(data.times);
    for (const [place, symbol] of data.symbols.entries()) {
      const option = element("option", symbol.fills ? `${symbol.name} (${symbol.fills} fills)` : symbol.name);
      option.value = String(place);
      select.append(option);
    }
    candles = await embed("candles");
    tapped(candles, "fills");
    tapped(candles, "reflections");
    onPriceLog = onLog("price_log", candles, "candle_plot", drawCandles);
    document.getElementById("previous").addEventListener("click", () => step(false));
    document.getElementById("next").addEventListener("click", () => step(true));
    onRange(candles.get_model_by_name("candle_x"), drawCandles);
    select.addEventListener("change", () => {
      asked = null;
      mark();
      panel.replaceChildren(...unasked);
      choose(Number(select.value));
    });
    notes.addEventListener("change", drawCandles);
    await choose(data.first);
  }

  // Why-chains.
  const panel = document.getElementById("why"), unasked = [...panel.children], tappable = [];
  let nodes = null, asked = null;
  function branch(number, depth) {
    const [title, id, place, found, facts, children] = nodes[number];
    const line = element("li"), box = element("details"), head = element("summary");
    const beside = [title.includes(id) ? "" : id, place].filter(Boolean).join("  ");
    head.append(element("strong", title), " ", element("span", beside, "soft"));
    if (!found) head.append(" ", element("span", "not found in the journal", "lost"));
    box.append(head);
    box.open = depth < 2;
    const told = element("dl");
    for (let k = 0; k < facts.length; k += 2) told.append(element("dt", facts[k]), element("dd", facts[k + 1]));
    if (facts.length) box.append(told);
    if (children.length) {
      const list = element("ul");
      for (const child of children) list.append(branch(child, depth + 1));
      box.append(list);
    }
    line.append(box);
    return line;
  }
  function mark() {
    for (const line of document.querySelectorAll("#trades tbody tr")) {
      line.ariaCurrent = asked !== null && line.dataset.chain === String(asked) ? "true" : null;
    }
  }
  async function explain(chain, from) {
    asked = chain;
    mark();
    for (const source of tappable) if (source !== from) source.selected.indices = [];
    if (chain === null || chain === undefined) {
      panel.replaceChildren(element("p", "The page keeps no chain of this one: the journal has it.", "soft"));
      return;
    }
    nodes = nodes || await records(data.chains);
    if (asked !== chain) return;
    const list = element("ul");
    list.append(branch(chain, 0));
    panel.replaceChildren(list);
  }
  function tapped(made, name) {
    const source = made.get_model_by_name(name);
    tappable.push(source);
    source.selected.properties.indices.change.connect(() => {
      const [place] = source.selected.indices;
      if (place !== undefined) explain(source.data.chain[place], source);
    });
  }

  // Trades.
  async function trades() {
    const rows = await records(data.trades), fields = data.trade_fields;
    const column = Object.fromEntries(fields.map((name, k) => [name, k])), chain = fields.length;
    const excursions = await embed("excursions");
    if (excursions !== null) {
      const told = (row) => `${row[column.symbol]} ${row[column.direction]}, ${row[column.playbook_id]}`;
      const of = (name) => rows.map((row) => row[column[name]]);
      excursions.get_model_by_name("excursions").data = {
        x: of("mae_r"), y: of("mfe_r"), told: rows.map(told), r: of("r").map(times_r),
        color: of("r").map(colorOf), chain: rows.map((row) => row[chain])};
      fitted(excursions.get_model_by_name("excursion_x"), ...edges(of("mae_r")));
      fitted(excursions.get_model_by_name("excursion_y"), ...edges(of("mfe_r")));
      tapped(excursions, "excursions");
    }
    const table = document.getElementById("trades");
    if (table === null) return;
    const HEADS = {playbook_id: "playbook", playbook_version: "version", entry_label: "entered", exit_label: "left",
                   entry_price: "entry", exit_price: "exit", r: "R", pnl: "P&L", mae_r: "MAE", mfe_r: "MFE",
                   hold_bars: "bars", exit_reason: "reason"};
    const SHOWN = {entry_label: time, exit_label: time, r: times_r, mae_r: times_r, mfe_r: times_r};
    const text = (row, k) => {
      const value = row[k];
      if (SHOWN[fields[k]]) return SHOWN[fields[k]](value);
      return typeof value === "number" ? amount(value) : value === null ? "" : value;
    };
    const searched = rows.map((row) => fields.map((name, k) => text(row, k)).join(" ").toLowerCase().split(/\s+/));
    let order = rows.map((row, k) => k), by = null, falling = false, from = 0;
    const head = element("tr");
    fields.forEach((name, k) => {
      const cell = element("th"), button = element("button", HEADS[name] || name.replaceAll("_", " "));
      button.type = "button";
      cell.scope = "col";
      cell.append(button);
      button.addEventListener("click", () => { falling = by === k && !falling; by = k; from = 0; draw(); });
      head.append(cell);
    });
    table.tHead.append(head);
    const filter = document.getElementById("filter");
    function draw() {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      const has = (k, word) => searched[k].some((said) => said.startsWith(word));
      order = rows.map((row, k) => k).filter((k) => words.every((word) => has(k, word)));
      if (by !== null) {
        const sign = falling ? -1 : 1;
        order.sort((a, b) => {
          const left = rows[a][by], right = rows[b][by];
          if (left === right) return a - b;
          if (left === null || right === null) return left === null ? 1 : -1;
          return left < right ? -sign : sign;
        });
      }
      [...head.cells].forEach((cell, k) => {
        cell.setAttribute("aria-sort", k !== by ? "none" : falling ? "descending" : "ascending");
      });
      from = Math.max(0, Math.min(from, Math.floor((order.length - 1) / PAGE) * PAGE));
      const lines = order.slice(from, from + PAGE).map((k) => {
        const line = element("tr");
        line.tabIndex = 0;
        line.dataset.chain = rows[k][chain];
        fields.forEach((name, at) => {
          const kind = typeof rows[k][at] === "number" ? "number" : "";
          line.append(foldable(element("td", text(rows[k], at), kind)));
        });
        const open = () => {
          explain(rows[k][chain]);
          document.getElementById("chart").scrollIntoView();
          const entered = rows[k][column.entry_label], left = rows[k][column.exit_label];
          choose(data.symbols.findIndex((one) => one.name === rows[k][column.symbol])).then(() => {
            show(entered, left);
            shownEntry = entered;
          });
        };
        line.addEventListener("click", open);
        line.addEventListener("keydown", (event) => { if (event.key === "Enter") open(); });
        return line;
      });
      table.tBodies[0].replaceChildren(...lines);
      mark();
      const last = Math.min(order.length, from + PAGE);
      document.getElementById("found").textContent =
        order.length ? `${from + 1} to ${last} of ${order.length}` : "none";
    }
    filter.addEventListener("input", () => { from = 0; draw(); });
    document.getElementById("earlier").addEventListener("click", () => { from -= PAGE; draw(); });
    document.getElementById("later").addEventListener("click", () => { from += PAGE; draw(); });
    draw();
  }

  document.getElementById("theme").addEventListener("click", () => {
    const root = document.documentElement, dark = getComputedStyle(root).colorScheme === "dark"
      || (root.dataset.theme === undefined && matchMedia("(prefers-color-scheme: dark)").matches);
    root.dataset.theme = dark ? "light" : "dark";
    shown.forEach(dress);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown.forEach(dress));

  async function all() {
    await chart();
    await curves();
    await trades();
    for (const name of ["years", "spread", "outcomes"]) await embed(name);
    document.documentElement.dataset.drawn = "true";
  }
  all().catch((error) => {
    document.body.prepend(element("p", `This page cannot be drawn: ${error.message}`, "warn"));
    throw error;
  });
})();
