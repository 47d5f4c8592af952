// The view `Experiment`: the experiment file, to be read always and to be changed between runs.

import { el, text, show, flag, attr } from "./dom.js";
import { get, put } from "./api.js";
import { betweenRuns } from "./states.js";

/** Makes the view. */
export function makeExperiment(app) {
  const view = { app, kept: null };
  view.title = el("h2", { text: "Experiment" });
  view.input = el("textarea", {
    class: "code",
    spellcheck: "false",
    autocapitalize: "off",
    wrap: "off",
    "aria-label": "Experiment file",
    rows: "30",
  });
  view.where = el("span", { class: "small" });
  view.keep = el("button", { type: "button", class: "main", text: "Check and keep", onclick: () => keep(view) });
  view.revert = el("button", { type: "button", text: "Undo all changes", onclick: () => set(view, view.kept) });
  view.why = el("span", { class: "small" });
  view.said = el("pre", { class: "diagnostic", role: "status", hidden: true });
  view.jump = el("button", { type: "button", hidden: true, onclick: () => toLine(view) });
  view.node = el(
    "section",
    { class: "panel" },
    view.title,
    el("div", { class: "bar-row" }, el("span", { class: "row" }, view.keep, view.revert, view.why), view.where),
    view.said,
    view.jump,
    view.input,
  );
  for (const type of ["input", "keyup", "click"]) view.input.addEventListener(type, () => place(view));
  view.input.addEventListener("input", () => paint(view));
  view.input.addEventListener("keydown", (event) => {
    if (event.key !== "s" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    keep(view);
  });
  addEventListener("beforeunload", (event) => changed(view) && event.preventDefault());
  return { node: view.node, shown: () => load(view), update: () => paint(view) };
}

const changed = (view) => view.kept !== null && view.input.value !== view.kept;

async function load(view) {
  if (changed(view)) return;
  try {
    const found = await get("api/experiment");
    text(view.title, `Experiment ${found.name}`);
    view.kept = found.text;
    set(view, found.text);
  } catch (error) {
    say(view, [error.message, error.hint].filter(Boolean).join("\n"), true);
  }
}

function set(view, words) {
  view.input.value = words ?? "";
  say(view, "");
  paint(view);
  place(view);
}

/** Why the experiment cannot be changed now. */
function reason(view) {
  const { status, stale } = view.app;
  if (stale || !status) return "There is no connection to the service.";
  if (status.role === "watch") return "You may watch, but not change the experiment.";
  if (!betweenRuns(status.state)) return "It can be changed between runs.";
  return "";
}

function paint(view) {
  const why = reason(view);
  text(view.why, why || (changed(view) ? "Not kept yet." : "This is what the next run will use."));
  if (view.input.readOnly !== Boolean(why)) view.input.readOnly = Boolean(why);
  attr(view.keep, "aria-disabled", String(Boolean(why) || !changed(view)));
  attr(view.revert, "aria-disabled", String(!changed(view)));
}

function say(view, words, bad = false) {
  text(view.said, words);
  show(view.said, Boolean(words));
  flag(view.said, "bad", bad);
  view.line = bad ? Number(/\bline (\d+)/i.exec(words)?.[1] ?? /:(\d+):\d+/.exec(words)?.[1] ?? 0) : 0;
  show(view.jump, view.line > 0);
  text(view.jump, `Go to line ${view.line}`);
}

async function keep(view) {
  if (reason(view) || !changed(view)) return;
  const words = view.input.value;
  try {
    await put("api/experiment", { text: words });
    view.kept = words;
    say(view, "Kept. The next configuration uses it.");
  } catch (error) {
    say(view, [error.message, error.hint].filter(Boolean).join("\n\n"), true);
  }
  paint(view);
}

function place(view) {
  const before = view.input.value.slice(0, view.input.selectionStart);
  const lines = before.split("\n");
  text(view.where, `line ${lines.length}, column ${lines[lines.length - 1].length + 1}`);
}

function toLine(view) {
  const lines = view.input.value.split("\n");
  const at = lines.slice(0, view.line - 1).reduce((all, one) => all + one.length + 1, 0);
  view.input.focus();
  view.input.setSelectionRange(at, at + (lines[view.line - 1]?.length ?? 0));
  view.input.scrollTop = Math.max(0, (view.line - 6) * (view.input.scrollHeight / Math.max(1, lines.length)));
  place(view);
}
