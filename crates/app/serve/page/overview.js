// The view `Run`: is it running, how fast, is anything lost, who slows whom; with history, distributions and faults.

import { el, text, show, follow, cells, table, attr } from "./dom.js";
import { get } from "./api.js";
import { inRun } from "./states.js";
import { timePlot, cursorAt } from "./plot.js";
import { histogram } from "./histogram.js";
import { makeMonitor } from "./monitor.js";
import { makeTiles, makeChain } from "./tiles.js";
import { makeSources } from "./sources.js";
import { faultsBySource, FAULT_ORDER, SERIOUS, faultWords } from "./nodes.js";
import { findings } from "./record.js";

const SPANS = [
  ["5 min", 300],
  ["15 min", 900],
  ["1 h", 3600],
];
const DISTRIBUTIONS_MS = 4000;

/** Makes the view. */
export function makeOverview(app) {
  const view = { app, seconds: 300, log: false, drawn: 0 };
  view.tiles = makeTiles();
  view.chain = makeChain();
  view.sources = makeSources();
  view.plots = plots(view);
  view.histograms = {
    latency_us: histogram({ title: "Latency, trigger to stored", unit: "s", scale: 1e-6 }),
    event_bytes: histogram({ title: "Size of events", unit: "B" }),
    fragment_bytes: histogram({ title: "Size of fragments", unit: "B" }),
  };
  view.monitor = makeMonitor();
  view.faults = faultTable();
  view.findings = findings();
  const logs = el("input", { type: "checkbox", onchange: () => drawDistributions(view, (view.log = logs.checked)) });
  view.node = el(
    "div",
    {},
    view.tiles.node,
    view.chain.node,
    view.sources.node,
    el("div", { class: "bar-row" }, el("h2", { text: "History" }), spans(view)),
    el("div", { class: "two" }, ...view.plots.map((plot) => plot.node)),
    el(
      "div",
      { class: "bar-row" },
      el("h2", { text: "Distributions" }),
      el("label", { class: "check" }, logs, "logarithmic counts"),
    ),
    el("div", { class: "three" }, ...Object.values(view.histograms).map((one) => one.node)),
    view.monitor.node,
    view.findings.node,
    view.faults.node,
  );
  setInterval(
    () => app.visible === "run" && !document.hidden && inRun(app.status?.state) && fetchDistributions(view),
    DISTRIBUTIONS_MS,
  );
  return { node: view.node, update: (status) => update(view, status), shown: () => shown(view) };
}

function plots(view) {
  const onCursor = (from, time) => view.plots.forEach((plot) => plot !== from && cursorAt(plot, time));
  return [
    timePlot({
      title: "Rates",
      unit: "Hz",
      onCursor,
      series: [
        { column: "trigger_hz", word: "triggers", look: "wide" },
        { column: "built_hz", word: "built", look: "main" },
        { column: "incomplete_hz", word: "incomplete", look: "dashed" },
        { column: "inhibited_hz", word: "turned away", look: "dotted" },
      ],
    }),
    timePlot({
      title: "Throughput",
      unit: "B/s",
      onCursor,
      series: [
        { column: "bytes_per_s", word: "built", look: "main" },
        { column: "stored_bytes_per_s", word: "stored", look: "dashed2" },
      ],
    }),
  ];
}

function spans(view) {
  const buttons = SPANS.map(([word, seconds]) =>
    el("button", {
      type: "button",
      class: "pick",
      text: word,
      "aria-pressed": String(seconds === view.seconds),
      onclick: () => {
        view.seconds = seconds;
        buttons.forEach((one, index) => attr(one, "aria-pressed", String(SPANS[index][1] === seconds)));
        draw(view);
      },
    }),
  );
  return el("div", { class: "picks", role: "group", "aria-label": "Time span" }, ...buttons);
}

function faultTable() {
  const { node, body } = table(["source", "missing and corrupted", "other faults"], "Faults by source");
  const note = el("p", { class: "small" });
  const box = el("section", { class: "panel" }, el("h2", { text: "Missing and corrupted, by source" }), note, node);
  return { node: box, table: node, body, note };
}

function draw(view) {
  const { columns, points } = view.app.history;
  for (const plot of view.plots) plot.draw(columns, points, view.seconds);
}

async function fetchDistributions(view) {
  const [found, monitored] = await Promise.all(
    ["api/distributions", "api/histograms"].map((path) => get(path).catch(() => null)),
  );
  if (found) view.distributions = found;
  if (monitored) view.monitored = monitored.histograms;
  drawDistributions(view);
}

function drawDistributions(view) {
  for (const [name, plot] of Object.entries(view.histograms)) plot.draw(view.distributions?.[name] ?? null, view.log);
  view.monitor.draw(view.monitored ?? [], view.log);
}

function shown(view) {
  if (!view.app.status) return;
  update(view, view.app.status);
  draw(view);
  fetchDistributions(view);
}

function update(view, status) {
  view.tiles.update(status);
  view.chain.update(status);
  view.sources.update(status);
  faults(view.faults, status);
  view.findings.update(status.record);
  const { points } = view.app.history;
  const last = points.length ? points[points.length - 1][0] : 0;
  if (last !== view.drawn) draw(view);
  view.drawn = last;
  if (view.state !== status.state) fetchDistributions(view);
  view.state = status.state;
}

function faults(box, status) {
  const all = status.record?.faults ?? {};
  const rows = faultsBySource(status.record);
  const total = faultWords(all);
  const from = rows ? "" : " The counts of each source are not known.";
  text(
    box.note,
    !status.record ? "No run yet." : total ? `In all: ${total}.${rows?.length ? "" : from}` : "No faults.",
  );
  show(box.table, Boolean(rows?.length));
  const others = FAULT_ORDER.filter((kind) => !SERIOUS.includes(kind));
  follow(
    box.body,
    rows ?? [],
    (row) => row.source,
    () => el("tr"),
    (node, row) =>
      cells(node, [row.source, faultWords(row.faults, SERIOUS) || "none", faultWords(row.faults, others) || "none"]),
  );
}
