// The parts of the picture: a row or a cell for a unit, a box with words, an edge with its label.

import { svg, attr, attrs, flag, text } from "./dom.js";
import { DASH, known, count } from "./units.js";
import { level } from "./nodes.js";
import { ofNode, outline } from "./states.js";

/** Widths of rows, in pixels, below which words are left out. */
const ROOMY = 180;
const TIGHT = 125;

/** The patterns of bars: lines show how full they are, as colours do. */
export function patterns() {
  const hatch = (id, size, d) =>
    svg(
      "pattern",
      { id, width: size, height: size, patternUnits: "userSpaceOnUse" },
      svg("rect", { width: size, height: size, class: `${id}-ground` }),
      svg("path", { d, class: `${id}-lines` }),
    );
  return svg("defs", {}, hatch("high", 6, "M-1 7L7 -1M-1 1L1 -1M5 7L7 5"), hatch("full", 5, "M0 0L5 5M5 0L0 5"));
}

/** A unit as a row: its state, its name, how much it holds of how much, and a bar. */
export function row(place) {
  const box = svg("rect", { class: "box", x: place.x, y: place.y, width: place.w, height: place.h, rx: 3 });
  const stop = svg("rect", {
    class: "stop",
    x: place.x - 3,
    y: place.y - 2,
    width: 6,
    height: place.h + 4,
    visibility: "hidden",
  });
  const mark = svg("path", {
    transform: `translate(${place.x + 8} ${place.y + place.h / 2 - 9}) scale(.75)`,
    "fill-rule": "evenodd",
  });
  const line = place.y + place.h / 2 + 1;
  const name = svg("text", { class: "name", x: place.x + 26, y: line });
  const value = svg("text", { class: "value", x: place.x + place.w - 8, y: line, "text-anchor": "end" });
  const ground = svg("rect", {
    class: "ground",
    x: place.x + 8,
    y: place.y + place.h - 7,
    width: place.w - 16,
    height: 5,
  });
  const bar = svg("rect", { class: "bar", x: place.x + 8, y: place.y + place.h - 7, width: 0, height: 5 });
  const node = svg("g", { class: "unit", role: "img", tabindex: "-1" }, box, ground, bar, mark, name, value, stop);
  return {
    node,
    place,
    update: (unit, held, most) => updateRow({ node, box, stop, mark, name, value, bar, place }, unit, held, most),
  };
}

function paint(node, unit) {
  flag(node, "gone", unit.gone);
  flag(node, "slow", unit.slow);
  flag(node, "waited", unit.waitedFor > 0);
  attr(node, "aria-label", `${unit.name}, ${unit.state}, ${words(unit)}`);
}

function words(unit) {
  const fill = known(unit.fill) ? `${Math.round(unit.fill * 100)} % full` : "not measured";
  return [fill, unit.slow && "slowest", unit.waitedFor > 0 && "others wait for it"].filter(Boolean).join(", ");
}

function updateRow(row, unit, held, most) {
  paint(row.node, unit);
  const kind = ofNode(unit.state);
  attr(row.mark, "d", outline(kind.shape));
  attr(row.mark, "class", `icon tone-${kind.tone}`);
  text(row.name, unit.slow ? `${unit.name} ◀${row.place.w < ROOMY ? "" : " slowest"}` : unit.name);
  const of = row.place.w < TIGHT ? "" : ` / ${count(most)}`;
  const share = known(held) && known(most) ? `${count(held)}${of}` : DASH;
  text(row.value, unit.state === "up" ? share : unit.state);
  attr(row.bar, "width", Math.round((row.place.w - 16) * Math.min(1, unit.fill ?? 0)));
  attr(row.bar, "class", `bar ${level(unit.fill)}`);
  attr(row.stop, "visibility", unit.blocked && !unit.gone ? "visible" : "hidden");
}

/** A unit as a cell of a grid, filled from below. */
export function cell(place) {
  const box = svg("rect", { class: "box", x: place.x, y: place.y, width: place.w, height: place.h, rx: 2 });
  const bar = svg("rect", { class: "bar", x: place.x + 1, width: place.w - 2, height: 0, y: place.y });
  const inset = place.w * 0.22;
  const [x0, x1, y0, y1] = [place.x + inset, place.x + place.w - inset, place.y + inset, place.y + place.h - inset];
  const cross = svg("path", {
    class: "cross",
    d: `M${x0} ${y0}L${x1} ${y1}M${x1} ${y0}L${x0} ${y1}`,
    visibility: "hidden",
  });
  const node = svg("g", { class: "unit", role: "img", tabindex: "-1" }, box, bar, cross);
  const update = (unit) => {
    paint(node, unit);
    const height = Math.round((place.h - 2) * Math.min(1, unit.fill ?? 0));
    attrs(bar, { y: place.y + place.h - 1 - height, height, class: `bar ${level(unit.fill)}` });
    attr(cross, "visibility", unit.gone ? "visible" : "hidden");
  };
  return { node, place, update };
}

/** A box with a title and lines of words. */
export function box(place, title) {
  const middle = place.x + place.w / 2;
  const frame = svg("rect", { class: "box", x: place.x, y: place.y, width: place.w, height: place.h, rx: 3 });
  const stop = svg("rect", {
    class: "stop",
    x: place.x - 3,
    y: place.y - 2,
    width: 6,
    height: place.h + 4,
    visibility: "hidden",
  });
  const lines = Array.from({ length: 4 }, () => svg("text", { class: "value", x: middle, "text-anchor": "middle" }));
  const head = svg("text", { class: "name", x: middle, "text-anchor": "middle" });
  const node = svg("g", { class: "unit", role: "img", tabindex: "-1" }, frame, head, ...lines, stop);
  const update = (words, { slow = false, gone = false, blocked = false } = {}) => {
    const top = place.y + place.h / 2 - (words.length * 16) / 2 + 4;
    text(head, title + (slow ? " ◀ slowest" : ""));
    attr(head, "y", top);
    lines.forEach((line, index) => {
      text(line, words[index] ?? "");
      attr(line, "y", top + 16 * (index + 1));
    });
    flag(node, "slow", slow);
    flag(node, "gone", gone);
    attr(stop, "visibility", blocked ? "visible" : "hidden");
    attr(node, "aria-label", [title, ...words].join(", "));
  };
  return { node, place, update };
}

/** A line with or without a label above its middle; its end can be barred. */
export function edge(from, to, labelled) {
  const line = svg("line", { class: "edge", x1: from[0], y1: from[1], x2: to[0], y2: to[1] });
  const label = labelled
    ? svg("text", { class: "label", x: (from[0] + to[0]) / 2, y: (from[1] + to[1]) / 2 - 4, "text-anchor": "middle" })
    : null;
  const stop = svg("rect", { class: "stop", x: to[0] - 3, y: to[1] - 11, width: 6, height: 22, visibility: "hidden" });
  const node = svg("g", { "aria-hidden": "true" }, ...[line, label, stop].filter(Boolean));
  const update = (look, thick, words, barred = false) => {
    attr(stop, "visibility", barred ? "visible" : "hidden");
    attr(line, "class", `edge ${look}`);
    attr(line, "stroke-width", thick);
    if (label) {
      text(label, words ?? "");
      flag(label, "bad", look === "held");
    }
  };
  return { node, line, update };
}

/** The thickness of an edge on which this number of fragments is awaited. */
export const thickness = (fragments) => Math.min(5, 1 + Math.log2(1 + fragments) / 2.5);
