// A plot over time: lines with an axis, a legend that says the values, and a cursor for mouse and keyboard.

import { el, svg, attrs, attr, text } from "./dom.js";
import { DASH, clock, si } from "./units.js";
import { ticks, times, labels, drawTicks } from "./axis.js";

const HEIGHT = 200;
const EDGE = { left: 44, right: 12, top: 8, bottom: 22 };

/** A plot of some columns of the history. `series` are `{column, word, look}`: the look is a class of the line. */
export function timePlot({ title, unit, series, onCursor }) {
  const plot = { unit, series, top: 0, cursor: null, width: 0, onCursor };
  plot.unitWord = el("span", { class: "unit" });
  plot.when = el("span", { class: "when" });
  plot.values = series.map(() => el("b", { text: DASH }));
  const legend = series.map((one, index) =>
    el("span", { class: "key" }, sample(one.look), el("span", { text: one.word }), plot.values[index]),
  );
  plot.grid = svg("g", { "aria-hidden": "true" });
  plot.times = svg("g", { "aria-hidden": "true" });
  plot.lines = series.map((one) => svg("path", { class: `line ${one.look}` }));
  plot.rule = svg("line", { class: "cursor", visibility: "hidden" });
  plot.empty = svg("text", { class: "tick", "text-anchor": "middle" });
  plot.svg = svg(
    "svg",
    {
      class: "plot",
      height: HEIGHT,
      tabindex: "0",
      role: "img",
      "aria-label": `${title} over time. Arrow keys move a cursor; the values are read out.`,
    },
    plot.grid,
    plot.times,
    ...plot.lines,
    plot.rule,
    plot.empty,
  );
  plot.said = el("span", { class: "unseen", "aria-live": "polite" });
  const head = el("div", { class: "plot-head" }, el("h3", { text: title }), plot.unitWord, plot.when);
  plot.node = el(
    "figure",
    { class: "panel plot-box" },
    head,
    el("div", { class: "legend" }, ...legend),
    plot.svg,
    plot.said,
  );
  listen(plot);
  plot.draw = (columns, points, seconds) => draw(plot, columns, points, seconds);
  new ResizeObserver(() => {
    if (plot.last && plot.svg.clientWidth !== plot.width) draw(plot, ...plot.last);
  }).observe(plot.svg);
  return plot;
}

const sample = (look) =>
  svg(
    "svg",
    { class: "sample", width: 26, height: 8, "aria-hidden": "true" },
    svg("path", { class: `line ${look}`, d: "M0 4H26" }),
  );

/** The part of the history that is shown. */
function shown(points, seconds) {
  const last = points.length ? points[points.length - 1][0] : 0;
  return points.filter((point) => point[0] >= last - seconds);
}

/** The top of the axis. It grows at once and shrinks late, so that the plot stays calm. */
function top(plot, max) {
  const marks = ticks(max);
  const wanted = marks[marks.length - 1];
  if (wanted > plot.top || wanted < 0.45 * plot.top) plot.top = wanted;
  return plot.top;
}

function draw(plot, columns, points, seconds) {
  plot.last = [columns, points, seconds];
  const full = plot.svg.clientWidth;
  if (!full) return;
  plot.width = full;
  const seen = shown(points, seconds);
  const index = plot.series.map((one) => columns.indexOf(one.column));
  const max = Math.max(0, ...seen.flatMap((point) => index.map((column) => point[column] ?? 0)));
  const end = seen.length ? seen[seen.length - 1][0] : 0;
  const area = { x0: EDGE.left, x1: full - EDGE.right, y0: EDGE.top, y1: HEIGHT - EDGE.bottom };
  const high = top(plot, max);
  const x = (time) => area.x1 - ((end - time) / seconds) * (area.x1 - area.x0);
  const y = (value) => area.y1 - (value / high) * (area.y1 - area.y0);
  Object.assign(plot, { area, seen, index, x });
  axes(plot, high, end, seconds, x, y);
  const gap = longest(seen);
  plot.lines.forEach((line, which) => attr(line, "d", path(seen, index[which], x, y, gap)));
  attrs(plot.empty, { x: (area.x0 + area.x1) / 2, y: (area.y0 + area.y1) / 2 });
  text(plot.empty, seen.length ? "" : "No history yet. It begins with a run.");
  legendAt(plot);
}

