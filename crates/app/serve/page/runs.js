// The view `Runs`: the registry of all runs, and everything about one of them.

import { el, text, show, follow, cells, table, flag } from "./dom.js";
import { DASH, bytes, count, hertz, known, span, stamp } from "./units.js";
import { icon, ofState } from "./states.js";
import { get, put, file } from "./api.js";
import { facts, recordParts, verdict } from "./record.js";

const PAGE = 50;

/** Makes the view. */
export function makeRuns(app) {
  const view = { app, runs: [], more: false, number: null };
  const heads = ["run", "state", "type", "begin (UTC)", "duration", "events", "rate", "stored", "verdict", "comment"];
  const { node, body } = table(
    heads.map((head, index) => ({ text: head, number: index >= 4 && index <= 7 })),
    "Runs, newest first",
  );
  view.body = body;
  node.classList.add("runs");
  view.note = el("p", { class: "small" });
  view.older = el("button", { type: "button", text: "Older runs", hidden: true, onclick: () => load(view, true) });
  const csv = el("button", { type: "button", text: "Save as CSV", onclick: () => save(view) });
  view.list = el(
    "section",
    { class: "panel" },
    el("div", { class: "bar-row" }, el("h2", { text: "Runs" }), csv),
    view.note,
    el("div", { class: "scroll" }, node),
    view.older,
  );
  view.one = el("div", { hidden: true });
  view.node = el("div", {}, view.list, view.one);
  return {
    node: view.node,
    shown: (where) => shown(view, where),
    update: (status) => update(view, status),
    ended: (run) => ended(view, run),
  };
}

function shown(view, [number]) {
  view.number = number ? Number(number) : null;
  show(view.list, view.number === null);
  show(view.one, view.number !== null);
  if (view.number === null) load(view, false);
  else loadOne(view, view.number);
}

/** A new run belongs on the list at once. */
function update(view, status) {
  const number = status.run?.number ?? null;
  if (view.newest !== undefined && number !== view.newest && view.number === null) load(view, false);
  view.newest = number;
}

function ended(view, run) {
  if (view.app.visible !== "runs") return;
  if (view.number === null) load(view, false);
  else if (view.number === run.number) loadOne(view, run.number);
}

async function load(view, older) {
  const before = older && view.runs.length ? `&before=${view.runs[view.runs.length - 1].number}` : "";
  try {
    const found = await get(`api/runs?limit=${PAGE}${before}`);
    view.runs = older ? [...view.runs, ...found.runs] : found.runs;
    show(view.older, found.more);
    text(view.note, view.runs.length ? "" : "No run yet. The first one will appear here.");
  } catch (error) {
    text(view.note, [error.message, error.hint].join(" "));
  }
  draw(view);
}

const seconds = (run) => (known(run.ended) && known(run.started) ? run.ended - run.started : null);

function draw(view) {
  follow(
    view.body,
    view.runs,
    (run) => run.number,
    makeLine,
    (line, run) => {
      const kind = ofState(run.state);
      line.children[1].replaceChildren(icon(kind), run.state);
      cells(
        line,
        [
          null,
          null,
          run.type ?? "",
          stamp(run.started),
          span(seconds(run)),
          count(run.events),
          hertz(run.event_rate_hz),
          bytes(run.bytes),
          null,
          [run.comment, run.stop_comment].filter(Boolean).join(" – "),
        ],
        [4, 5, 6, 7],
      );
      line.children[8].replaceChildren(verdict(run.verdict));
    },
  );
}

const makeLine = (run) =>
  el(
    "tr",
    {},
    el("td", {}, el("a", { href: `#runs/${run.number}`, text: `run ${run.number}` })),
    el("td", { class: "verdict-cell" }),
  );

