"use strict";
// The candles of a run: the server sends what is in view, so that a long run opens and moves at once.
(async () => {
  const place = document.getElementById("chart");
  if (!place) return;
  const base = `/api/runs/${place.dataset.run}`, state = document.getElementById("chart-state");
  const json = async (url) => {
    const response = await fetch(url), found = await response.json();
    if (!response.ok) throw new Error(found.error);
    return found;
  };
  let head;
  try { head = await json(`${base}/chart`); } catch (error) { state.textContent = error.message; return; }
  const select = document.getElementById("symbol");
  head.symbols.forEach((symbol, k) => {
    const option = document.createElement("option");
    option.value = String(k);
    option.textContent = symbol.fills ? `${symbol.name} (${symbol.fills} fills)` : symbol.name;
    select.append(option);
  });
  await Bokeh.embed.embed_item({...head.figure, target_id: "candles"}, "candles");
  const made = Bokeh.documents[Bokeh.documents.length - 1];
  const range = made.get_model_by_name("candle_x"), prices = made.get_model_by_name("candle_y");
  const style = getComputedStyle(document.documentElement);
  for (const root of made.roots()) {
    const ink = style.getPropertyValue("--ink").trim(), rule = style.getPropertyValue("--rule").trim();
    root.setv({background_fill_alpha: 0, border_fill_alpha: 0});
    for (const axis of [...root.below, ...root.left]) axis.setv({axis_label_text_color: ink, major_label_text_color: ink, axis_line_color: rule});
    for (const part of root.center) if ("grid_line_color" in part.attributes) part.grid_line_color = rule;
  }
  let asked = 0, waiting = null, chains = [];
  async function draw() {
    const mine = ++asked, room = range.end - range.start;
    try {
      const found = await json(`${base}/window?symbol=${select.value}&start=${range.start - room / 4}&end=${range.end + room / 4}`);
      if (mine !== asked) return;
      for (const name of ["fills", "reflections"]) made.get_model_by_name(name).selected.indices = [];
      for (const name of ["candles", "levels", "fills", "reflections", "states"]) made.get_model_by_name(name).data = found[name];
      chains = found.fills.chain;
      const space = (found.high - found.low) * 0.06 || 1;
      prices.setv({start: found.low - 2 * space, end: found.high + space});
      state.textContent = found.bars_in_a_candle > 1 ? `${found.bars_in_a_candle} bars in a candle` : `${head.bars.toLocaleString("en")} bars`;
      place.dataset.drawn = String(found.candles.x.length);
    } catch (error) { state.textContent = error.message; }
  }
  const soon = () => { clearTimeout(waiting); waiting = setTimeout(draw, 60); };
  function show(start, end) { range.setv({start, end}); soon(); }
  range.properties.start.change.connect(soon);
  range.properties.end.change.connect(soon);
  select.addEventListener("change", draw);
  const move = (id, change) => document.getElementById(id).addEventListener("click", () => {
    const room = range.end - range.start;
    show(...change(range.start, range.end, room));
  });
  move("back", (start, end, room) => [start - room / 2, end - room / 2]);
  move("on", (start, end, room) => [start + room / 2, end + room / 2]);
  move("wider", (start, end, room) => [start - room / 2, end + room / 2]);
  move("closer", (start, end, room) => [start + room / 4, end - room / 4]);
  move("whole", () => [head.from, head.end]);
  made.get_model_by_name("fills").selected.properties.indices.change.connect(() => {
    const [k] = made.get_model_by_name("fills").selected.indices;
    const line = document.getElementById("tapped");
    line.replaceChildren();
    if (k === undefined || !chains[k]) return;
    const link = document.createElement("a");
    link.href = `/runs/${place.dataset.run}/why/${chains[k]}`;
    link.textContent = `Why: ${made.get_model_by_name("fills").data.told[k]}`;
    line.append(link);
  });
  // Bar by bar through what was decided.
  const decision = document.getElementById("decision"), signs = JSON.parse(decision.dataset.signs);
  let at = head.end + 1;
  function word(text) {
    const made = document.createElement("span"), sign = document.createElement("span");
    made.className = `outcome ${text.replaceAll(" ", "_")}`;
    sign.setAttribute("aria-hidden", "true");
    sign.textContent = signs[text] || "•";
    made.append(sign, ` ${text.replaceAll("_", " ")}`);
    return made;
  }
  async function step(way) {
    try {
      const found = await json(`${base}/decision?symbol=${select.value}&at=${at}&move=${way}&skips=${document.getElementById("skips").checked}`);
      if (found.at === null) { decision.textContent = `no ${way} decision`; return; }
      at = found.at;
      const head = document.createElement("p"), list = document.createElement("ul");
      head.append(`${found.time}, `, word(found.state));
      for (const entry of found.entries) {
        const line = document.createElement("li"), link = document.createElement("a");
        link.href = `${base}/journal?after=${entry.seq - 1}&limit=1`;
        link.textContent = `row ${entry.seq}`;
        line.append(`${entry.kind.replaceAll("_", " ")} `, word(entry.word), ` ${entry.text} `, link);
        list.append(line);
      }
      decision.replaceChildren(head, list);
      if (at < range.start || at > range.end) { const room = range.end - range.start; show(at - room / 2, at + room / 2); }
    } catch (error) { decision.textContent = error.message; }
  }
  for (const way of ["previous", "next"]) document.getElementById(way).addEventListener("click", () => step(way));
  select.addEventListener("change", () => { at = range.end; decision.replaceChildren(); });
  show(head.start, head.end);
  if (place.dataset.live) setInterval(async () => {
    const atEnd = range.end >= head.end;
    try { head = await json(`${base}/chart`); } catch { return; }
    if (atEnd) { const room = range.end - range.start; show(head.end - room, head.end); }
  }, 5000);
})();
