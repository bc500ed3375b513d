"use strict";
// A run in the console: the server sends what is in view, so that a long run opens and moves at once.
(async () => {
  const place = document.getElementById("chart");
  if (!place) return;
  const base = `/api/runs/${place.dataset.run}`, state = document.getElementById("chart-state");
  async function json(path) {
    const response = await fetch(base + path), found = await response.json();
    if (!response.ok) throw new Error(found.error);
    return found;
  }
  async function read(symbol, start, end) {
    const room = (end - start) / 4;
    const {bars_in_a_candle: bars, until, ...found} = await json(`/window?symbol=${symbol}&start=${start - room}&end=${end + room}`);
    const size = bars > 1 ? `${bars.toLocaleString("en")} bars in a candle` : `${head.bars.toLocaleString("en")} bars`;
    state.textContent = until === null ? size : `${size}; too many marks: those after ${time(until)} are shown closer`;
    return found;
  }
  let head, chart;
  const failed = (error) => { state.textContent = error.message; };
  try {
    head = await json("/chart");
    const quiet = (symbol, start, end) => read(symbol, start, end).catch((error) => { failed(error); return {}; });
    chart = await candleChart(head.figure, head.symbols, quiet, (draw) => setTimeout(draw, 60));
    chart.drawn = (count) => { place.dataset.drawn = String(count); };  // of a reply that came too late none is
    await chart.show(head.start, head.end);
  } catch (error) { failed(error); return; }
  const {range, select} = chart;
  for (const [id, before, after] of [["back", -0.5, -0.5], ["on", 0.5, 0.5], ["wider", -0.5, 0.5], ["closer", 0.25, -0.25]]) {
    onClick(id, () => {
      const room = range.end - range.start, start = range.start + before * room, end = range.end + after * room;
      if (start < head.end && end > head.from) chart.show(start, end);  // else no candle would be in view
    });
  }
  onClick("whole", () => chart.show(head.from, head.end));
  onTap(chart.made, "fills", (chain, source, told) => {
    document.getElementById("tapped").replaceChildren(linked(`Why: ${told}`, `/runs/${place.dataset.run}/why/${chain}`));
  });
  // Bar by bar through what was decided.
  const decision = document.getElementById("decision"), signs = JSON.parse(decision.dataset.signs);
  let at = head.end + 1;
  function word(text) {
    const made = element("span", undefined, `outcome ${text.replaceAll(" ", "_")}`);
    made.append(Object.assign(element("span", signs[text] || "•"), {ariaHidden: "true"}), ` ${text.replaceAll("_", " ")}`);
    return made;
  }
  async function step(way) {
    try {
      const found = await json(`/decision?symbol=${select.value}&at=${at}&move=${way}&skips=${document.getElementById("skips").checked}`);
      if (found.at === null) { decision.textContent = `no ${way} decision`; return; }
      at = found.at;
      const first = element("p", `${found.time}, `), list = element("ul");
      first.append(word(found.state));
      for (const entry of found.entries) {
        const line = element("li", `${entry.kind.replaceAll("_", " ")} `);
        line.append(word(entry.word), ` ${entry.text} `, rowOf(place.dataset.run, entry.seq));
        list.append(line);
      }
      decision.replaceChildren(first, list);
      if (at < range.start || at > range.end) { const room = range.end - range.start; chart.show(at - room / 2, at + room / 2); }
    } catch (error) { decision.textContent = error.message; }
  }
  for (const way of ["previous", "next"]) onClick(way, () => step(way));
  select.addEventListener("change", () => { at = range.end; decision.replaceChildren(); chart.draw(); });
  if (place.dataset.live) setInterval(async () => {
    const atEnd = range.end >= head.end;
    try { head = await json("/chart"); } catch { return; }
    if (atEnd) chart.show(head.end - (range.end - range.start), head.end);
  }, 5000);
})();