async function save(view) {
  try {
    const url = URL.createObjectURL(await file("api/runs.csv"));
    el("a", { href: url, download: "runs.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  } catch (error) {
    text(view.note, [error.message, error.hint].join(" "));
  }
}

async function loadOne(view, number) {
  const back = el("p", {}, el("a", { href: "#runs", text: "◀ All runs" }));
  view.one.replaceChildren(back, el("p", { text: `Run ${number} is being fetched.` }));
  try {
    const run = await get(`api/runs/${number}`);
    if (view.number === number) view.one.replaceChildren(back, ...runParts(run));
  } catch (error) {
    view.one.replaceChildren(back, el("p", { class: "trouble", text: [error.message, error.hint].join(" ") }));
  }
}

function runParts(run) {
  const kind = ofState(run.state);
  const title = el(
    "h2",
    {},
    `Run ${run.number} `,
    el("span", { class: "verdict" }, icon(kind), run.state),
    " ",
    verdict(run.verdict),
  );
  const head = el(
    "section",
    { class: "panel" },
    title,
    el(
      "div",
      { class: "two" },
      facts([
        ["experiment", run.experiment],
        ["type", run.type],
        ["begin", `${stamp(run.started)} UTC`],
        ["end", known(run.ended) ? `${stamp(run.ended)} UTC` : DASH],
        ["duration", span(seconds(run))],
        ["host", run.host],
        ["version", run.version],
        ["remark at the stop", run.stop_comment],
      ]),
      el("div", {}, comment(run)),
    ),
  );
  return [head, files(run), ...(run.record ? recordParts(run.record) : []), nodes(run), texts(run)].filter(Boolean);
}

/** The comment of a run, to be changed. */
function comment(run) {
  const input = el("textarea", { rows: "2", maxlength: "1000", "aria-label": "Comment" });
  input.value = run.comment ?? "";
  const said = el("span", { class: "small", role: "status" });
  const keep = async () => {
    try {
      await put(`api/runs/${run.number}`, { comment: input.value });
      text(said, "Kept.");
      flag(said, "bad", false);
    } catch (error) {
      text(said, [error.message, error.hint].join(" "));
      flag(said, "bad", true);
    }
  };
  input.addEventListener("input", () => text(said, "Not kept yet."));
  return el(
    "label",
    { class: "field" },
    el("span", { text: "Comment" }),
    input,
    el("span", { class: "row" }, el("button", { type: "button", text: "Keep the comment", onclick: keep }), said),
  );
}

function files(run) {
  const all = run.files ?? [];
  const { node, body } = table(["file", { text: "size", number: true }, ""], "Event files");
  for (const one of all) {
    const look = el("a", {
      href: `#event/${run.number}/${encodeURIComponent(one.name)}/0`,
      text: "look at its events",
    });
    body.append(
      el(
        "tr",
        {},
        el("td", { class: "mono", text: one.name }),
        el("td", { class: "number", text: bytes(one.bytes) }),
        el("td", {}, look),
      ),
    );
  }
  const inside = all.length
    ? el("div", { class: "scroll" }, node)
    : el("p", { class: "small", text: "This run stored no events." });
  return el("section", { class: "panel" }, el("h3", { text: "Event files" }), inside);
}

function nodes(run) {
  const lost = new Set(run.record?.lost_nodes ?? []);
  const all = run.nodes ?? [];
  if (!all.length) return null;
  const { node: sheet, body } = table(["node", "machine", { text: "its clock", number: true }, "end"], "Nodes");
  for (const one of all) {
    const line = el("tr");
    cells(line, [one.name, one.host || DASH, clock(one.clock_ahead_s ?? 0), lost.has(one.name) ? "lost" : ""]);
    body.append(line);
  }
  return el("section", { class: "panel" }, el("h3", { text: "Nodes" }), el("div", { class: "scroll" }, sheet));
}

const clock = (ahead) => (Math.abs(ahead) < 0.1 ? "in step" : `${Math.abs(ahead).toFixed(1)} s ${ahead > 0 ? "ahead" : "behind"}`);

function texts(run) {
  const fold = (title, words) =>
    words && el("details", { class: "panel" }, el("summary", { text: title }), el("pre", { text: words }));
  return el(
    "div",
    {},
    ...[
      fold("The experiment file of this run", run.experiment_text),
      fold("The record as JSON", run.record && JSON.stringify(run.record, null, 2)),
    ].filter(Boolean),
  );
}
