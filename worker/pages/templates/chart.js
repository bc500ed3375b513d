"use strict";
// What the page of a run and the console draw alike: texts, figures in the colours of the page, candles in view.
const UP = "#009e73", DOWN = "#d55e00", NEUTRAL = "#0072b2";

// Everything foreign goes through textContent, with what nobody sees written out.
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/gu;
const visible = (text) => String(text).replace(UNSEEN, (sign) => sign === "\n" ? sign : `\\u${sign.codePointAt(0).toString(16).padStart(4, "0")}`);
function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = visible(text);
  if (kind) made.className = kind;
  return made;
}
function time(ms) {
  const text = new Date(ms).toISOString();
  return text.endsWith("T00:00:00.000Z") ? text.slice(0, 10) : `${text.slice(0, 10)} ${text.slice(11, 19)}Z`;
}
const linked = (text, href) => Object.assign(element("a", text), {href});
const rowOf = (run, seq) => linked(`row ${seq}`, `/runs/${run}/journal?after=${seq - 1}&limit=1`);
const onClick = (id, act) => document.getElementById(id).addEventListener("click", act);

const embedded = [], coarse = matchMedia("(pointer: coarse)").matches;
const figuresIn = (root) => [root, ...(root.children || [])].filter((one) => one.renderers !== undefined);
async function embed(item, name) {
  await Bokeh.embed.embed_item({...item, target_id: name}, name);
  embedded.push(Bokeh.documents.at(-1));
  dress(embedded.at(-1));
  return embedded.at(-1);
}
function dress(made) {
  const style = getComputedStyle(document.documentElement), [ink, rule] = ["--ink", "--rule"].map((name) => style.getPropertyValue(name).trim());
  for (const root of made.roots()) for (const plot of root.children === undefined ? [root] : figuresIn(root)) {
    for (const axis of [...plot.below, ...plot.left].filter((one) => "axis_label" in one.attributes)) {
      axis.setv({axis_label_text_color: ink, major_label_text_color: ink, axis_line_color: rule,
                 major_tick_line_color: rule, minor_tick_line_color: null});
    }
    if (innerWidth < 600) for (const {ticker} of plot.below) if (ticker) ticker.desired_num_ticks = 3;
    for (const part of plot.center) {
      if ("grid_line_color" in part.attributes) part.grid_line_color = rule;
      if ("label_text_color" in part.attributes) part.setv({label_text_color: ink, background_fill_alpha: 0, border_line_alpha: 0});
    }
    if (coarse) for (const tool of plot.toolbar.tools) if (/Pan/.test(tool.type)) tool.active = false;
  }
}
function fitted(range, low, high, log = false) {
  if (!range || !Number.isFinite(low) || !Number.isFinite(high)) return;
  const room = (high - low) * 0.06 || Math.abs(high) * 0.06 || 1;
  const [start, end] = log && low > 0 ? [low / (high / low) ** 0.06, high * (high / low) ** 0.06] : [low - room, high + room];
  range.setv({start, end, reset_start: start, reset_end: end});
}
// Draws once for all changes of a range until the browser paints, or until `wait` has passed.
function onRange(range, draw, wait = requestAnimationFrame) {
  let asked = false;
  const ask = () => {
    if (!asked) wait(() => { asked = false; draw(); });
    asked = true;
  };
  for (const edge of ["start", "end"]) range.properties[edge].change.connect(ask);
}
function onTap(made, name, act) {
  const source = made.get_model_by_name(name);
  source.selected.properties.indices.change.connect(() => {
    const [place] = source.selected.indices;
    if (place !== undefined) act(source.data.chain[place], source, source.data.told[place]);
  });
}

// Candles of the symbol that is chosen: `read(symbol, start, end)` gives the columns of what is in view.
async function candleChart(item, symbols, read, wait) {
  const select = document.getElementById("symbol");
  const named = ({name, fills}) => element("option", fills ? `${name} (${fills} fills)` : name);
  select.append(...symbols.map((symbol, k) => Object.assign(named(symbol), {value: String(k)})));
  const made = await embed(item, "candles"), range = made.get_model_by_name("candle_x");
  const chart = {made, range, select, draw, show, isLog: () => false, drawn: () => {}};
  let asked = 0;
  async function draw() {
    const mine = ++asked, {low, high, ...columns} = await read(Number(select.value), range.start, range.end);
    if (mine !== asked) return;
    // A selected place means nothing in other data.
    for (const name of ["fills", "reflections"]) made.get_model_by_name(name).selected.indices = [];
    for (const [name, data] of Object.entries(columns)) made.get_model_by_name(name).data = data;
    fitted(made.get_model_by_name("candle_y"), low, high, chart.isLog());
    if (columns.candles) chart.drawn(columns.candles.x.length);
  }
  function show(start, end) {
    range.setv({start, end});
    return draw();
  }
  onRange(range, draw, wait);
  return chart;
}
