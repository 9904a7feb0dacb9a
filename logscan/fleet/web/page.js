"use strict";
// The rows of the audit, drawn a page at a time. Text of logs only ever becomes text: nothing here parses HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const { summary, strings, records } = data;
const $ = (id) => document.getElementById(id);
const PAGE = 100;
const PRINTED = 2000;
const VERDICTS = ["not-served", "downgraded", "unproven", "kept", "no-promise"];
const SEVERITIES = ["info", "low", "medium", "high", "critical"];
const LOOK = { "not-served": "bad", downgraded: "bad", unproven: "warn", kept: "good", error: "bad", critical: "bad",
  high: "bad", medium: "warn", low: "note", failed: "bad", died: "bad", incomplete: "warn" };
const SIGN = { "not-served": "⊘", downgraded: "✗", unproven: "?", kept: "✓", "no-promise": "–" };
const ENGINES = { vllm: "vLLM", trtllm: "TensorRT-LLM", sglang: "SGLang" };

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "on") for (const [event, run] of Object.entries(value)) node.addEventListener(event, run);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.filter((c) => c !== null && c !== undefined).map((c) => (c instanceof Node ? c : String(c))));
  return node;
}
const tag = (word, text) => el("span", { class: "tag " + (LOOK[word] || "") }, text || word);
const verdictTag = (word, count) =>
  tag(word, `${SIGN[word] ? SIGN[word] + " " : ""}${count === undefined ? "" : count.toLocaleString("en") + " "}${word}`);
const number = (n) => n.toLocaleString("en");
const engineName = (name, version) => `${ENGINES[name] || name} ${version}`;

// ---------------------------------------------------------------- the rows, unpacked once

const boots = data.boots.map((row, index) => {
  const boot = { index };
  data.columns.forEach((name, i) => {
    const value = row[i];
    boot[name] = data.numbers.includes(name) ? value : value < 0 ? null : strings[value];
  });
  [boot.counted, boot.paths, boot.findings] = row.slice(data.columns.length);
  boot.shown = boot.outcome === "boot" ? boot.verdict : boot.outcome;
  boot.engineName = boot.engine ? engineName(boot.engine, boot.version) : "";
  boot.codes = [...new Set(boot.findings.map(([record]) => records[record].code))];
  return boot;
});
const unfolded = ([record, lines]) => {
  const whole = records[record];
  return { ...whole, evidence: whole.evidence.map((item, i) => ({ ...item, line: lines[i] })) };
};
const haystacks = new Map();
function haystack(boot) {
  if (!haystacks.has(boot.index)) {
    const parts = [boot.log, boot.source, boot.model, boot.hardware, boot.engineName, boot.shown, boot.status, boot.promise, boot.error];
    for (const [record] of boot.paths) parts.push(...records[record].kernels, records[record].ran, ...records[record].kinds);
    for (const [record] of boot.findings) parts.push(records[record].code, records[record].slug);
    haystacks.set(boot.index, parts.filter(Boolean).join("\n").toLowerCase());
  }
  return haystacks.get(boot.index);
}

// ---------------------------------------------------------------- filters

const SELECTS = { verdict: (b) => [b.shown], status: (b) => [b.status], model: (b) => [b.model], gpu: (b) => [b.hardware],
  engine: (b) => [b.engineName], code: (b) => b.codes };
const state = { sort: "shown", descending: false, page: 0, rows: boots, open: new Set() };

function fillSelects() {
  for (const [name, of] of Object.entries(SELECTS)) {
    const values = [...new Set(boots.flatMap(of))].filter(Boolean).sort();
    $("f-" + name).replaceChildren(el("option", { value: "" }, "any"), ...values.map((v) => el("option", { value: v }, v)));
  }
}
function choose(wanted) {
  $("filters").reset();
  for (const [name, value] of Object.entries(wanted)) $("f-" + name).value = value;
  refilter();
  $("boots").scrollIntoView();
  $("boots").focus({ preventScroll: true });
}
function refilter() {
  const words = $("q").value.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = Object.keys(SELECTS).map((name) => [SELECTS[name], $("f-" + name).value]).filter(([, value]) => value);
  const all = $("f-all").checked;
  state.rows = boots.filter((boot) => (all || boot.counted) && chosen.every(([of, value]) => of(boot).includes(value)) &&
    words.every((word) => haystack(boot).includes(word)));
  state.page = 0;
  for (const tile of $("verdicts").children) tile.setAttribute("aria-pressed", String(tile.dataset.verdict === $("f-verdict").value));
  resort();
}

