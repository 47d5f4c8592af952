// The histograms of the experiment file: a tile for each, with what lies outside, what does not fit, and odd channels.

import { el, text, flag, show, follow } from "./dom.js";
import { count, known, si } from "./units.js";
import { histogram } from "./histogram.js";

/** Channels that a tile names. */
const NAMED = 8;

/** Makes the tiles; they are hidden while there are none. */
export function makeMonitor() {
  const tiles = el("div", { class: "three" });
  const node = el("section", { hidden: true }, el("div", { class: "bar-row" }, el("h2", { text: "Histograms" })), tiles);
  return { node, draw: (all, log) => draw(node, tiles, all, log) };
}

function draw(node, tiles, all, log) {
  show(node, all.length > 0);
  follow(
    tiles,
    all,
    (one) => one.name,
    (one) => tile(one),
    (child, one) => child.evbDraw(one, log),
  );
}

function tile({ name, field }) {
  const plot = histogram({ title: name, unit: field === "size" ? "B" : "", words });
  const odd = el("p", { class: "small bad" });
  const facts = el("p", { class: "small" });
  plot.node.append(facts, odd);
  plot.node.evbDraw = (one, log) => {
    const { bins: counts, mean, channels, noisy, range } = one;
    plot.draw({ edges: edges(one), counts, mean, channels, odd: noisy.map((channel) => channel - range[0]) }, log);
    text(facts, outside(one));
    text(odd, oddWords(one));
    show(odd, odd.textContent !== "");
    flag(plot.node, "care", odd.textContent !== "");
  };
  return plot.node;
}

/** The edges of the bins, one more than there are bins. */
function edges({ range: [low, high], bins }) {
  return Array.from({ length: bins.length + 1 }, (_, index) => low + ((high - low) * index) / bins.length);
}

/** What is said above the bars: the mean. A value without a unit has no prefix. */
const words = ({ mean }, unit) => (known(mean) ? `mean ${unit ? si(mean, unit) : Number(mean.toPrecision(4))}` : "");

/** How much was counted, and what was not. */
function outside({ entries, underflow, overflow, unfit, missing, one_in: oneIn }) {
  return [
    `${count(entries)} entries`,
    oneIn > 1 && `of one event in ${count(oneIn)}`,
    underflow > 0 && `${count(underflow)} below`,
    overflow > 0 && `${count(overflow)} above`,
    unfit > 0 && `${count(unfit)} payloads do not fit`,
    missing > 0 && `${count(missing)} fragments missing or bad`,
  ]
    .filter(Boolean)
    .join(", ");
}

function oddWords({ noisy, silent }) {
  const list = (channels, word) => {
    const more = channels.length > NAMED ? ` and ${channels.length - NAMED} more` : "";
    return channels.length > 0 && `${word}: channel ${channels.slice(0, NAMED).join(", ")}${more}`;
  };
  return [list(noisy, "noisy"), list(silent, "silent")].filter(Boolean).join("; ");
}
