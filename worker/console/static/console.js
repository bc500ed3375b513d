"use strict";
(() => {
  const token = document.body.dataset.token || "";
  const notice = document.getElementById("notice");
  const say = (text) => { notice.textContent = text; };

  async function post(url, body, method = "POST", form = "json") {
    const headers = {"content-type": "application/json", "x-csrf-token": token};
    const response = await fetch(url, {method, headers, body: body === undefined ? undefined : JSON.stringify(body)});
    if (!response.ok) throw new Error((await response.json().catch(() => ({}))).error || `${response.status}`);
    return response[form]().catch(() => ({}));
  }

  // A button that decides asks once more; what was refused is said, and the page stays.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-post]");
    if (!button || (button.dataset.sure && !window.confirm(button.dataset.sure))) return;
    button.disabled = true;
    try {
      await post(button.dataset.post, button.dataset.body ? JSON.parse(button.dataset.body) : undefined, button.dataset.method);
      window.location.assign(button.dataset.next || window.location.href);
    } catch (error) { say(error.message); button.disabled = false; }
  });

  const onSubmit = (form, send, failed = (error) => say(error.message)) => form?.addEventListener("submit", async (event) => {
    event.preventDefault();
    try { await send(); } catch (error) { failed(error); }
  });
  const edit = document.getElementById("edit");
  onSubmit(edit, async () => {
    const changed = [...edit.querySelectorAll("input[data-before]")].filter((input) => input.value !== input.dataset.before);
    const drop = [...edit.querySelectorAll("input[name=drop]:checked")].map((input) => Number(input.value));
    await post(edit.dataset.post, {hash: edit.dataset.hash, set: changed.map((input) => `${input.name}=${input.value}`), drop});
    window.location.reload();
  });

  // Forms that start a backtest or ask: empty fields are left out.
  function values(form) {
    const found = {};
    for (const field of form.elements) {
      if (!field.name || field.value === "") continue;
      const kind = field.dataset.type || field.type;
      found[field.name] = "list" in field.dataset ? field.value.split(",").map((word) => word.trim()).filter(Boolean) :
        ["number", "integer"].includes(kind) ? Number(field.value) : kind === "boolean" ? field.value === "true" : field.value;
    }
    return found;
  }
  const started = document.getElementById("backtest");
  onSubmit(started, () => post(started.dataset.json, values(started)).then(() => window.location.reload()));
  const answer = document.getElementById("answer");
  for (const form of document.querySelectorAll("form[data-ask]")) {
    onSubmit(form, async () => {
      answer.replaceChildren(element("p", "asking ...", "soft"));
      const given = values(form);
      answer.innerHTML = await post("/ask", form.dataset.tool ? {tool: form.dataset.tool, arguments: given} : given, "POST", "text");
      answer.scrollIntoView();
    }, (error) => answer.replaceChildren(element("p", error.message, "warn")));
  }

  document.getElementById("filter")?.addEventListener("input", ({target}) => document.querySelectorAll("#compare tbody tr").forEach((row) => {
    row.hidden = !row.textContent.toLowerCase().includes(target.value.toLowerCase());
  }));

  function count() {
    for (const shown of document.querySelectorAll(".countdown")) {
      const byClock = shown.dataset.clock === "wall";  // the bars of a run that trades come when they come
      const left = Math.floor(Number(shown.dataset.left) - (byClock ? performance.now() / 1000 : 0));
      shown.textContent = left <= 0 ? "(the time is over)" : `(${Math.floor(left / 3600)} h ${Math.floor(left / 60) % 60} min${byClock ? ` ${left % 60} s left` : " of bars left"})`;
    }
  }
  count();
  setInterval(count, 1000);

  const told = ([name, inner]) => !/_(ids?|hash)$/.test(name) && inner !== null && inner !== "" && inner.length !== 0;
  const shown = (value) => value === null || value === undefined ? "-" : Array.isArray(value) ? value.map(shown).join(", ") :
    value > 1e17 ? time(value / 1e6) : typeof value === "number" ? String(Number(value.toPrecision(6))) : typeof value !== "object" ? String(value) :
    Object.entries(value).filter(told).map(([name, inner]) => `${name} ${shown(inner)}`).join(", ") || "-";
  async function poll(place, show, form = "json") {
    try {
      const response = await fetch(place.dataset.url);
      if (!response.ok) throw new Error((await response.json()).error);
      show(await response[form]());
      if (notice.dataset.lost) { say(""); delete notice.dataset.lost; }
    } catch (error) { notice.dataset.lost = "yes"; say(`the console does not answer: ${error.message}`); }
  }
  const status = document.getElementById("status");
  if (status) setInterval(() => poll(status, (text) => {
    if (text !== status.dataset.shown && !status.contains(document.activeElement)) status.innerHTML = text;
    status.dataset.shown = text;
  }, "text"), 2000);
  // A plan that waits or is carried out: its page is loaded again when it has moved on.
  const plan = document.getElementById("plan");
  if (plan) setInterval(() => poll(plan, (found) => {
    const steps = found.steps.map((step) => step.state).join(" "), left = document.querySelector(".countdown");
    if (left && left.dataset.clock !== "wall") left.dataset.left = String((found.expires_at - found.clock) / 1e9);
    if (found.state !== plan.dataset.state || steps !== plan.dataset.steps) window.location.reload();
    else if (found.hash !== plan.dataset.hash) say(`it was edited meanwhile: revision ${found.revision} stands now, load the page again`);
  }), 2000);
  for (const card of document.querySelectorAll("#backtests [data-backtest]")) {
    const source = new EventSource(`/api/backtests/${card.dataset.backtest}/events`);
    const show = (event) => {
      const found = JSON.parse(event.data), fields = {state: found.state, progress: found.progress.at(-1)};
      for (const [name, value] of Object.entries(fields)) card.querySelector(`[data-field=${name}]`).textContent = value || "";
      if (found.run_id) card.querySelector("[data-field=run_id]").replaceChildren(linked(found.run_id, `/runs/${found.run_id}`));
      if (event.type === "end") { source.close(); card.querySelector("button")?.remove(); }
    };
    for (const name of ["progress", "end"]) source.addEventListener(name, show);
  }

  // Rows as they are written; one that is missing is fetched before those behind it are shown.
  const rows = document.getElementById("rows"), MOST_ROWS = 500;
  if (rows) {
    let last = Number(rows.dataset.after);
    const line = document.getElementById("stream");
    function add(row) {
      const made = element("tr");
      made.dataset.seq = row.seq;
      const cells = [[row.seq, "number"], [time(row.known_at / 1e6)], [row.kind], [row.symbol || ""], [shown(row.payload).slice(0, 160), "what"]];
      for (const [text, kind] of cells) made.append(element("td", text, kind));
      rows.prepend(made);
      while (rows.children.length > MOST_ROWS) rows.lastElementChild.remove();
      last = row.seq;
    }
    let adding = Promise.resolve();
    async function take(row) {
      if (row.seq <= last) return;
      while (row.seq > last + 1) {
        const text = await (await fetch(`${rows.dataset.events.replace("/events", "/journal")}?after=${last}&limit=500`)).text();
        const missed = text.split("\n").filter(Boolean).map((item) => JSON.parse(item)).filter((item) => item.seq < row.seq);
        if (!missed.length) throw new Error(`row ${last + 1} is missing`);
        missed.forEach(add);
      }
      add(row);
    }
    const source = new EventSource(`${rows.dataset.events}?after=${last}`);
    source.addEventListener("open", () => { line.textContent = "connected"; });
    source.addEventListener("row", (event) => {
      adding = adding.then(() => take(JSON.parse(event.data))).catch((error) => { line.textContent = error.message; });
    });
    source.addEventListener("end", (event) => { line.textContent = `the run is ${JSON.parse(event.data).status}`; source.close(); });
    source.addEventListener("error", () => { line.textContent = "connection lost: trying again"; });
  }
})();
