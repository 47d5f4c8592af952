// A record in words and tables: the verdict with its findings, the account of events, and the counts of all nodes.

import { el, text, show, follow, cells, table, flag } from "./dom.js";
import { DASH, bytes, count, hertz, known, percent, rate, si, span } from "./units.js";
import { icon, ofLevel, ofVerdict } from "./states.js";
import { FAULT_ORDER, faultWord } from "./nodes.js";

/** Kinds of findings that leave the result undecided. */
const UNDECIDED = ["not_confirmed", "rate_not_judged"];

/** Kinds of findings that are remarks only. */
const REMARKS = [
  "no_steady_state",
  "lengthened",
  "not_modelled",
  "early",
  "ambiguous",
  "too_late",
  "unsliced",
  "repeated",
  "refused",
  "link_held_up",
  "front_end_problem",
  "no_second_identity",
  "no_filter_memory",
  "lost_filter_units",
  "no_multicast",
  "dead_link",
  "apart_lost",
  "noisy_channel",
  "silent_channel",
  "not_filled",
  "reassigned",
];

/** The shape of a kind of finding, by its effect on the verdict. */
function ofKind(kind) {
  if (REMARKS.includes(kind)) return ofLevel("info");
  return ofVerdict(UNDECIDED.includes(kind) ? "cannot_tell" : "not_good");
}

/** Makes the list of findings; hidden if there are none. */
export function findings() {
  const list = el("ul", { class: "findings" });
  const node = el("section", { class: "panel", hidden: true }, el("h2", { text: "Findings" }), list);
  const make = (finding) =>
    el(
      "li",
      {},
      icon(ofKind(finding.kind)),
      el("b"),
      el("span", { class: "lines" }),
      el("span", { class: "small lines" }),
    );
  const update = (record) => {
    const all = record?.findings ?? [];
    show(node, all.length > 0);
    follow(
      list,
      all,
      (one) => `${one.kind} ${one.subject}`,
      make,
      (item, one) => {
        text(item.children[1], one.subject);
        text(item.children[2], one.message);
        text(item.children[3], one.hint ?? "");
      },
    );
  };
  return { node, update };
}

const row = (word, value) => [el("dt", { text: word }), el("dd", { text: value })];

/** A list of names and values. */
export const facts = (pairs) =>
  el(
    "dl",
    { class: "facts-list" },
    ...pairs
      .filter(([, value]) => value !== null && value !== undefined && value !== "")
      .flatMap(([word, value]) => row(word, value)),
  );

const micro = (value) => (known(value) ? si(value * 1e-6, "s") : DASH);

/** The verdict of a run in words, with its icon; `open` while the run continues. */
export const verdict = (name) =>
  el("span", { class: "verdict" }, icon(ofVerdict(name)), name ? name.replace("_", " ") : "open");

/** Everything that a record says; an array of elements. */
export function recordParts(record) {
  const found = findings();
  found.update(record);
  return [
    found.node,
    el("div", { class: "two" }, account(record), speeds(record)),
    faults(record),
    units(record),
    streams(record),
  ].filter(Boolean);
}

function account(record) {
  const { events, trigger } = record;
  return el(
    "section",
    { class: "panel" },
    el("h3", { text: "Account of events" }),
    facts([
      ["triggered", count(events.triggered)],
      ["built", count(events.built)],
      ["incomplete", count(events.incomplete)],
      ["rejected", count(events.rejected)],
      ["lost", count(events.lost)],
      ["reassigned", count(events.reassigned)],
      ["turned away", `${count(trigger?.inhibited)} of ${count(trigger?.offered)}`],
    ]),
  );
}

function speeds(record) {
  const { latency_us: latency, window } = record;
  return el(
    "section",
    { class: "panel" },
    el("h3", { text: "Rates and latency" }),
    facts([
      ["duration", span(record.seconds)],
      ["event rate", hertz(record.event_rate_hz)],
      ["throughput", rate(record.throughput_bytes_per_s)],
      [
        "rates are of",
        window?.steady
          ? `the steady window, ${window.from_s.toFixed(1)} s to ${window.to_s.toFixed(1)} s`
          : "the whole time",
      ],
      [
        "latency",
        latency && `half below ${micro(latency.p50)}, 99 % below ${micro(latency.p99)}, longest ${micro(latency.max)}`,
      ],
      ["protocol", `${record.protocol}, ${record.transport}`],
      ["seed", String(record.seed)],
    ]),
  );
}

function faults(record) {
  const seen = FAULT_ORDER.filter((kind) => record.faults?.[kind] > 0);
  if (!seen.length) return null;
  return el(
    "section",
    { class: "panel" },
    el("h3", { text: "Faults" }),
    facts(seen.map((kind) => [faultWord(kind), count(record.faults[kind])])),
  );
}

function filled(heads, rows, label) {
  const numbers = heads.map((_, index) => index).slice(1);
  const { node, body } = table(
    heads.map((head, index) => ({ text: head, number: index > 0 })),
    label,
  );
  for (const values of rows) {
    const line = el("tr");
    cells(line, values, numbers);
    body.append(line);
  }
  return el("div", { class: "scroll" }, node);
}

function units(record) {
  const readouts = (record.readouts ?? []).map((one, index) => [
    `ru${index}`,
    count(one.fragments),
    bytes(one.bytes),
    rate(record.per_source_bytes_per_s?.[index]),
    count(one.busy),
    count(one.most_events),
    bytes(one.most_bytes),
    count(one.rejected),
  ]);
  const builders = (record.builders ?? []).map((one, index) => [
    `bu${index}`,
    count(one.built),
    count(one.incomplete),
    count(one.rejected),
    rate(record.per_destination_bytes_per_s?.[index]),
    count(one.stored),
    bytes(one.stored_bytes),
    count(one.asked),
  ]);
  const lost = new Set(record.lost_nodes ?? []);
  const parts = [
    el(
      "section",
      { class: "panel" },
      el("h3", { text: "Readout units" }),
      filled(
        ["unit", "fragments", "bytes", "sent", "times busy", "most events", "most bytes", "refused"],
        readouts,
        "Readout units",
      ),
    ),
    el(
      "section",
      { class: "panel" },
      el("h3", { text: "Builder units" }),
      filled(
        ["unit", "built", "incomplete", "rejected", "received", "stored", "stored bytes", "asked"],
        builders,
        "Builder units",
      ),
    ),
  ];
  for (const part of parts) {
    for (const line of part.querySelectorAll("tbody tr")) {
      const name = line.firstChild;
      flag(line, "gone", lost.has(name.textContent));
      if (lost.has(name.textContent)) text(name, `${name.textContent} (lost)`);
    }
  }
  return el("div", { class: "two" }, ...parts);
}

function streams(record) {
  const { filter } = record;
  if (!filter) return null;
  const all = filter.accepted + filter.rejected + filter.quarantined;
  return el(
    "section",
    { class: "panel" },
    el("h3", { text: "Filters" }),
    facts([
      ["accepted", `${count(filter.accepted)} (${percent(filter.accepted / Math.max(1, all))})`],
      ["rejected", count(filter.rejected)],
      ["in quarantine", count(filter.quarantined)],
      ["decided", hertz(filter.decided_hz)],
    ]),
    filled(
      ["stream", "events", "bytes", "rate"],
      (filter.streams ?? []).map((one) => [one.name, count(one.events), bytes(one.bytes), hertz(one.events_hz)]),
      "Streams",
    ),
  );
}
