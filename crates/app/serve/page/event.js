// The view `Event`: one event as fragments by source, with sizes and bytes; live, or from a file of a run.

import { el, text, attr, flag, show, follow, width } from "./dom.js";
import { bytes, count, known } from "./units.js";
import { icon, setIcon, ofFragment, ofNode, inRun } from "./states.js";
import { get } from "./api.js";
import { makeHex } from "./hex.js";

const EVERY_MS = 2000;
const KEPT = 30;

/** Makes the view. */
export function makeEvent(app) {
  const view = {
    app,
    live: true,
    past: [],
    at: 0,
    run: null,
    file: "",
    index: 0,
    event: null,
    source: null,
    hex: makeHex(),
  };
  parts(view);
  setInterval(
    () =>
      view.live &&
      view.follow.checked &&
      app.visible === "event" &&
      !document.hidden &&
      inRun(app.status?.state) &&
      fetchLive(view),
    EVERY_MS,
  );
  return { node: view.node, shown: (where) => shown(view, where) };
}

function parts(view) {
  view.liveButton = el("a", { class: "pick", href: "#event", text: "Live" });
  view.runInput = el("input", { type: "number", min: "1", "aria-label": "Run", onchange: () => chooseRun(view) });
  view.fileChoice = el("select", { "aria-label": "File", onchange: () => go(view, view.fileChoice.value, 0) });
  view.indexInput = el("input", {
    type: "number",
    min: "0",
    "aria-label": "Index of the event in the file",
    onchange: () => go(view, view.file, Number(view.indexInput.value)),
  });
  view.of = el("span", { class: "small" });
  view.follow = el("input", { type: "checkbox" });
  view.follow.checked = true;
  view.back = el("button", { type: "button", text: "◀ Previous", onclick: () => step(view, -1) });
  view.forth = el("button", { type: "button", text: "Next ▶", onclick: () => step(view, 1) });
  view.followLabel = el("label", { class: "check" }, view.follow, "follow");
  view.fileParts = el(
    "span",
    { class: "row" },
    el("label", {}, el("span", { text: "File" }), view.fileChoice),
    el("label", {}, el("span", { text: "Index" }), view.indexInput),
    view.of,
  );
  view.note = el("p", { class: "trouble", hidden: true });
  view.title = el("h2", { text: "No event yet" });
  view.badge = icon(ofNode("absent"));
  view.verdict = el("span");
  view.list = el("div", { class: "fragments", role: "listbox", "aria-label": "Fragments by source", tabindex: "0" });
  view.hexTitle = el("h3", { text: "Bytes" });
  view.list.addEventListener("keydown", (event) => keys(view, event));
  const bar = el(
    "div",
    { class: "filters" },
    view.liveButton,
    el("label", {}, el("span", { text: "Run" }), view.runInput),
    view.fileParts,
    view.followLabel,
    view.back,
    view.forth,
  );
  view.node = el(
    "div",
    {},
    el("section", { class: "panel" }, bar, view.note),
    el(
      "div",
      { class: "event-two" },
      el(
        "section",
        { class: "panel" },
        el("div", { class: "bar-row" }, view.title, el("span", { class: "verdict" }, view.badge, view.verdict)),
        view.list,
      ),
      el("section", { class: "panel" }, view.hexTitle, view.hex.node),
    ),
  );
}

/** `#event` is live; `#event/RUN/FILE/INDEX` is an event of a file. */
function shown(view, [run, file, index]) {
  view.live = !run;
  flag(view.liveButton, "chosen", view.live);
  show(view.fileParts, !view.live);
  show(view.followLabel, view.live);
  if (view.live) return fetchLive(view);
  view.run = Number(run);
  view.file = file ? decodeURIComponent(file) : "";
  view.index = Number(index ?? 0);
  view.runInput.value = String(view.run);
  view.indexInput.value = String(view.index);
  files(view);
  if (view.file) fetchOne(view, `api/event?run=${view.run}&file=${encodeURIComponent(view.file)}&index=${view.index}`);
}

const go = (view, file, index) =>
  (location.hash = `#event/${view.run}/${encodeURIComponent(file)}/${Math.max(0, index || 0)}`);

function chooseRun(view) {
  const run = Number(view.runInput.value);
  if (run > 0) location.hash = `#event/${run}`;
}

async function files(view) {
  if (view.filesOf !== view.run) {
    const found = await get(`api/runs/${view.run}`).catch((error) => trouble(view, error));
    if (!found) return;
    view.files = found.files ?? [];
    view.filesOf = view.run;
    view.fileChoice.replaceChildren(
      ...view.files.map((one) => el("option", { value: one.name, text: `${one.name} (${bytes(one.bytes)})` })),
    );
  }
  if (!view.file && view.files.length) return go(view, view.files[0].name, 0);
  if (!view.files.length) trouble(view, new Error(`Run ${view.run} stored no events.`));
  view.fileChoice.value = view.file;
}

