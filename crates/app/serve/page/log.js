// The view `Log`: what run control and the nodes said, newest first, with filters.

import { el, text, follow } from "./dom.js";
import { clock, stamp, count, several } from "./units.js";
import { icon, ofLevel } from "./states.js";
import { get } from "./api.js";

const KEPT = 5000;
const SHOWN = 400;
const LEVELS = ["info", "warning", "error"];

/** Makes the view. */
export function makeLog(app) {
  const view = { app, entries: [], known: new Set(), nodes: new Set(), runs: new Set() };
  view.level = choice(
    "Level",
    [
      ["info", "all"],
      ["warning", "warnings and errors"],
      ["error", "errors only"],
    ],
    () => draw(view),
  );
  view.source = choice("Node", [["", "all"]], () => draw(view));
  view.run = choice("Run", [["", "all"]], () => draw(view));
  view.words = el("input", {
    type: "search",
    placeholder: "words",
    "aria-label": "Words in the text",
    oninput: () => draw(view),
  });
  view.hold = el("input", { type: "checkbox", onchange: () => draw(view) });
  view.number = el("span", { class: "small" });
  view.body = el("ol", { class: "log", "aria-label": "Log, newest first" });
  view.node = el(
    "section",
    { class: "panel" },
    el(
      "div",
      { class: "filters" },
      view.level.node,
      view.source.node,
      view.run.node,
      el("label", {}, el("span", { text: "Text" }), view.words),
      el("label", { class: "check" }, view.hold, "hold"),
      view.number,
    ),
    view.body,
  );
  return { node: view.node, entry: (one) => take(view, [one]), shown: () => draw(view), catchUp: () => catchUp(view) };
}

function choice(word, options, changed) {
  const select = el(
    "select",
    { onchange: changed },
    ...options.map(([value, name]) => el("option", { value, text: name })),
  );
  return { node: el("label", {}, el("span", { text: word }), select), select };
}

/** Fetches what was logged before the page opened, or while it had no connection. */
async function catchUp(view) {
  const entries = await get(`api/log?after=0&level=info`).catch(() => []);
  take(view, entries);
}

/** Numbers begin anew when the service does, so that the time belongs to the key. */
const key = (entry) => `${entry.seq} ${entry.time}`;

function take(view, entries) {
  for (const entry of entries) {
    if (view.known.has(key(entry))) continue;
    view.known.add(key(entry));
    view.entries.push(entry);
    if (entry.node && !view.nodes.has(entry.node)) add(view.source, view.nodes, entry.node, entry.node);
    if (entry.run !== null && entry.run !== undefined && !view.runs.has(entry.run))
      add(view.run, view.runs, entry.run, `run ${entry.run}`);
  }
  view.entries.sort((a, b) => b.time - a.time || b.seq - a.seq);
  view.entries.splice(KEPT).forEach((one) => view.known.delete(key(one)));
  if (view.app.visible === "log" && !view.hold.checked) draw(view);
}

function add(choice, seen, value, name) {
  seen.add(value);
  choice.select.append(el("option", { value: String(value), text: name }));
}

function draw(view) {
  const least = LEVELS.indexOf(view.level.select.value);
  const [node, run, words] = [view.source.select.value, view.run.select.value, view.words.value.trim().toLowerCase()];
  const fits = (one) =>
    LEVELS.indexOf(one.level) >= least &&
    (!node || one.node === node) &&
    (!run || String(one.run) === run) &&
    (!words || one.text.toLowerCase().includes(words));
  const found = view.entries.filter(fits);
  const hidden = found.length > SHOWN ? `, the newest ${count(SHOWN)} are shown` : "";
  const empty = view.entries.length ? "no entry fits" : "nothing was logged yet";
  text(view.number, found.length ? `${several(found.length, "entry").replace("entrys", "entries")}${hidden}` : empty);
  follow(view.body, found.slice(0, SHOWN), key, line);
}

/** The time of day; with the date if it is not of today. */
function when(time) {
  const today = stamp(Date.now() / 1000).slice(0, 10);
  return stamp(time).startsWith(today) ? clock(time) : stamp(time);
}

function line(one) {
  const node = el(
    "li",
    { class: one.level },
    el("time", { text: when(one.time), title: `${stamp(one.time)} UTC` }),
    el("span", { class: "log-level" }, icon(ofLevel(one.level)), one.level),
    el("span", {
      class: "log-node",
      text: [one.node, known(one.run) ? `run ${one.run}` : ""].filter(Boolean).join(" · "),
    }),
    el("span", { class: "lines", text: one.text }),
  );
  return node;
}

const known = (run) => run !== null && run !== undefined;
