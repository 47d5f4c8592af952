// The states of run control and of nodes, and the commands: their words, shapes and meanings.

import { svg, attr } from "./dom.js";

/** Shapes of 16 x 16, so that colour alone never distinguishes two states. */
const SHAPES = {
  ring: "M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2zm0 2a4 4 0 1 1 0 8 4 4 0 1 1 0-8z",
  hourglass: "M3 1h10v3L9 8l4 4v3H3v-3l4-4-4-4z",
  ready: "M8 1a7 7 0 1 0 0 14A7 7 0 1 0 8 1zm-1 10L3.5 7.7 5 6.3l2 2L11 4.3l1.5 1.4z",
  play: "M3 1l11 7-11 7z",
  warning: "M8 1l7.5 14H.5zM7 6v4.5h2V6zm0 5.5v2h2v-2z",
  bars: "M3 2h4v12H3zm6 0h4v12H9z",
  down: "M6 1h4v5h4L8 12 2 6h4zM1 13h14v2H1z",
  square: "M2 2h12v12H2z",
  cross:
    "M5 1h6l4 4v6l-4 4H5l-4-4V5zm.2 2.8L3.8 5.2 6.6 8l-2.8 2.8 1.4 1.4L8 9.4l2.8 2.8 1.4-1.4L9.4 8l2.8-2.8-1.4-1.4L8 6.6z",
  tick: "M6 12.5L1.5 8 3 6.5l3 3 7-7L14.5 4z",
  gap: "M2 2h3v2H4v2H2zm9 0h3v4h-2V4h-1zM2 10h2v2h1v2H2zm10 0h2v4h-3v-2h1z",
  question:
    "M8 1a7 7 0 1 0 0 14A7 7 0 1 0 8 1zM5 6.2C5 4.3 6.3 3.2 8.1 3.2S11 4.3 11 6c0 1.2-.6 1.9-1.4 2.5-.5.4-.7.6-.7 1.3H7.1c0-1.3.4-1.9 1.2-2.5.6-.5.9-.8.9-1.3 0-.7-.4-1.1-1.1-1.1S6.9 5.5 6.9 6.2zM7 11h2v2H7z",
  info: "M8 1a7 7 0 1 0 0 14A7 7 0 1 0 8 1zM7 4h2v2H7zm0 3h2v5H7z",
};

/** State of run control: its shape, its tone (a class), and what it means. */
const STATES = {
  initial: { shape: "ring", tone: "idle", means: "nothing is configured" },
  configuring: { shape: "hourglass", tone: "work", means: "nodes join and connect" },
  configured: { shape: "ready", tone: "work", means: "all nodes are connected" },
  running: { shape: "play", tone: "good", means: "triggers are taken" },
  degraded: { shape: "warning", tone: "warn", means: "the run goes on without a node" },
  paused: { shape: "bars", tone: "hold", means: "triggers are turned away" },
  splitting: { shape: "hourglass", tone: "work", means: "the next run begins, with the same nodes" },
  draining: { shape: "down", tone: "work", means: "what was triggered is built" },
  stopped: { shape: "square", tone: "idle", means: "the run is over" },
  failed: { shape: "cross", tone: "bad", means: "the configuration or the run failed" },
  interrupted: { shape: "warning", tone: "warn", means: "the service ended before the run did" },
};

const NODES = {
  up: { shape: "tick", tone: "good" },
  lost: { shape: "cross", tone: "bad" },
  failed: { shape: "cross", tone: "bad" },
  absent: { shape: "gap", tone: "idle" },
};

/** A source that the run waits for has another tone: `ofSource` knows. */
const SOURCES = {
  never_connected: { shape: "gap", tone: "idle" },
  connected: { shape: "ring", tone: "idle" },
  sending: { shape: "play", tone: "good" },
  silent: { shape: "bars", tone: "idle" },
  disconnected: { shape: "cross", tone: "warn" },
  out_of_step: { shape: "warning", tone: "warn" },
  ended: { shape: "square", tone: "idle" },
};

const FRAGMENTS = {
  good: { shape: "tick", tone: "good" },
  missing: { shape: "gap", tone: "warn" },
};

const LEVELS = {
  info: { shape: "info", tone: "idle" },
  warning: { shape: "warning", tone: "warn" },
  error: { shape: "cross", tone: "bad" },
};

const VERDICTS = {
  good: { shape: "tick", tone: "good" },
  cannot_tell: { shape: "question", tone: "warn" },
  not_good: { shape: "cross", tone: "bad" },
};

const UNKNOWN = { shape: "ring", tone: "idle", means: "" };

export const ofState = (name) => STATES[name] ?? UNKNOWN;
export const ofNode = (name) => NODES[name] ?? { shape: "hourglass", tone: "work" };
export const ofSource = (name, waited) => ({ ...(SOURCES[name] ?? UNKNOWN), ...(waited ? { tone: "warn" } : {}) });
export const ofFragment = (name) => FRAGMENTS[name] ?? { shape: "cross", tone: "bad" };
export const ofLevel = (name) => LEVELS[name] ?? LEVELS.info;

export const ofVerdict = (name) => VERDICTS[name] ?? UNKNOWN;

/** True in states in which triggers are, or may be, taken. */
export const inRun = (state) => ["running", "degraded", "paused", "splitting", "draining"].includes(state);

/** True if an experiment can be put in: no run goes on, and none begins. */
export const betweenRuns = (state) => ["initial", "configured", "stopped", "failed"].includes(state);

/** The outline of a shape. */
export const outline = (shape) => SHAPES[shape];

/** An icon; decoration only: a word is beside it. */
export function icon(kind) {
  const path = svg("path", { d: SHAPES[kind.shape], "fill-rule": "evenodd" });
  return svg("svg", { class: `icon tone-${kind.tone}`, viewBox: "0 0 16 16", "aria-hidden": "true" }, path);
}

/** Makes an icon another one. */
export function setIcon(node, kind) {
  attr(node, "class", `icon tone-${kind.tone}`);
  attr(node.firstChild, "d", SHAPES[kind.shape]);
}

/** The commands in the order of their buttons. `sure` asks for a second click. */
export const COMMANDS = [
  { name: "configure", word: "Configure", does: "Let the nodes join and connect" },
  { name: "start", word: "Start…", does: "Begin a run" },
  { name: "pause", word: "Pause", does: "Turn triggers away until you resume" },
  { name: "resume", word: "Resume", does: "Take triggers again" },
  { name: "split", word: "Next run…", does: "End this run and begin the next one, without a stop" },
  { name: "stop", word: "Stop", does: "Take no more triggers, build what was triggered, close the files" },
  { name: "abort", word: "Abort", does: "End the run without its open events: they are counted as lost", sure: true },
];

/** Why a command cannot be given now; null if it can. */
export function reason(command, status, stale) {
  if (stale) return "there is no connection to the service";
  if (!status) return "the state is not known yet";
  if (status.role === "watch") return "you may watch, but not give commands";
  if (!(status.commands ?? []).includes(command)) return `it means nothing while the state is ${status.state}`;
  return null;
}
