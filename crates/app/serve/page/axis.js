// Axes of plots: round ticks for linear, logarithmic and time axes, and the functions from values to places.

import { svg, attrs, text, follow } from "./dom.js";
import { prefix, clock } from "./units.js";

/** Round numbers from 0 to at least `max`, about `wanted` of them. */
export function ticks(max, wanted = 4) {
  if (!(max > 0)) return [0, 1];
  const rough = max / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((one) => one >= rough * 0.999);
  const all = [];
  for (let index = 0; (index - 1) * step < max * 0.9999; index += 1) all.push(index * step);
  return all;
}

/** Powers of ten between two values; with 2 and 5 between if there are few. */
export function powers(low, high) {
  const all = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const factor of [1, 2, 5]) {
      const value = factor * 10 ** power;
      if (value >= low * 0.999 && value <= high * 1.001) all.push({ value, main: factor === 1 });
    }
  }
  const main = all.filter((one) => one.main);
  return (main.length >= 3 ? main : all).map((one) => one.value);
}

const STEPS_S = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];

/** Times on whole steps between two times, for an axis of this width in pixels. */
export function times(from, to, pixels) {
  const wanted = (to - from) / Math.max(1, pixels / 90);
  const step = STEPS_S.find((one) => one >= wanted) ?? 7200;
  const all = [];
  for (let time = Math.ceil(from / step) * step; time <= to; time += step) all.push(time);
  return all.map((time) => ({ value: time, label: step < 60 ? clock(time) : clock(time).slice(0, 5) }));
}

/** Labels for values that share one prefix: the labels, and the unit with the prefix. */
export function labels(values, unit) {
  const [factor, letter] = prefix(Math.max(...values.map(Math.abs), 1e-9));
  const digits = values.length > 1 ? Math.max(0, Math.ceil(-Math.log10((values[1] - values[0]) / factor) - 1e-9)) : 0;
  const extra = values.some(
    (one) => Math.abs((one / factor) * 10 ** digits - Math.round((one / factor) * 10 ** digits)) > 1e-6,
  );
  return {
    texts: values.map((one) => (one === 0 ? "0" : (one / factor).toFixed(digits + (extra ? 1 : 0)))),
    unit: letter + unit,
  };
}

/** Draws the grid lines and labels of an axis. `marks` are `{at, label}`; `across` are the ends of the lines. */
export function drawTicks(group, marks, side, across) {
  const make = () => svg("g", {}, svg("line", { class: "grid" }), svg("text", { class: "tick" }));
  follow(
    group,
    marks,
    (mark) => mark.label,
    make,
    (node, { at, label }) => {
      const [line, word] = node.children;
      const place = Math.round(at) + 0.5;
      if (side === "left") {
        attrs(line, { x1: across[0], x2: across[1], y1: place, y2: place });
        attrs(word, { x: across[0] - 6, y: place + 4, "text-anchor": "end" });
      } else {
        attrs(line, { x1: place, x2: place, y1: across[0], y2: across[1] });
        attrs(word, { x: place, y: across[1] + 15, "text-anchor": "middle" });
      }
      text(word, label);
    },
  );
}
