// The tiles of the first view: rate, throughput, losses, who slows whom, disk; and the chain of stages below them.

import { el, text, attr, flag, show, width, follow } from "./dom.js";
import { DASH, bytes, count, hertz, known, percent, rate, several, span, sum, si } from "./units.js";
import { sourceWord, waitingWords } from "./sources.js";
import { icon, setIcon, ofNode, ofState, inRun } from "./states.js";
import { level, live, stages } from "./nodes.js";

const SOON_S = 3600;
const CALM = ofNode("up");
const BAD = ofNode("lost");
const CARE = ofState("degraded");
const IDLE = ofState("initial");

function tile(title, withIcon = false) {
  const one = { big: el("div", { class: "big", text: DASH }), lines: el("div", { class: "small" }) };
  one.icon = withIcon ? icon(CALM) : null;
  one.node = el(
    "section",
    { class: "panel tile" },
    el("h3", { text: title }),
    el("div", { class: "big-row" }, one.icon, one.big),
    one.lines,
  );
  one.set = (big, lines, kind) => {
    text(one.big, big);
    if (one.icon) setIcon(one.icon, kind ?? CALM);
    follow(
      one.lines,
      lines.filter(Boolean).map((line, index) => ({ index, line })),
      (line) => line.index,
      () => el("div"),
      (node, { line }) => text(node, line),
    );
  };
  return one;
}

/** Makes the tiles. */
export function makeTiles() {
  const tiles = {
    rate: tile("Event rate"),
    bytes: tile("Throughput"),
    lost: tile("Lost and incomplete", true),
    slow: tile("Who slows whom", true),
    disk: tile("Disk", true),
  };
  tiles.slow.node.classList.add("wide");
  const node = el("div", { class: "tiles" }, ...Object.values(tiles).map((one) => one.node));
  return { node, update: (status) => update(tiles, status) };
}

function update(tiles, status) {
  const rates = live(status) ? status.now_rates : {};
  const { record } = status;
  const during = inRun(status.state);
  const ended = sum([rates.built_hz, rates.incomplete_hz, rates.rejected_hz]);
  tiles.rate.set(hertz(ended ?? (during ? null : record?.event_rate_hz)), [
    known(rates.trigger_hz) && `triggers ${hertz(rates.trigger_hz)}`,
    rates.incomplete_hz > 0
      ? `only ${hertz(rates.built_hz)} are complete`
      : rates.inhibited_hz > 0 && `turned away ${hertz(rates.inhibited_hz)}`,
    !during && record && "mean of the last run",
    record &&
      `${count(record.events?.built)} built${record.events?.rejected ? `, ${count(record.events.rejected)} rejected` : ""}`,
  ]);
  const stored = stages(status).stored;
  tiles.bytes.set(rate(rates.bytes_per_s ?? (during ? null : record?.throughput_bytes_per_s)), [
    known(stored) && `stored ${rate(stored)}`,
    !during && record && "mean of the last run",
    known(record?.latency_us?.p99) &&
      `latency ${seconds(record.latency_us.p50)}, 99 %: ${seconds(record.latency_us.p99)}`,
  ]);
  losses(tiles.lost, record, rates, during);
  slow(tiles.slow, status, during);
  disk(tiles.disk, status.disk);
}

const seconds = (us) => si(us * 1e-6, "s");

/** While a run goes on, open events are not yet lost, so that only those of ended runs count. */
function losses(tile, record, rates, during) {
  const { events, faults } = record ?? {};
  if (!events) return tile.set(DASH, ["No run yet."], IDLE);
  const bad = (events.incomplete ?? 0) + (during ? 0 : (events.lost ?? 0));
  const kinds = Object.entries(faults ?? {}).filter(([kind, number]) => number > 0 && kind !== "wrapped");
  tile.set(
    count(bad),
    [
      bad || kinds.length
        ? kinds
            .slice(0, 3)
            .map(([kind, number]) => `${count(number)} ${kind.replaceAll("_", " ")}`)
            .join(", ")
        : "every fragment came and was good",
      bad > 0 && `${percent(bad / Math.max(1, events.triggered))} of ${count(events.triggered)} events`,
      rates.incomplete_hz > 0 && `now ${hertz(rates.incomplete_hz)} incomplete`,
    ],
    bad > 0 ? BAD : CALM,
  );
  flag(tile.node, "bad", bad > 0);
}

