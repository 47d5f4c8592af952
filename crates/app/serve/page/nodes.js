// The nodes as the page shows them: how full each is, what it waits for, and which one the others wait for.

import { known, count, bytes, several, sum } from "./units.js";

/** From this part on a buffer is called high, and full. */
const HIGH = 0.6;
const FULL = 0.9;

/** The word for how full a buffer is; it also names the class of its bar. */
export function level(fill) {
  if (!known(fill)) return "unknown";
  return fill >= FULL ? "full" : fill >= HIGH ? "high" : "low";
}

const part = (held, most) => (known(held) && known(most) && most > 0 ? held / most : null);

function fullest(...parts) {
  const good = parts.filter(known);
  return good.length ? Math.max(...good) : null;
}

/** The nodes of one kind, in order. */
const ofKind = (status, kind) => (status?.nodes ?? []).filter((node) => node.kind === kind);

/** True if rates are those of a run that goes on. */
export const live = (status) =>
  Boolean(status?.now_rates) && ["running", "degraded", "paused", "splitting", "draining"].includes(status.state);

function readout(node, rates) {
  const held = part(rates.held_events, rates.most_events);
  const stored = part(rates.held_bytes, rates.most_bytes);
  return {
    ...node,
    rates,
    hz: rates.fragments_hz,
    bytes: rates.bytes_per_s,
    fill: fullest(held, stored),
    held: rates.held_events,
    blocked: (fullest(held, stored) ?? 0) >= FULL,
    waits: [],
  };
}

/** Filters and storage hold the builder up when events that wait for them take much of its slots. */
const heldByStorage = (rates) => (part(rates.waiting_events, rates.slots) ?? 0) >= HIGH;

function builder(node, rates) {
  return {
    ...node,
    rates,
    hz: rates.stored_hz,
    bytes: rates.bytes_per_s,
    stored: rates.stored_bytes_per_s,
    fill: part(rates.open_events, rates.slots),
    held: rates.open_events,
    queue: rates.waiting_events,
    storageHeld: heldByStorage(rates),
    queueFill: part(rates.waiting_events, rates.slots),
    blocked: (part(rates.open_events, rates.slots) ?? 0) >= FULL,
    waits: rates.waiting_for ?? [],
  };
}

/** All readout and builder units with their rates; `waitedFor` says how many fragments of a node others wait for. */
export function units(status) {
  const rates = live(status) ? status.now_rates : {};
  const readouts = ofKind(status, "readout").map((node, index) => readout(node, rates.readouts?.[index] ?? {}));
  const builders = ofKind(status, "builder").map((node, index) => builder(node, rates.builders?.[index] ?? {}));
  const waitedFor = new Map();
  for (const { waits } of builders) {
    for (const { source, fragments } of waits) waitedFor.set(source, (waitedFor.get(source) ?? 0) + (fragments ?? 0));
  }
  const ofReadouts = faultsOfReadouts(status?.record);
  const slow = new Set([status?.slowest?.node, status?.limit?.what].filter(Boolean));
  for (const unit of [...readouts, ...builders]) {
    unit.waitedFor = waitedFor.get(unit.name) ?? 0;
    unit.faults = ofReadouts?.[unit.name];
    unit.slow = slow.has(unit.name);
    unit.gone = unit.state === "lost" || unit.state === "absent" || unit.state === "failed";
  }
  return { readouts, builders, filters: ofKind(status, "filter"), manager: ofKind(status, "manager")[0] ?? null };
}

/**
 * Leaves only those waits of builders that were there in the status before, too: a fragment that is just on its way is no
 * news. Returns all waits, for the next status.
 */
export function steadyWaits(status, before = new Set()) {
  const all = new Set();
  for (const [index, builder] of (status.now_rates?.builders ?? []).entries()) {
    const name = (wait) => `${index} ${wait.source}`;
    const waits = builder.waiting_for ?? [];
    waits.forEach((wait) => all.add(name(wait)));
    builder.waiting_for = waits.filter((wait) => before.has(name(wait)));
  }
  return all;
}

/** The nodes that have no part in the run any more. */
export const lost = (status) =>
  (status?.nodes ?? []).filter((node) => node.state === "lost" || node.state === "failed");

/** What a readout unit says about itself, line by line. */
export function aboutReadout(unit) {
  const { rates } = unit;
  return about(unit, [
    known(unit.hz) && `${count(unit.hz)} fragments/s, ${bytes(unit.bytes)}/s`,
    known(rates.held_events) && `holds ${count(rates.held_events)} of ${count(rates.most_events)} events`,
    known(rates.held_bytes) && `holds ${bytes(rates.held_bytes)} of ${bytes(rates.most_bytes)}`,
    unit.faults && faultWords(unit.faults),
    unit.waitedFor > 0 && `builders wait for ${several(unit.waitedFor, "fragment")} of it`,
  ]);
}

