// The picture of the event builder: sources, readout units, builder units, filters and storage, with how full each is.
// A barred inlet says that what comes before it must wait; the barred inlet farthest to the right is the cause.

import { el, svg, attr, attrs } from "./dom.js";
import { units } from "./nodes.js";
import { layout, leftOf, rightOf } from "./layout.js";
import { patterns, row, cell, box, edge } from "./shapes.js";
import { paint } from "./paint.js";
import { listen } from "./walk.js";

/** Makes the picture; `update(status)` draws it, and `update(null)` nothing. */
export function makePicture() {
  const picture = { key: "", focus: 0, items: [] };
  picture.svg = svg("svg", {
    class: "picture",
    role: "group",
    "aria-label": "The event builder. Arrow keys go through its nodes.",
  });
  picture.node = el("div", { class: "picture-box" }, picture.svg);
  picture.update = (status) => update(picture, status);
  listen(picture);
  new ResizeObserver(() => {
    if (picture.status && picture.svg.parentNode.clientWidth !== picture.width) update(picture, picture.status);
  }).observe(picture.node);
  return picture;
}

const hasFilters = (status, all) =>
  all.filters.length > 0 || Boolean(status.record?.filter) || (status.now_rates?.rejected_hz ?? 0) > 0;

function update(picture, status) {
  picture.status = status;
  const width = picture.node.clientWidth;
  if (!width || !status) return;
  const all = units(status);
  const names = [...all.readouts, ...all.builders].map((unit) => unit.name).join();
  const filters = hasFilters(status, all);
  const key = `${width} ${filters} ${names}`;
  if (key !== picture.key) construct(picture, width, all, filters);
  picture.key = key;
  picture.width = width;
  picture.all = all;
  paint(picture, status, all);
}

/** Makes all elements anew: the nodes are others, or the width. */
function construct(picture, width, all, filters) {
  const plan = layout(width, all.readouts.length, all.builders.length, filters);
  const draw = (column) => column.places.map((place) => (column.grid ? cell(place) : row(place)));
  Object.assign(picture, { plan, readouts: draw(plan.readouts), builders: draw(plan.builders) });
  picture.manager = box(plan.manager, all.manager?.name ?? "event manager");
  picture.filters = plan.filters ? box(plan.filters, "filters") : null;
  picture.storage = box(plan.storage, "storage");
  picture.mesh = mesh(plan);
  picture.waits = svg("g", {});
  picture.sources = sourceEdges(plan);
  picture.outs = outEdges(plan);
  picture.band = svg("text", {
    class: "label strong",
    "text-anchor": "middle",
    x: (plan.band.x0 + plan.band.x1) / 2,
    y: plan.narrow ? plan.band.y1 + 16 : plan.band.y0 - 4,
  });
  picture.items = [...picture.readouts, ...picture.builders];
  const boxes = [picture.manager, picture.filters, picture.storage].filter(Boolean);
  const lines = [...picture.sources, ...picture.outs].map(({ node }) => node);
  const nodes = [...boxes, ...picture.items].map(({ node }) => node);
  const grid = plan.readouts.grid || plan.builders.grid;
  picture.captions = captions(plan);
  picture.svg.replaceChildren(
    patterns(),
    ...picture.captions,
    picture.mesh,
    ...lines,
    ...(grid ? [...nodes, picture.waits] : [picture.waits, ...nodes]),
    picture.band,
  );
  attrs(picture.svg, { width, height: plan.height });
  picture.focus = Math.min(picture.focus, Math.max(0, picture.items.length - 1));
  picture.items.forEach(({ node }, index) => attr(node, "tabindex", index === picture.focus ? "0" : "-1"));
}

function captions(plan) {
  const over = (column) => {
    const first = column.places[0];
    if (!first) return svg("text");
    const y = Math.min(...column.places.map((place) => place.y)) - 6;
    const last = Math.max(...column.places.map((place) => place.x + place.w));
    return svg("text", { class: "caption", x: (first.x + last) / 2, y, "text-anchor": "middle" });
  };
  const left = over(plan.readouts);
  const { x, to } = plan.sources ?? { x: 0, to: 0 };
  const sources = svg("text", {
    class: "caption",
    x: (x + to) / 2,
    y: left.getAttribute("y") ?? 0,
    "text-anchor": "middle",
  });
  return [left, over(plan.builders), sources];
}

/** All ways from readout to builder units, as a path for each readout unit; a plain band if there are very many. */
function mesh(plan) {
  const [from, to] = [plan.readouts, plan.builders];
  const group = svg("g", { "aria-hidden": "true" });
  if (!from.grid && !to.grid) {
    const opacity = Math.max(0.3, 0.95 - (from.places.length * to.places.length) / 300);
    group.append(...from.places.map(() => svg("path", { class: "mesh", "stroke-opacity": opacity })));
    return group;
  }
  const ends = (column) => [
    Math.min(...column.places.map((p) => p.y)),
    Math.max(...column.places.map((p) => p.y + p.h)),
  ];
  const [a, b] = [ends(from), ends(to)];
  const { x0, x1 } = plan.band;
  group.append(svg("path", { class: "band", d: `M${x0 + 4} ${a[0]}L${x1 - 4} ${b[0]}V${b[1]}L${x0 + 4} ${a[1]}z` }));
  return group;
}

function sourceEdges(plan) {
  if (!plan.sources) return [];
  const { x, to } = plan.sources;
  if (plan.readouts.grid) {
    const y = plan.band.y0 + (plan.band.y1 - plan.band.y0) / 2;
    return [edge([x, y], [to - 4, y], true)];
  }
  return plan.readouts.places.map((place) => edge([x, leftOf(place)[1]], [to - 4, leftOf(place)[1]], true));
}

function outEdges(plan) {
  if (plan.out === null) return [];
  const end = (plan.filters ?? plan.storage).x - 4;
  const y = plan.band.y0 + (plan.band.y1 - plan.band.y0) / 2;
  const first = plan.builders.grid
    ? [edge([plan.out, y], [end, y], true)]
    : plan.builders.places.map((place) => edge(rightOf(place), [end, rightOf(place)[1]], true));
  const rest = plan.filters ? [edge([plan.filters.x + plan.filters.w, y], [plan.storage.x - 4, y], false)] : [];
  return [...first, ...rest];
}

/** The legend below the picture. */
export function legend() {
  const swatch = (look, words) =>
    el("span", { class: "key" }, el("i", { class: `swatch ${look}`, "aria-hidden": "true" }), words);
  return el(
    "p",
    { class: "legend" },
    swatch("low", "room left"),
    swatch("high", "over 60 % full"),
    swatch("full", "over 90 % full"),
    swatch("waiting", "a builder waits for these fragments"),
    swatch("barred", "barred inlet: what comes before must wait; the farthest right is the cause"),
  );
}
