// The head of the page: the state, the run, the buttons, and the banners for what needs attention.

import { el, text, attr, flag, show, follow } from "./dom.js";
import { span, clock, several } from "./units.js";
import { COMMANDS, ofState, ofNode, ofSource, icon, setIcon, reason } from "./states.js";
import { post } from "./api.js";
import { lost } from "./nodes.js";
import { waitingWords } from "./sources.js";
import { askRun } from "./dialogs.js";

const SURE_MS = 4000;
const TYPES = ["physics", "calibration", "cosmics", "test"];

/** Makes the head. `app` knows the status and whether it is stale. */
export function makeHeader(app) {
  const head = { app, buttons: new Map(), asked: null };
  head.badge = icon(ofState(""));
  head.word = el("strong", { class: "state-word", text: "connecting" });
  head.state = el("div", { class: "state tone-idle" }, head.badge, head.word);
  head.run = el("span", { class: "run-number" });
  head.elapsed = el("span", { class: "elapsed" });
  head.facts = el("span", { class: "facts" });
  head.nodes = el("a", { class: "node-count", href: "#builder" });
  head.clock = el("span", { class: "asof" });
  head.said = el("p", { class: "said", role: "status", hidden: true });
  const buttons = el(
    "div",
    { class: "buttons", role: "group", "aria-label": "Commands" },
    ...COMMANDS.map((command) => button(head, command)),
  );
  const title = el(
    "div",
    { class: "title" },
    el("div", { class: "run-line" }, head.run, head.elapsed),
    el("div", { class: "fact-line" }, head.facts, head.nodes, head.clock),
  );
  document.getElementById("header").append(head.state, title, buttons, head.said);
  head.update = (status) => update(head, status);
  return head;
}

function button(head, command) {
  const node = el("button", {
    type: "button",
    class: `command ${command.name}`,
    text: command.word,
    "aria-disabled": "true",
  });
  node.addEventListener("click", () => press(head, command, node));
  node.addEventListener("blur", () => unsure(head, command));
  node.addEventListener("keydown", (event) => event.key === "Escape" && unsure(head, command));
  head.buttons.set(command.name, node);
  return node;
}

/** Says something below the buttons; an empty text takes it away. */
function say(head, message, bad = false) {
  text(head.said, message);
  flag(head.said, "bad", bad);
  show(head.said, Boolean(message));
}

/** A second stop gives up fragments, so that it asks for a second click, as abort does. */
const needsSure = (command, status) => command.sure || (command.name === "stop" && status?.state === "draining");

function wordOf(command, status) {
  return command.name === "stop" && status?.state === "draining" ? "Stop now" : command.word;
}

function unsure(head, command) {
  if (head.asked !== command.name) return;
  head.asked = null;
  clearTimeout(head.timer);
  say(head, "");
  paint(head, command);
}

async function press(head, command, node) {
  const { status } = head.app;
  const why = reason(command.name, status, head.app.stale);
  if (why) return say(head, `${wordOf(command, status).replace("…", "")}: ${why}.`);
  if (needsSure(command, status) && head.asked !== command.name) {
    head.asked = command.name;
    head.timer = setTimeout(() => unsure(head, command), SURE_MS);
    paint(head, command);
    const what =
      command.name === "abort"
        ? "Open events will be counted as lost."
        : "Open events will be stored with the fragments that are there.";
    return say(head, `${what} Press again to do it.`);
  }
  unsure(head, command);
  await give(head, command, node);
}

async function give(head, command, node) {
  let body = { command: command.name };
  if (command.name === "start" || command.name === "split") {
    const known = localTypes(head.app.status);
    const answer = await askRun(known, command.name === "split");
    if (!answer) return;
    body = { ...body, ...answer };
  }
  say(head, "");
  flag(node, "sent", true);
  try {
    await post("api/command", body);
  } catch (error) {
    say(head, [error.message, error.hint].filter(Boolean).join(" "), true);
  }
  flag(node, "sent", false);
}

/** The types of runs that are offered, the last one first. */
function localTypes(status) {
  const last = status?.run?.type;
  return last ? [last, ...TYPES.filter((type) => type !== last)] : TYPES;
}