/** What a builder unit says about itself. */
export function aboutBuilder(unit) {
  const { rates } = unit;
  const first = unit.waits
    .slice(0, 4)
    .map(({ source, fragments }) => `waits for ${several(fragments, "fragment")} of ${source}`);
  return about(unit, [
    known(rates.fragments_hz) && `${count(rates.fragments_hz)} fragments/s, ${bytes(rates.bytes_per_s)}/s`,
    known(rates.open_events) && `${count(rates.open_events)} of ${count(rates.slots)} slots in use`,
    known(rates.stored_hz) && `stores ${count(rates.stored_hz)} events/s, ${bytes(rates.stored_bytes_per_s)}/s`,
    unit.queue > 0 && `${count(unit.queue)} events wait for the storage`,
    ...first,
    unit.waits.length > 4 && `and of ${unit.waits.length - 4} more`,
  ]);
}

function about(unit, lines) {
  const head = `${unit.name}: ${unit.state}${unit.reason ? ` – ${unit.reason}` : ""}`;
  const slow = unit.slow && "the others wait for this one";
  return [head, slow, ...lines].filter(Boolean).join("\n");
}

/** The stages of the event builder in order, each with its fullest node. For the summary of the first view. */
export function stages(status) {
  const { readouts, builders } = units(status);
  const rates = live(status) ? status.now_rates : {};
  const most = (all) => all.reduce((best, unit) => ((unit.fill ?? -1) > (best?.fill ?? -1) ? unit : best), null);
  const [fullReadout, fullBuilder] = [most(readouts), most(builders)];
  const asked = (rates.trigger_hz ?? 0) + (rates.inhibited_hz ?? 0);
  return {
    turnedAway: asked > 0 ? (rates.inhibited_hz ?? 0) / asked : null,
    readouts: {
      fill: fullReadout?.fill ?? null,
      name: fullReadout?.name,
      held: sum(readouts.map((unit) => unit.held)),
      number: readouts.length,
    },
    builders: {
      fill: fullBuilder?.fill ?? null,
      name: fullBuilder?.name,
      held: sum(builders.map((unit) => unit.held)),
      number: builders.length,
    },
    waiting: builders.flatMap((unit) => unit.waits.map((wait) => ({ ...wait, builder: unit.name }))),
    queue: sum(builders.map((unit) => unit.queue)),
    queueFill: fullest(...builders.map((unit) => unit.queueFill)),
    stored: sum(builders.map((unit) => unit.stored)),
    storedHz: sum(builders.map((unit) => unit.hz)),
  };
}

const BAD = ["missing", "cut", "corrupted", "oversized", "mismatch"];
export const FAULT_ORDER = [
  ...BAD,
  "late",
  "duplicate",
  "damaged",
  "out_of_sequence",
  "resynchronised",
  "out_of_step",
  "early",
  "unplaced",
  "wrapped",
  "unexpected",
];

/** The name of a kind of fault in words. */
export const faultWord = (kind) => kind.replaceAll("_", " ");

/** Faults as words, such as `12 missing, 1 late`; only those of some kinds, if these are given. */
export const faultWords = (faults, kinds = FAULT_ORDER) =>
  kinds
    .filter((kind) => faults?.[kind] > 0)
    .map((kind) => `${count(faults[kind])} ${faultWord(kind)}`)
    .join(", ");

/** Kinds of faults that spoil an event. */
export const SERIOUS = BAD;

/** The faults of each readout unit by its name. */
const faultsOfReadouts = (record) =>
  Object.fromEntries((record?.readouts ?? []).map(({ faults }, index) => [`ru${index}`, faults]).filter(([, faults]) => faults));

/** Faults by source: rows of `{source, faults}`, the worst first; null if only the sum is known. */
export function faultsBySource(record) {
  const given = record?.bundles?.faults ?? faultsOfReadouts(record);
  if (!given) return null;
  const weight = (faults) => BAD.reduce((all, kind) => all + (faults[kind] ?? 0), 0);
  const name = (key) => (/^\d+$/.test(key) ? `source ${key}` : key);
  return Object.entries(given)
    .map(([key, faults]) => ({ source: name(key), faults, weight: weight(faults) }))
    .filter(({ faults }) => Object.values(faults).some((number) => number > 0))
    .sort((a, b) => b.weight - a.weight);
}
