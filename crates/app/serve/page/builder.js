// The view `Event builder`: the picture, what limits the run, and the numbers of each node.

import { el, text, show, follow, cells, table, flag, width, attr } from "./dom.js";
import { DASH, bytes, count, hertz, known, percent, rate, several } from "./units.js";
import { icon, setIcon, ofNode, ofState } from "./states.js";
import { units, level, live, faultWords } from "./nodes.js";
import { makePicture, legend } from "./picture.js";

/** Makes the view. */
export function makeBuilder(app) {
  const view = { app, picture: makePicture() };
  view.limit = el("p", { class: "limit" }, icon(ofState("initial")), el("b"), el("span", { class: "lines" }));
  view.readouts = unitTable("Readout units", [
    "unit",
    "state",
    "full",
    "fragments",
    "bytes",
    "events held",
    "bytes held",
    "note",
  ]);
  view.builders = unitTable("Builder units", [
    "unit",
    "state",
    "full",
    "fragments",
    "bytes",
    "slots in use",
    "for storage",
    "stored",
    "note",
  ]);
  const others = otherTable();
  view.others = others;
  const node = el(
    "div",
    {},
    el("section", { class: "panel" }, view.limit, view.picture.node, legend()),
    el("div", { class: "two wide-two" }, view.readouts.node, view.builders.node),
    others.node,
  );
  const update = (status) => draw(view, status);
  return { node, update, shown: () => app.status && update(app.status) };
}

function unitTable(title, heads) {
  const { node, body } = table(
    heads.map((head, index) => ({ text: head, number: index > 2 && head !== "note" })),
    title,
  );
  const box = el(
    "section",
    { class: "panel" },
    el("h2", { text: title }),
    el("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": title }, node),
  );
  return { node: box, body };
}

function otherTable() {
  const { node, body } = table(["node", "kind", "state", "why"], "Other nodes");
  return { node: el("section", { class: "panel" }, el("h2", { text: "Other nodes" }), node), body };
}

function draw(view, status) {
  view.picture.update(status);
  limit(view.limit, status);
  const all = units(status);
  fill(view.readouts.body, all.readouts, (unit) => [
    hertz(unit.hz),
    rate(unit.bytes),
    share(unit.rates.held_events, unit.rates.most_events, count),
    bytes(unit.rates.held_bytes),
    note(unit, [unit.waitedFor > 0 && `${several(unit.waitedFor, "fragment")} waited for`, faultWords(unit.faults)]),
  ]);
  fill(view.builders.body, all.builders, (unit) => [
    hertz(unit.rates.fragments_hz),
    rate(unit.bytes),
    share(unit.rates.open_events, unit.rates.slots, count),
    known(unit.queue) ? count(unit.queue) : DASH,
    rate(unit.stored),
    note(unit, [waits(unit.waits)]),
  ]);
  const others = (status.nodes ?? []).filter((node) => node.kind !== "readout" && node.kind !== "builder");
  show(view.others.node, others.length > 0);
  follow(
    view.others.body,
    others,
    (node) => node.name,
    () => el("tr"),
    (line, node) => cells(line, [node.name, node.kind, node.state, node.reason ?? ""]),
  );
}

const share = (held, most, words) => (known(held) ? `${words(held)}${known(most) ? ` / ${words(most)}` : ""}` : DASH);

const note = (unit, more) => [unit.reason, unit.slow && "the slowest", ...more].filter(Boolean).join("; ");

function waits(all) {
  if (!all.length) return "";
  return `waits for ${all
    .slice(0, 3)
    .map(({ source, fragments }) => `${count(fragments)} of ${source}`)
    .join(", ")}${all.length > 3 ? " and others" : ""}`;
}

function limit(node, status) {
  const { limit: by, slowest } = status;
  setIcon(node.children[0], by || slowest ? ofState("degraded") : live(status) ? ofNode("up") : ofState("initial"));
  const head = by
    ? `${{ cause: "The fault", consequence: "The consequence" }[by.role] ?? "The limit"}: ${by.what}`
    : slowest
      ? `${slowest.node} is the slowest`
      : live(status)
        ? "No unit slows the others"
        : "Nothing is being built";
  text(node.children[1], head);
  text(
    node.children[2],
    by ? [by.why, by.how_known, by.try && `try: ${by.try}`].filter(Boolean).map(sentence).join(" ") : slowest ? slowest.why : "",
  );
}

function makeLine(unit) {
  const state = el("td", { class: "state-cell" }, icon(ofNode(unit.state)), el("span"));
  const bar = el("i", { class: "bar" });
  return el("tr", {}, el("td", {}), state, el("td", {}, el("div", { class: "meter" }, bar)));
}

function fill(body, all, values) {
  follow(
    body,
    all,
    (unit) => unit.name,
    makeLine,
    (line, unit) => {
      flag(line, "gone", unit.gone);
      flag(line, "care", unit.slow);
      text(line.children[0], unit.name);
      setIcon(line.children[1].children[0], ofNode(unit.state));
      text(line.children[1].children[1], unit.state);
      const bar = line.children[2].firstChild.firstChild;
      width(bar, unit.fill);
      attr(bar, "class", `bar ${level(unit.fill)}`);
      attr(bar.parentNode, "title", known(unit.fill) ? percent(unit.fill) : null);
      cells(line, [null, null, null, ...values(unit)], [3, 4, 5, 6, 7]);
    },
  );
}

const sentence = (words) => `${words[0].toUpperCase()}${words.slice(1)}.`;