function slow(tile, status, inside) {
  const { slowest, limit } = status;
  const [first, ...others] = waitingWords(status);
  flag(tile.node, "care", Boolean(first ?? limit ?? slowest));
  if (first)
    return tile.set(first.source, [`${sourceWord(first.state)} ${first.words}`, ...others.map(({ head }) => head)], CARE);
  const lines = limit && [`${limit.why}.`.replace("..", "."), limit.try && `Try: ${limit.try}`];
  if (limit) return tile.set(limit.what, lines, limit.role === "resource" ? CARE : BAD);
  if (slowest) return tile.set(slowest.node, [slowest.why], CARE);
  tile.set(
    inside ? "none" : DASH,
    [inside ? "No node waits for another one." : "Nothing is being built."],
    inside ? CALM : IDLE,
  );
}

function disk(tile, given) {
  if (!given) return tile.set(DASH, ["Nothing is stored."], IDLE);
  const soon = known(given.seconds_until_full) && given.seconds_until_full < SOON_S;
  tile.set(
    known(given.seconds_until_full) ? span(given.seconds_until_full) : `${bytes(given.free_bytes)} free`,
    [
      known(given.seconds_until_full) && "until the disk is full",
      known(given.seconds_until_full) && `${bytes(given.free_bytes)} of ${bytes(given.total_bytes)} free`,
      !known(given.seconds_until_full) && `of ${bytes(given.total_bytes)}`,
      given.directory,
    ],
    soon ? BAD : CALM,
  );
  flag(tile.node, "bad", soon);
}

const LINKS = ["triggers", "readout units", "network", "builder units", "storage"];

/** Makes the chain of stages: how full each is, from the trigger to the storage. */
export function makeChain() {
  const parts = LINKS.map((title) => {
    const bar = el("i", { class: "bar" });
    const one = { value: el("b", { text: DASH }), words: el("span", { class: "small" }), bar };
    one.meter = el("div", { class: "meter" }, bar);
    one.node = el("li", {}, el("h4", { text: title }), one.value, one.meter, one.words);
    return one;
  });
  const list = el(
    "ol",
    { class: "chain", "aria-label": "How full each stage is, from the trigger to the storage" },
    ...parts.map((part) => part.node),
  );
  const node = el("section", { class: "panel" }, list);
  return { node, update: (status) => updateChain(parts, status) };
}

function link(part, { value, fill, words, look }) {
  text(part.value, value);
  show(part.meter, known(fill));
  width(part.bar, fill);
  attr(part.bar, "class", `bar ${look ?? level(fill)}`);
  text(part.words, words);
  flag(part.node, "care", (look ?? level(fill)) === "full");
}

function updateChain(parts, status) {
  const all = stages(status);
  const fill = ({ fill: part, name, number }) => (known(part) ? (number > 1 ? `fullest: ${name}` : "") : "");
  const fragments = all.waiting.reduce((a, { fragments: number }) => a + (number ?? 0), 0);
  const sources = [...new Set(all.waiting.map(({ source }) => source))];
  const [away, queue] = [all.turnedAway, all.queue];
  link(parts[0], {
    value: known(away) ? `${percent(away)} turned away` : DASH,
    fill: away,
    words: "",
    look: away > 0.01 ? "full" : "low",
  });
  link(parts[1], {
    value: known(all.readouts.fill) ? `${percent(all.readouts.fill)} full` : DASH,
    fill: all.readouts.fill,
    words: fill(all.readouts),
  });
  link(parts[2], {
    value: !live(status) ? DASH : fragments ? `${several(fragments, "fragment")} awaited` : "nothing is awaited",
    fill: null,
    words: fragments && sources.length ? `of ${sources.slice(0, 3).join(", ")}${sources.length > 3 ? " and others" : ""}` : "",
    look: fragments ? "full" : "low",
  });
  link(parts[3], {
    value: known(all.builders.fill) ? `${percent(all.builders.fill)} full` : DASH,
    fill: all.builders.fill,
    words: fill(all.builders),
  });
  link(parts[4], {
    value: known(queue) ? (queue > 0 ? `${count(queue)} wait` : "nothing waits") : DASH,
    fill: all.queueFill,
    words: known(all.stored) ? `${rate(all.stored)}` : "",
    look: known(all.queueFill) ? undefined : "low",
  });
}