function trouble(view, error) {
  const words = error ? [error.message, error.hint].filter(Boolean).join(" ") : "";
  text(view.note, words);
  show(view.note, Boolean(words));
  return null;
}

async function fetchLive(view) {
  const found = await get("api/event?live=1").catch((error) => trouble(view, error));
  if (!found || !view.live) return;
  const newest = view.past[view.past.length - 1];
  if (newest?.event !== found.event || newest?.run !== found.run) view.past.push(found);
  view.past.splice(0, view.past.length - KEPT);
  view.at = view.past.length - 1;
  trouble(view, null);
  draw(view, view.past[view.at]);
}

async function fetchOne(view, path) {
  const found = await get(path).catch((error) => trouble(view, error));
  if (!found) return;
  trouble(view, null);
  draw(view, found);
}

/** The event before or after. Live, it goes through the last events and holds. */
function step(view, by) {
  if (!view.live) return go(view, view.file, view.index + by);
  view.follow.checked = false;
  const at = view.at + by;
  if (at >= view.past.length) return fetchLive(view);
  view.at = Math.max(0, at);
  if (view.past[view.at]) draw(view, view.past[view.at]);
}

function draw(view, event) {
  view.event = event;
  const { fragments } = event;
  text(view.title, `Event ${count(event.event)} of run ${event.run}, ${bytes(event.size)}`);
  setIcon(view.badge, event.complete ? ofNode("up") : ofNode("lost"));
  text(view.verdict, event.complete ? "complete" : "incomplete");
  text(view.of, event.of ? `of ${count(event.of)}` : "");
  const end = view.live ? false : event.of ? view.index + 1 >= event.of : false;
  view.back.disabled = view.live ? view.at <= 0 : view.index <= 0;
  view.forth.disabled = end;
  const largest = Math.max(1, ...fragments.map((one) => one.size));
  follow(
    view.list,
    fragments,
    (one) => one.source,
    (one) => line(view, one),
    (node, one) => {
      const kind = ofFragment(one.state);
      setIcon(node.children[1], kind);
      text(node.children[2], one.state);
      width(node.children[3].firstChild, one.size / largest);
      attr(node.children[3].firstChild, "class", `bar ${one.state === "good" ? "low" : "full"}`);
      text(node.children[4], bytes(one.size));
      text(node.children[5], one.state === "missing" ? "" : (one.checksum ?? ""));
    },
  );
  if (!fragments.some((one) => one.source === view.source)) view.source = fragments[0]?.source ?? null;
  choose(view, view.source);
}

function line(view, one) {
  return el(
    "div",
    { class: "fragment", role: "option", id: `fragment-${one.source}`, onclick: () => choose(view, one.source) },
    el("b", { text: one.source }),
    icon(ofFragment("good")),
    el("span"),
    el("span", { class: "meter" }, el("i", { class: "bar low" })),
    el("span", { class: "number" }),
    el("span", { class: "mono small" }),
  );
}

function choose(view, source) {
  view.source = source;
  const { fragments, run } = view.event;
  for (const node of view.list.children) {
    const chosen = node.id === `fragment-${source}`;
    attr(node, "aria-selected", String(chosen));
    if (chosen) attr(view.list, "aria-activedescendant", node.id);
  }
  const one = fragments.find((fragment) => fragment.source === source);
  const identity = [known(one?.counter) && `counter ${one.counter}`, known(one?.mark) && `mark ${one.mark}`];
  const about = one && [`${source}: ${count(one.size)} bytes`, one.state, ...identity].filter(Boolean).join(", ");
  text(view.hexTitle, about ?? "Bytes");
  const [file, index] = [view.file, view.index];
  const more = view.live
    ? null
    : (offset) =>
        get(
          `api/fragment?run=${run}&file=${encodeURIComponent(file)}&index=${index}&source=${encodeURIComponent(source)}&offset=${offset}`,
        );
  view.hex.set(one?.bytes ?? "", one?.size ?? 0, more);
}

function keys(view, event) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by || !view.event) return;
  event.preventDefault();
  const { fragments } = view.event;
  const at = fragments.findIndex((one) => one.source === view.source) + by;
  choose(view, fragments[Math.max(0, Math.min(fragments.length - 1, at))].source);
  document.getElementById(`fragment-${view.source}`)?.scrollIntoView({ block: "nearest" });
}