function paint(head, command) {
  const { status, stale } = head.app;
  const node = head.buttons.get(command.name);
  const why = reason(command.name, status, stale);
  const asked = head.asked === command.name;
  text(node, asked ? `${wordOf(command, status)}: sure?` : wordOf(command, status));
  flag(node, "sure", asked);
  attr(node, "aria-disabled", why ? "true" : "false");
  attr(node, "title", why ? `Not now: ${why}` : command.does);
  // Pause and resume share one place: one of them is always without meaning.
  const paused = status?.state === "paused";
  if (command.name === "pause") show(node, !paused);
  if (command.name === "resume") show(node, paused);
}

function update(head, status) {
  COMMANDS.forEach((command) => paint(head, command));
  flag(document.body, "stale", head.app.stale);
  if (!status) return;
  const waiting = waitingWords(status);
  const kind = { ...ofState(status.state), ...(waiting.length && status.state === "running" ? ofState("degraded") : {}) };
  text(head.word, status.state);
  attr(head.state, "class", `state tone-${kind.tone}`);
  attr(head.state, "title", kind.means);
  setIcon(head.badge, kind);
  const { run } = status;
  text(
    head.run,
    run
      ? `Run ${run.number}${run.type ? ` · ${run.type}` : ""}${run.comment ? ` · ${run.comment}` : ""}`
      : "No run yet",
  );
  attr(head.run, "title", head.run.textContent);
  text(head.elapsed, run ? span(run.seconds) : "");
  text(
    head.facts,
    [status.experiment, status.protocol, status.transport, `evb ${status.version}`].filter(Boolean).join(" · "),
  );
  text(head.clock, `${status.role === "operate" ? "" : `${status.role} · `}${clock(status.now)} UTC`);
  nodesLine(head, status);
}

function nodesLine(head, status) {
  const nodes = status.nodes ?? [];
  const gone = nodes.filter((node) => node.state !== "up");
  const names = gone
    .slice(0, 4)
    .map((node) => `${node.name} ${node.state}`)
    .join(", ");
  const more = gone.length > 4 ? ` and ${gone.length - 4} more` : "";
  const ready = gone.length
    ? `${nodes.length - gone.length} of ${nodes.length} nodes up: ${names}${more}`
    : `${several(nodes.length, "node")} up`;
  text(head.nodes, nodes.length ? ready : "no nodes");
  flag(
    head.nodes,
    "bad",
    gone.some((node) => node.state === "lost" || node.state === "failed"),
  );
}

/** The banners below the head, most important first. */
export function banners(app) {
  const { status } = app;
  const all = [];
  if (app.stale) {
    all.push({
      key: "stale",
      kind: { shape: "hourglass", tone: "warn" },
      head: "This page is stale",
      words: `Nothing came from the service since ${clock(app.staleSince)} UTC. The page tries again by itself.`,
    });
  }
  if (app.failure)
    all.push({ key: "failure", kind: ofNode("lost"), head: app.failure.message, words: app.failure.hint });
  if (status?.error)
    all.push({ key: "error", kind: ofNode("lost"), head: status.error.error, words: status.error.hint });
  const waiting = waitingWords(status);
  for (const { source, head, words, state } of waiting.slice(0, 3))
    all.push({ key: `source ${source}`, kind: ofSource(state, true), head, words });
  if (waiting.length > 3)
    all.push({
      key: "more sources",
      kind: ofSource("silent", true),
      head: `Waiting for ${waiting.length - 3} more sources`,
      words: "See the table of live sources.",
    });
  const gone = lost(status);
  for (const node of gone.slice(0, 3)) {
    all.push({ key: node.name, kind: ofNode("lost"), head: `${node.name} is ${node.state}`, words: node.reason ?? "" });
  }
  if (gone.length > 3)
    all.push({
      key: "more",
      kind: ofNode("lost"),
      head: `${gone.length - 3} more nodes are lost`,
      words: "See the event builder.",
    });
  follow(
    document.getElementById("banners"),
    all,
    (one) => one.key,
    makeBanner,
    (node, one) => {
      setIcon(node.children[0], one.kind);
      text(node.children[1], one.head);
      text(node.children[2], one.words ?? "");
    },
  );
}

const makeBanner = (one) =>
  el(
    "div",
    { class: `banner tone-${one.kind.tone}`, role: "alert" },
    icon(one.kind),
    el("b"),
    el("span", { class: "lines" }),
  );