function axes(plot, high, end, seconds, x, y) {
  const marks = ticks(high * 0.999);
  const named = labels(marks, plot.unit);
  text(plot.unitWord, named.unit);
  drawTicks(
    plot.grid,
    marks.map((value, i) => ({ at: y(value), label: named.texts[i] })),
    "left",
    [plot.area.x0, plot.area.x1],
  );
  const whens = end ? times(end - seconds, end, plot.area.x1 - plot.area.x0) : [];
  const inside = whens
    .map(({ value, label }) => ({ at: x(value), label }))
    .filter(({ at }) => at > plot.area.x0 + 14 && at < plot.area.x1 - 12);
  drawTicks(plot.times, inside, "bottom", [plot.area.y0, plot.area.y1]);
}

/** The longest time between two points of one line: a few times what is usual. Longer ones are between runs. */
function longest(points) {
  const steps = points
    .slice(1)
    .map((point, index) => point[0] - points[index][0])
    .sort((a, b) => a - b);
  return Math.max(2.5, 3 * (steps[Math.floor(steps.length / 2)] ?? 0));
}

/** The line of one column. Where points lie closer than pixels, the lowest and the highest of each pixel are drawn. */
function path(points, column, x, y, gap) {
  if (column < 0) return null;
  const parts = [];
  let before = null;
  let pixel = null;
  const flush = () => {
    if (!pixel) return;
    parts.push(`L${pixel.at} ${pixel.low.toFixed(1)}`);
    if (pixel.high !== pixel.low) parts.push(`L${pixel.at} ${pixel.high.toFixed(1)}`);
    pixel = null;
  };
  for (const point of points) {
    const value = point[column];
    if (value === null || value === undefined) continue;
    const [at, height] = [Math.round(x(point[0]) * 2) / 2, y(value)];
    if (before === null || point[0] - before > gap) {
      flush();
      parts.push(`M${at} ${height.toFixed(1)}`);
    }
    before = point[0];
    if (pixel?.at === at) pixel = { at, low: Math.min(pixel.low, height), high: Math.max(pixel.high, height) };
    else {
      flush();
      pixel = { at, low: height, high: height };
    }
  }
  flush();
  return parts.join("") || null;
}

/** The point at the cursor, or the last one. */
function chosen(plot) {
  const { seen, cursor } = plot;
  if (!seen?.length) return null;
  if (cursor === null) return seen[seen.length - 1];
  return seen.reduce((best, point) => (Math.abs(point[0] - cursor) < Math.abs(best[0] - cursor) ? point : best));
}

function legendAt(plot) {
  const point = chosen(plot);
  plot.values.forEach((node, which) => text(node, point ? si(point[plot.index[which]], plot.unit) : DASH));
  text(plot.when, point && plot.cursor !== null ? `at ${clock(point[0])} UTC` : "");
  const visible = point !== null && plot.cursor !== null;
  attr(plot.rule, "visibility", visible ? "visible" : "hidden");
  if (visible) attrs(plot.rule, { x1: plot.x(point[0]), x2: plot.x(point[0]), y1: plot.area.y0, y2: plot.area.y1 });
}

/** Sets the cursor to a time, or to none; tells the other plots. */
function move(plot, time, speak) {
  plot.cursor = time;
  legendAt(plot);
  plot.onCursor?.(plot, time);
  const point = chosen(plot);
  if (speak && point) {
    const values = plot.series.map((one, which) => `${one.word} ${plot.values[which].textContent}`);
    text(plot.said, `${clock(point[0])}: ${values.join(", ")}`);
  }
}

/** Shows the cursor of another plot. */
export function cursorAt(plot, time) {
  plot.cursor = time;
  if (plot.seen) legendAt(plot);
}

function listen(plot) {
  plot.svg.addEventListener("pointermove", (event) => {
    if (!plot.seen?.length) return;
    const part = (event.offsetX - plot.area.x0) / (plot.area.x1 - plot.area.x0);
    const end = plot.seen[plot.seen.length - 1][0];
    move(plot, end - (1 - part) * plot.last[2], false);
  });
  plot.svg.addEventListener("pointerleave", () => move(plot, null, false));
  plot.svg.addEventListener("blur", () => move(plot, null, false));
  plot.svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -1e9, End: 1e9 }[event.key];
    if (event.key === "Escape") move(plot, null, false);
    if (!step || !plot.seen?.length) return;
    event.preventDefault();
    const at = plot.seen.indexOf(chosen(plot)) + step;
    move(plot, plot.seen[Math.max(0, Math.min(plot.seen.length - 1, at))][0], true);
  });
}
