// A histogram: bars between edges, on linear or logarithmic axes, with what matters most in words.

import { el, svg, attr, attrs, text, tip } from "./dom.js";
import { count, percent, si } from "./units.js";
import { ticks, powers, labels, drawTicks } from "./axis.js";

const HEIGHT = 150;
const EDGE = { left: 44, right: 10, top: 8, bottom: 22 };

/**
 * A histogram of one quantity. `scale` is the size of its unit in `unit`: 1e-6 for microseconds shown in seconds. `words` says
 * what stands above the bars; by default the middle and the tail. Bars of `channels` are shown with the empty ones at both ends, and
 * those with an index in `odd` in another colour.
 */
export function histogram({ title, unit, scale = 1, words: say = quantiles }) {
  const plot = { unit, scale, say, at: -1 };
  plot.words = el("span", { class: "when below" });
  plot.grid = svg("g", { "aria-hidden": "true" });
  plot.values = svg("g", { "aria-hidden": "true" });
  plot.bars = svg("path", { class: "bars" });
  plot.odd = svg("path", { class: "bars odd" });
  plot.mark = svg("rect", { class: "chosen", visibility: "hidden" });
  plot.empty = svg("text", { class: "tick", "text-anchor": "middle" });
  plot.svg = svg(
    "svg",
    {
      class: "plot",
      height: HEIGHT,
      tabindex: "0",
      role: "img",
      "aria-label": `${title}. Arrow keys go through the bars.`,
    },
    plot.grid,
    plot.values,
    plot.bars,
    plot.odd,
    plot.mark,
    plot.empty,
  );
  plot.said = el("span", { class: "unseen", "aria-live": "polite" });
  const head = el("div", { class: "plot-head" }, el("h3", { text: title }), plot.words);
  plot.node = el("figure", { class: "panel plot-box" }, head, plot.svg, plot.said);
  plot.draw = (data, log) => draw(plot, data, log);
  listen(plot);
  new ResizeObserver(() => {
    if (plot.last && plot.svg.clientWidth !== plot.width) draw(plot, ...plot.last);
  }).observe(plot.svg);
  return plot;
}

/** The edge below which this part of all entries lies. */
function quantile({ edges, counts }, part) {
  const wanted = part * counts.reduce((a, b) => a + b, 0);
  let below = 0;
  for (const [index, number] of counts.entries()) {
    below += number;
    if (below >= wanted) return edges[index + 1];
  }
  return edges[edges.length - 1];
}

const quantiles = (shown, unit) =>
  `half below ${si(quantile(shown, 0.5), unit)}, 99 % below ${si(quantile(shown, 0.99), unit)}`;

/** The part of the axis in which there are entries, with one empty bar on each side. */
function busy({ edges, counts }) {
  const first = counts.findIndex((number) => number > 0);
  const last = counts.findLastIndex((number) => number > 0);
  const [from, to] = [Math.max(0, first - 1), Math.min(counts.length, last + 2)];
  return { edges: edges.slice(from, to + 1), counts: counts.slice(from, to) };
}

const usable = (data) =>
  Array.isArray(data?.edges) && Array.isArray(data.counts) && data.counts.some((number) => number > 0);

function draw(plot, data, log) {
  plot.last = [data, log];
  plot.width = plot.svg.clientWidth;
  if (!plot.width) return;
  const area = { x0: EDGE.left, x1: plot.width - EDGE.right, y0: EDGE.top, y1: HEIGHT - EDGE.bottom };
  attrs(plot.empty, { x: (area.x0 + area.x1) / 2, y: (area.y0 + area.y1) / 2 });
  plot.area = area;
  if (!usable(data)) {
    plot.shown = null;
    text(plot.empty, "Nothing was measured yet.");
    text(plot.words, "");
    attr(plot.bars, "d", null);
    attr(plot.odd, "d", null);
    drawTicks(plot.grid, [], "left", [0, 0]);
    drawTicks(plot.values, [], "bottom", [0, 0]);
    return;
  }
  text(plot.empty, "");
  plot.channels = data.channels;
  const all = { edges: data.edges.map((edge) => edge * plot.scale), counts: data.counts };
  plot.shown = data.channels ? all : busy(all);
  text(plot.words, plot.say({ ...plot.shown, mean: data.mean }, plot.unit));
  const x = across(plot, area);
  const y = up(plot, area, log);
  plot.x = x;
  const bars = plot.shown.counts.map((number, index) => bar(x, y, area, plot.shown.edges, number, index));
  const odd = data.odd ?? [];
  attr(plot.bars, "d", bars.filter((_, index) => !odd.includes(index)).join("") || null);
  attr(plot.odd, "d", odd.map((index) => bars[index]).join("") || null);
  choose(plot, Math.min(plot.at, plot.shown.counts.length - 1), false);
}

