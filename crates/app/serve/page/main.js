// The page: its views and their tabs, and the way of each status from the service to what is shown.

import { el, attr, attrs, show, text, typing, tip } from "./dom.js";
import { stream, onToken } from "./api.js";
import { ofState, outline } from "./states.js";
import { lost, steadyWaits } from "./nodes.js";
import { askToken } from "./dialogs.js";
import { makeHeader, banners } from "./header.js";
import { makeHistory, fetchHistory, takeStatus } from "./history.js";
import { makeOverview } from "./overview.js";
import { makeBuilder } from "./builder.js";
import { makeLog } from "./log.js";
import { makeRuns } from "./runs.js";
import { makeEvent } from "./event.js";
import { makeExperiment } from "./experiment.js";

const app = { status: null, stale: false, staleSince: null, failure: null, visible: "run", history: makeHistory() };

const VIEWS = [
  ["run", "Run", makeOverview],
  ["builder", "Event builder", makeBuilder],
  ["log", "Log", makeLog],
  ["runs", "Runs", makeRuns],
  ["event", "Event", makeEvent],
  ["experiment", "Experiment", makeExperiment],
];

const header = makeHeader(app);
const views = new Map(VIEWS.map(([name, title, make], index) => [name, makeView(name, title, make, index)]));

function makeView(name, title, make, index) {
  const tab = el(
    "a",
    { role: "tab", id: `tab-${name}`, href: `#${name}`, "aria-controls": `panel-${name}`, title: `Key ${index + 1}` },
    title,
  );
  const panel = el("section", {
    role: "tabpanel",
    id: `panel-${name}`,
    "aria-labelledby": `tab-${name}`,
    hidden: true,
  });
  const view = make(app);
  panel.append(view.node);
  document.getElementById("tabs").append(tab);
  document.getElementById("panels").append(panel);
  return { ...view, tab, panel };
}

/** Shows the view that the address names: `#runs/12` is view `runs` with `12`. */
function route() {
  const [name, ...where] = location.hash.slice(1).split("/");
  if (name === "panels") return;
  app.visible = views.has(name) ? name : "run";
  tip(null);
  for (const [key, { tab, panel }] of views) {
    attrs(tab, { "aria-selected": String(key === app.visible), tabindex: key === app.visible ? "0" : "-1" });
    show(panel, key === app.visible);
  }
  views.get(app.visible).shown?.(where);
}

function takeNew(status) {
  const before = app.status;
  const waits = steadyWaits(status, app.waits);
  Object.assign(app, { status, waits, failure: null });
  takeStatus(app.history, status);
  paint();
  if (!before || before.state !== status.state) announce(before, status);
}

/** Shows what is known; only the view in front is drawn. */
function paint() {
  header.update(app.status);
  banners(app);
  if (app.status && !app.stale) views.get(app.visible).update?.(app.status);
  else if (app.visible === "experiment") views.get("experiment").update();
}

/** Says a change of the state to screen readers, and in the title and the icon of the tab. */
function announce(before, status) {
  const names = lost(status).map((node) => node.name);
  const gone = names.length ? ` Lost: ${names.slice(0, 5).join(", ")}.` : "";
  if (before)
    text(document.getElementById("live"), `Run control is ${status.state}: ${ofState(status.state).means}.${gone}`);
  document.title = `${status.state}${status.run ? ` · run ${status.run.number}` : ""} · evb`;
  const colour = { good: "009e73", warn: "e69f00", bad: "d55e00", work: "56b4e9", hold: "cc79a7", idle: "808890" }[
    ofState(status.state).tone
  ];
  const path = `<path fill='#${colour}' fill-rule='evenodd' d='${outline(ofState(status.state).shape)}'/>`;
  const image = `<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'>${path}</svg>`;
  attr(document.getElementById("icon"), "href", `data:image/svg+xml,${encodeURIComponent(image)}`);
}

function keys(event) {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const names = [...views.keys()];
  const at = names.indexOf(app.visible);
  const inTabs = event.target.getAttribute?.("role") === "tab";
  let next = null;
  if (inTabs)
    next =
      {
        ArrowRight: (at + 1) % names.length,
        ArrowLeft: (at + names.length - 1) % names.length,
        Home: 0,
        End: names.length - 1,
      }[event.key] ?? null;
  else if (!typing(event) && /^[1-6]$/.test(event.key)) next = Number(event.key) - 1;
  if (next === null) return;
  event.preventDefault();
  location.hash = `#${names[next]}`;
  if (inTabs) views.get(names[next]).tab.focus();
}

onToken(askToken);
addEventListener("hashchange", route);
document.addEventListener("keydown", keys);
route();
header.update(null);
stream({
  status: takeNew,
  log: (entry) => views.get("log").entry(entry),
  run: (run) => views.get("runs").ended(run),
  opened: async () => {
    views.get("log").catchUp();
    await fetchHistory(app.history);
    if (app.visible === "run") views.get("run").shown();
  },
  stale: (since) => {
    app.stale = since !== null;
    app.staleSince = since;
    paint();
  },
  failed: (error) => {
    if (error.name === "AbortError" || error.status === 0 || error.status === undefined) return;
    app.failure = error;
    paint();
  },
});