// ---------------------------------------------------------------- the table of boots

const rank = (list, value) => (list.indexOf(value) < 0 ? list.length : list.indexOf(value));
const COLUMNS = [
  ["shown", "Verdict", (b) => verdictTag(b.shown), (b) => (b.outcome === "boot" ? rank(VERDICTS, b.verdict) : -1)],
  ["status", "Status", (b) => (b.status ? tag(b.status) : ""), (b) => b.status || ""],
  ["worst", "Severity", (b) => (b.worst ? tag(b.worst) : ""), (b) => -SEVERITIES.indexOf(b.worst)],
  ["codes", "Findings", (b) => b.codes.join(", "), (b) => b.codes.join()],
  ["model", "Model", (b) => b.model || b.error || "", (b) => b.model || "￿"],
  ["hardware", "GPU", (b) => b.hardware || "", (b) => b.hardware || "￿"],
  ["engineName", "Engine", (b) => b.engineName, (b) => b.engineName],
  ["log", "Log", (b) => el("span", { class: "mono" }, b.log + (b.source ? ` · ${b.source}` : "") + (b.boot > 1 ? ` · boot ${b.boot}` : "")), (b) => b.log],
];
function drawHead() {
  const cells = COLUMNS.map(([name, title]) => el("th", { scope: "col", "data-sort": name },
    el("button", { type: "button", on: { click: () => sortBy(name) } }, title)));
  $("table").tHead.replaceChildren(el("tr", {}, el("td", {}), ...cells));
}
function sortBy(name) {
  state.descending = state.sort === name && !state.descending;
  state.sort = name;
  resort();
}
function resort() {
  const key = COLUMNS.find(([name]) => name === state.sort)[3];
  const keyed = state.rows.map((boot) => [key(boot), boot]);
  const sign = state.descending ? -1 : 1;
  keyed.sort(([a, x], [b, y]) => (a < b ? -sign : a > b ? sign : x.index - y.index));
  state.rows = keyed.map(([, boot]) => boot);
  for (const th of $("table").tHead.querySelectorAll("th")) {
    th.setAttribute("aria-sort", th.dataset.sort !== state.sort ? "none" : state.descending ? "descending" : "ascending");
  }
  draw();
}
function draw(from = state.page * PAGE, to = from + PAGE) {
  const rows = state.rows.slice(from, to).flatMap((boot) => [rowOf(boot), ...(state.open.has(boot.index) ? [detailOf(boot)] : [])]);
  $("table").tBodies[0].replaceChildren(...rows);
  const pages = Math.max(1, Math.ceil(state.rows.length / PAGE));
  const of = boots.filter((boot) => boot.counted || $("f-all").checked).length;
  $("count").textContent = `${number(state.rows.length)} of ${number(of)} boots`;
  $("where").textContent = `Page ${state.page + 1} of ${number(pages)}`;
  $("prev").disabled = state.page === 0;
  $("next").disabled = state.page + 1 >= pages;
}
function rowOf(boot) {
  const open = state.open.has(boot.index);
  const button = el("button", { type: "button", class: "open", "aria-expanded": String(open), "aria-label": `Details of ${boot.log}` }, open ? "−" : "+");
  const row = el("tr", { class: "boot" }, el("td", {}, button),
    ...COLUMNS.map(([, title, show]) => { const value = show(boot); return el("td", value === "" ? { class: "none" } : { "data-name": boot.model || !boot.error ? title : title === "Model" ? "Why" : title }, value); }));
  button.addEventListener("click", () => {
    const now = !state.open.has(boot.index);
    if (now) { state.open.add(boot.index); row.after(detailOf(boot)); } else { state.open.delete(boot.index); row.nextSibling.remove(); }
    button.setAttribute("aria-expanded", String(now));
    button.textContent = now ? "−" : "+";
  });
  return row;
}
function facts(pairs) {
  return el("dl", { class: "facts" }, ...pairs.filter(([, value]) => value !== null && value !== "" && value !== undefined)
    .map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}
function lines(evidence) {
  return evidence.length ? el("ul", { class: "lines" }, ...evidence.map((item) => el("li", {},
    el("span", { class: "dim" }, `line ${item.line} · ${item.means}${item.role === "contradicts" ? " · not trusted" : ""} `),
    el("code", {}, item.text)))) : null;
}
function detailOf(boot) {
  const cell = el("td", { colspan: COLUMNS.length + 1 });
  cell.append(facts([["lines", boot.first === null ? null : `${boot.first}–${boot.last}`], ["promise", boot.promise],
    ["checkpoint", boot.ckpt && `${boot.ckpt} (${boot.joined})`], ["no checkpoint", boot.unjoined], ["SM", boot.sm],
    ["CUDA", boot.cuda], ["written", boot.modified], ["error", boot.error]]));
  for (const row of boot.paths.map(unfolded)) {
    cell.append(el("div", { class: "row" },
      el("h3", {}, `${row.path} ${row.group}${row.component === "target" ? "" : " " + row.component} `, verdictTag(row.verdict)),
      facts([["requested", row.requested], ["promised", row.promised], ["default", row.default], ["ran", row.ran],
        ["kernels", row.kernels.join(", ")], ["kinds", row.kinds.join(", ")], ["cause", row.cause],
        ["visibility", row.visibility], ["authority", row.authority], ["reasons", row.reasons.join(", ")],
        ["refusal", row.refusal]]),
      lines(row.evidence)));
  }
  for (const found of boot.findings.map(unfolded)) {
    cell.append(el("div", { class: "row" },
      el("h3", {}, `${found.code} ${found.slug} `, tag(found.severity)),
      el("p", {}, found.message), el("p", {}, el("span", { class: "dim" }, "do "), found.fix), lines(found.evidence)));
  }
  return el("tr", { class: "detail" }, cell);
}

// ---------------------------------------------------------------- the summary

function sortable(host, columns, rows) {
  const body = el("tbody", {});
  const heads = columns.map(([title, , key, kind]) => el("th", { scope: "col", class: kind, "aria-sort": key ? "none" : null },
    key ? el("button", { type: "button" }, title) : title));
  const drawRows = (ordered) => body.replaceChildren(...ordered.map((row) => el("tr", {},
    ...columns.map(([title, show, , kind]) => el("td", { class: kind, "data-name": title }, show(row))))));
  heads.forEach((head, i) => head.querySelector("button")?.addEventListener("click", () => {
    const descending = head.getAttribute("aria-sort") === "ascending";
    for (const other of heads) if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const key = columns[i][2], sign = descending ? -1 : 1;
    drawRows([...rows].sort((a, b) => (key(a) < key(b) ? -sign : key(a) > key(b) ? sign : 0)));
  }));
  drawRows(rows);
  host.replaceChildren(el("table", { class: "cards" }, el("thead", {}, el("tr", {}, ...heads)), body));
}
const section = (id, rows) => { $("s-" + id).hidden = rows.length === 0; return rows.length > 0; };

function drawTiles() {
  const counts = { ...summary.totals.verdicts };
  if (summary.totals.errors) counts.error = summary.totals.errors;
  if (summary.totals.nothing) counts.nothing = summary.totals.nothing;
  $("verdicts").append(...Object.entries(counts).map(([word, count]) => el("button", { type: "button", class: "tile " + (LOOK[word] || ""),
    "data-verdict": word, "aria-pressed": "false", on: { click: () => choose({ verdict: $("f-verdict").value === word ? "" : word }) } },
    el("b", {}, number(count)), `${SIGN[word] || ""} ${word}`)));
}
function drawMatrix() {
  const cells = new Map(), gpus = new Set();
  for (const row of summary.matrix) {
    gpus.add(row.gpu);
    const of = cells.get(row.model) || cells.set(row.model, new Map()).get(row.model);
    const cell = of.get(row.gpu) || of.set(row.gpu, {}).get(row.gpu);
    for (const [verdict, count] of Object.entries(row.verdicts)) cell[verdict] = (cell[verdict] || 0) + count;
  }
  if (!section("matrix", summary.matrix)) return;
  const names = [...gpus].sort();
  const cellOf = (model, gpu, cell) => cell && el("button", { type: "button", class: "cell", on: { click: () => choose({ model, gpu }) },
    "aria-label": `${model} on ${gpu}: ` + VERDICTS.filter((v) => cell[v]).map((v) => `${cell[v]} ${v}`).join(", ") },
    ...VERDICTS.filter((v) => cell[v]).map((v) => verdictTag(v, cell[v])));
  $("matrix").replaceChildren(el("table", {},
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Model"), ...names.map((gpu) => el("th", { scope: "col" }, gpu)))),
    el("tbody", {}, ...[...cells].map(([model, of]) => el("tr", {}, el("th", { scope: "row" }, model),
      ...names.map((gpu) => el("td", {}, cellOf(model, gpu, of.get(gpu)))))))));
}
function drawSummary() {
  const { totals, audit, tool } = summary;
  $("about").textContent = `${number(totals.logs)} logs, ${number(totals.boots)} boots · ${audit.finished.replace("T", " ").replace("Z", " UTC")}`;
  $("foot").textContent = `logscan ${tool.version}` + (tool.packs || []).map((p) => ` · ${p.id} ${p.version}`).join("");
  drawTiles();
  drawMatrix();
  const severity = (row) => -SEVERITIES.indexOf(row.severity);
  if (section("findings", summary.findings)) sortable($("findings"), [
    ["Rule", (r) => el("button", { type: "button", class: "link", on: { click: () => choose({ code: r.code }) } }, `${r.code} ${r.slug}`), (r) => r.code],
    ["Severity", (r) => tag(r.severity), severity],
    ["Boots", (r) => number(r.boots), (r) => -r.boots, "num"],
    ["In common", (r) => r.common.map((c) => `${c.column} ${c.value}: ${number(c.boots)} of ${number(c.of)}`).join("; ") || "–"],
    ["First seen", (r) => (r.first_seen || "").slice(0, 10), (r) => r.first_seen || ""],
    ["Last seen", (r) => (r.last_seen || "").slice(0, 10), (r) => r.last_seen || ""],
    ["For example", (r) => el("div", {}, ...r.messages.slice(0, 3).map((m) => el("p", {}, `${m.message} (${number(m.boots)}: `, el("span", { class: "mono" }, m.examples[0]), ")")))],
  ], summary.findings);
  const way = (w) => `${w.kernels || "?"} → ${w.ran || "?"} (${number(w.boots)} on ${w.gpus.join(", ")})`;
  if (section("outliers", summary.outliers)) sortable($("outliers"), [
    ["Model", (r) => r.model, (r) => r.model], ["Engine", (r) => engineName(r.engine, r.version), (r) => r.version],
    ["Path", (r) => `${r.path} ${r.group}`, (r) => r.path], ["Usual", (r) => way(r.usual)], ["Other", (r) => way(r.other), (r) => r.other.boots],
    ["Logs", (r) => el("span", { class: "mono" }, r.logs.join(", "))],
  ], summary.outliers);
  if (section("unjoined", summary.unjoined)) sortable($("unjoined"), [
    ["Model", (r) => r.model, (r) => r.model], ["Boots", (r) => number(r.boots), (r) => -r.boots, "num"], ["Why", (r) => r.why, (r) => r.why],
  ], summary.unjoined);
  if (section("trend", summary.trend.length > 1 ? summary.trend : [])) sortable($("trend"), [
    ["Audit", (r) => r.finished.replace("T", " ").replace("Z", " UTC"), (r) => r.finished], ["Logs", (r) => number(r.logs), (r) => r.logs, "num"],
    ["Verdicts", (r) => el("span", {}, ...VERDICTS.filter((v) => r.verdicts[v]).flatMap((v) => [verdictTag(v, r.verdicts[v]), " "]))],
  ], summary.trend);
}

// ---------------------------------------------------------------- wiring

function theme() {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  $("theme").textContent = dark ? "Light" : "Dark";
  return dark;
}
$("theme").addEventListener("click", () => { document.documentElement.dataset.theme = theme() ? "light" : "dark"; theme(); });
$("filters").addEventListener("input", refilter);
$("filters").addEventListener("submit", (event) => event.preventDefault());
$("filters").addEventListener("reset", () => setTimeout(refilter));
for (const [id, step] of [["prev", -1], ["next", 1]]) $(id).addEventListener("click", () => { state.page += step; draw(); });
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) { event.preventDefault(); $("q").focus(); }
});
// Paper has no pages to turn: print what was filtered, as far as that is sensible.
addEventListener("beforeprint", () => draw(0, PRINTED));
addEventListener("afterprint", () => draw());
theme();
drawSummary();
fillSelects();
drawHead();
refilter();