function bar(x, y, area, edges, number, index) {
  if (!number) return "";
  const [left, right] = [x(edges[index]), x(edges[index + 1])];
  return `M${left.toFixed(1)} ${area.y1}V${y(number).toFixed(1)}H${Math.max(left + 1, right - 1).toFixed(1)}V${area.y1}z`;
}

/** The horizontal axis: logarithmic if the edges grow by factors. */
function across(plot, area) {
  const { edges } = plot.shown;
  const [low, high] = [edges[0], edges[edges.length - 1]];
  const grows = high - edges[edges.length - 2] > 1.5 * (edges[1] - low);
  const byFactors = low > 0 && high / low > 8 && grows;
  const place = byFactors
    ? (value) => Math.log(value / low) / Math.log(high / low)
    : (value) => (value - low) / (high - low);
  const x = (value) => area.x0 + place(value) * (area.x1 - area.x0);
  let values = byFactors ? powers(low, high) : between(low, high);
  const room = Math.max(2, Math.floor((area.x1 - area.x0) / 62));
  while (values.length > room) values = values.filter((_, index) => index % 2 === 0);
  const marks = values.map((value) => ({ at: x(value), label: value === 0 ? "0" : short(value, plot.unit) }));
  drawTicks(plot.values, marks, "bottom", [area.y0, area.y1]);
  return x;
}

/** Round numbers between two values, which may be negative. */
function between(low, high) {
  const step = ticks(high - low, 4)[1];
  const first = Math.ceil(low / step - 1e-9);
  const number = Math.max(0, Math.floor(high / step + 1e-9) - first + 1);
  return Array.from({ length: number }, (_, index) => (first + index) * step);
}

/** A tick without needless digits: `10 µs`, not `10.0 µs`. */
const short = (value, unit) =>
  si(value, unit)
    .replace(/\.0+(?=\D)/, "")
    .replace(/(\.\d)0(?=\D)/, "$1");

function up(plot, area, log) {
  const most = Math.max(...plot.shown.counts);
  if (log) {
    const high = Math.max(10, most * 1.2);
    const y = (value) => area.y1 - (Math.log(Math.max(0.5, value) / 0.5) / Math.log(high / 0.5)) * (area.y1 - area.y0);
    let marks = tens(high);
    while (marks.length > 5) marks = marks.filter((_, index) => index % 2 === 0);
    drawTicks(
      plot.grid,
      marks.map((value) => ({ at: y(value), label: short(value, "") })),
      "left",
      [area.x0, area.x1],
    );
    return y;
  }
  const marks = ticks(most, 3);
  const high = marks[marks.length - 1];
  const y = (value) => area.y1 - (value / high) * (area.y1 - area.y0);
  const named = labels(marks, "");
  drawTicks(
    plot.grid,
    marks.map((value, i) => ({ at: y(value), label: named.texts[i] + (value ? named.unit : "") })),
    "left",
    [area.x0, area.x1],
  );
  return y;
}

/** The powers of ten up to a value. */
function tens(high) {
  const all = [];
  for (let value = 1; value <= high; value *= 10) all.push(value);
  return all;
}

function words(plot, index) {
  const { edges, counts } = plot.shown;
  const all = counts.reduce((a, b) => a + b, 0);
  const place = plot.channels
    ? `channel ${edges[index]}`
    : `${si(edges[index], plot.unit)} to ${si(edges[index + 1], plot.unit)}`;
  return `${place}\n${count(counts[index])} (${percent(counts[index] / all)})`;
}

function choose(plot, index, speak) {
  plot.at = index;
  const visible = index >= 0 && plot.shown !== null;
  attr(plot.mark, "visibility", visible ? "visible" : "hidden");
  if (!visible) return;
  const [left, right] = [plot.x(plot.shown.edges[index]), plot.x(plot.shown.edges[index + 1])];
  attrs(plot.mark, { x: left, width: Math.max(1, right - left), y: plot.area.y0, height: plot.area.y1 - plot.area.y0 });
  if (speak) text(plot.said, words(plot, index).replace("\n", ": "));
}

function leave(plot) {
  choose(plot, -1, false);
  tip(null);
}

function listen(plot) {
  plot.svg.addEventListener("pointermove", (event) => {
    if (!plot.shown) return;
    const index = plot.shown.counts.findIndex(
      (_, i) => event.offsetX >= plot.x(plot.shown.edges[i]) && event.offsetX < plot.x(plot.shown.edges[i + 1]),
    );
    choose(plot, index, false);
    tip(index >= 0 ? words(plot, index) : null, event.clientX, event.clientY);
  });
  plot.svg.addEventListener("pointerleave", () => leave(plot));
  plot.svg.addEventListener("blur", () => leave(plot));
  plot.svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") leave(plot);
    if (!step || !plot.shown) return;
    event.preventDefault();
    choose(plot, Math.max(0, Math.min(plot.shown.counts.length - 1, plot.at + step)), true);
    const box = plot.svg.getBoundingClientRect();
    tip(words(plot, plot.at), box.left + plot.x(plot.shown.edges[plot.at]), box.top + 20);
  });
}
