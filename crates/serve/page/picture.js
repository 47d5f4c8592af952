// The picture of the event builder: sources, readout units, builder units, filters and storage, with how full each is.
// A barred inlet says that what comes before it must wait; the barred inlet farthest to the right is the cause.

import { el, svg, attr, attrs, text, tip } from "./dom.js";
import { bytes, hertz, known, rate, several, span, sum, count } from "./units.js";
import { units, live, aboutReadout, aboutBuilder } from "./nodes.js";
import { layout, leftOf, rightOf, middle } from "./layout.js";
import { patterns, row, cell, box, edge, thickness } from "./shapes.js";

const MOST_WAITS = 40;
const MANY_BUILDERS = 8;

/** Makes the picture; `update(status)` draws it, and `update(null)` nothing. */
export function makePicture() {
  const picture = { key: "", focus: 0, items: [] };
  picture.svg = svg("svg", { class: "picture", role: "group", "aria-label": "The event builder. Arrow keys go through its nodes." });
  picture.node = el("div", { class: "picture-box" }, picture.svg);
  picture.update = (status) => update(picture, status);
  listen(picture);
  new ResizeObserver(() => {
    if (picture.status && picture.svg.parentNode.clientWidth !== picture.width) update(picture, picture.status);
  }).observe(picture.node);
  return picture;
}

const hasFilters = (status, all) => all.filters.length > 0 || Boolean(status.record?.filter) || (status.now_rates?.rejected_hz ?? 0) > 0;

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
  picture.band = svg("text", { class: "label strong", "text-anchor": "middle", x: (plan.band.x0 + plan.band.x1) / 2, y: plan.narrow ? plan.band.y1 + 16 : plan.band.y0 - 4 });
  picture.items = [...picture.readouts, ...picture.builders];
  const boxes = [picture.manager, picture.filters, picture.storage].filter(Boolean);
  const lines = [...picture.sources, ...picture.outs].map(({ node }) => node);
  const nodes = [...boxes, ...picture.items].map(({ node }) => node);
  const grid = plan.readouts.grid || plan.builders.grid;
  picture.captions = captions(plan);
  picture.svg.replaceChildren(patterns(), ...picture.captions, picture.mesh, ...lines,
    ...(grid ? [...nodes, picture.waits] : [picture.waits, ...nodes]), picture.band);
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
  const sources = svg("text", { class: "caption", x: (x + to) / 2, y: left.getAttribute("y") ?? 0, "text-anchor": "middle" });
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
  const ends = (column) => [Math.min(...column.places.map((p) => p.y)), Math.max(...column.places.map((p) => p.y + p.h))];
  const [a, b] = [ends(from), ends(to)];
  const { x0, x1 } = plan.band;
  group.append(svg("path", { class: "band", d: `M${x0 + 4} ${a[0]}L${x1 - 4} ${b[0]}V${b[1]}L${x0 + 4} ${a[1]}z` }));
  return group;
}

/** Nothing goes from or to a node that is gone. */
function paintMesh(picture, all) {
  const { readouts: from, builders: to } = picture.plan;
  if (from.grid || to.grid) return;
  const ends = to.places.filter((_, index) => !all.builders[index].gone).map(leftOf);
  [...picture.mesh.children].forEach((path, index) => {
    const start = rightOf(from.places[index]);
    attr(path, "d", all.readouts[index].gone ? null : ends.map((end) => `M${start}L${end}`).join("") || null);
  });
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
  const first = plan.builders.grid ? [edge([plan.out, y], [end, y], true)] : plan.builders.places.map((place) => edge(rightOf(place), [end, rightOf(place)[1]], true));
  const rest = plan.filters ? [edge([plan.filters.x + plan.filters.w, y], [plan.storage.x - 4, y], false)] : [];
  return [...first, ...rest];
}

function paint(picture, status, all) {
  const rates = live(status) ? status.now_rates : {};
  picture.readouts.forEach((item, i) => item.update(all.readouts[i], all.readouts[i].rates.held_events, all.readouts[i].rates.most_events));
  picture.builders.forEach((item, i) => item.update(all.builders[i], all.builders[i].rates.open_events, all.builders[i].rates.slots));
  const away = rates.inhibited_hz > 0 ? `, ${hertz(rates.inhibited_hz)} turned away` : "";
  picture.manager.update([known(rates.trigger_hz) ? `triggers ${hertz(rates.trigger_hz)}${away}` : all.manager?.state ?? ""],
    { slow: isSlow(status, all.manager?.name), gone: all.manager?.state === "lost", blocked: rates.inhibited_hz > 0.01 * (rates.trigger_hz ?? 0) });
  text(picture.band, known(rates.bytes_per_s) ? rate(rates.bytes_per_s) : "");
  const narrow = picture.plan.narrow;
  [[all.readouts, narrow ? "RU" : "readout unit"], [all.builders, narrow ? "BU" : "builder unit"]].forEach(([those, word], index) => {
    const gone = those.filter((unit) => unit.gone).length;
    text(picture.captions[index], `${several(those.length, word)}${gone && those.length !== gone ? `, ${gone} lost` : ""}`);
  });
  const sources = status.record?.bundles?.sources ?? all.readouts.length;
  text(picture.captions[2], picture.plan.sources ? several(sources, "source") : "");
  paintMesh(picture, all);
  paintSources(picture, all, rates);
  paintWaits(picture, all);
  paintOuts(picture, status, all, rates);
}

const isSlow = (status, name) => Boolean(name) && (status.slowest?.node === name || status.limit?.what === name);

function paintSources(picture, all, rates) {
  if (!picture.plan.readouts.grid) {
    picture.sources.forEach((one, i) => {
      const { hz, gone, blocked } = all.readouts[i];
      one.update(gone ? "dead" : blocked ? "held" : known(hz) && hz > 0 ? "flows" : "", 1.5, known(hz) ? hertz(hz) : "");
    });
    return;
  }
  const blocked = all.readouts.some((unit) => unit.blocked);
  picture.sources[0]?.update(blocked ? "held" : rates.trigger_hz > 0 ? "flows" : "", 4, known(rates.trigger_hz) ? hertz(rates.trigger_hz) : "");
}

/** The ways on which a builder unit waits for fragments. */
function paintWaits(picture, all) {
  const readoutOf = new Map(all.readouts.map((unit, index) => [unit.name, index]));
  const grid = picture.plan.builders.grid || picture.plan.readouts.grid;
  const each = all.builders
    .flatMap((unit, to) => unit.waits.map(({ source, fragments }) => ({ from: readoutOf.get(source), to, fragments, source, who: unit.name, number: 1 })))
    .filter(({ from, fragments }) => from !== undefined && fragments > 0);
  const waits = (grid ? together(each) : each).sort((a, b) => b.fragments - a.fragments).slice(0, MOST_WAITS);
  const lines = picture.waits.children;
  const { band } = picture.plan;
  while (lines.length < waits.length) picture.waits.append(svg("line", { class: "edge wait" }));
  while (lines.length > waits.length) lines[lines.length - 1].remove();
  waits.forEach((wait, index) => {
    const [a, b] = [picture.readouts[wait.from], picture.builders[wait.to]];
    const from = picture.plan.readouts.grid ? middle(a.place) : rightOf(a.place);
    const to = !b ? [band.x1, (band.y0 + band.y1) / 2] : picture.plan.builders.grid ? middle(b.place) : leftOf(b.place);
    attrs(lines[index], { x1: from[0], y1: from[1], x2: to[0], y2: to[1], "stroke-width": thickness(wait.fragments) });
    lines[index].evbTip = `${wait.who} ${wait.number === 1 ? "waits" : "wait"} for ${several(wait.fragments, "fragment")} of ${wait.source}`;
  });
}

/** Where many builder units wait for one readout unit, one line says so for all. */
function together(each) {
  const bySource = new Map();
  for (const wait of each) bySource.set(wait.source, [...(bySource.get(wait.source) ?? []), wait]);
  return [...bySource.values()].flatMap((waits) => {
    if (waits.length < MANY_BUILDERS) return waits;
    return [{ ...waits[0], to: -1, fragments: sum(waits.map(({ fragments }) => fragments)), who: `${waits.length} builder units`, number: waits.length }];
  });
}

function paintOuts(picture, status, all, rates) {
  const queue = sum(all.builders.map((unit) => unit.queue));
  const stored = sum(all.builders.map((unit) => unit.stored));
  const look = (waiting, flow) => (waiting > 0 ? "held" : flow > 0 ? "flows" : "");
  const words = (waiting, flow) => (waiting > 0 ? `${bytes(waiting)} wait` : known(flow) ? rate(flow) : "");
  const each = picture.plan.builders.grid ? [{ queue, stored }] : all.builders;
  picture.outs.forEach((one, index) => {
    const unit = each[index] ?? { queue: 0, stored };
    one.update(unit.gone ? "dead" : look(unit.queue, unit.stored), picture.plan.builders.grid || index >= each.length ? 4 : 1.5, words(unit.queue, unit.stored), unit.queue > 0);
  });
  const filter = status.record?.filter;
  picture.filters?.update([filter ? `${hertz(filter.decided_hz)} decided` : "", known(rates.rejected_hz) ? `${hertz(rates.rejected_hz)} rejected` : "",
    filter?.quarantined ? `${count(filter.quarantined)} in quarantine` : ""].filter(Boolean), { slow: isSlow(status, "filter") || isSlow(status, "filters") });
  const { disk } = status;
  const free = disk ? [`${bytes(disk.free_bytes)} free`, known(disk.seconds_until_full) ? `full in ${span(disk.seconds_until_full)}` : ""] : [];
  picture.storage.update([known(stored) ? rate(stored) : "", ...free].filter(Boolean), { slow: isSlow(status, "storage"), blocked: queue > 0 && picture.plan.narrow });
}

function show(picture, index, x, y) {
  const readout = index < picture.readouts.length;
  const unit = readout ? picture.all.readouts[index] : picture.all.builders[index - picture.readouts.length];
  tip(readout ? aboutReadout(unit) : aboutBuilder(unit), x, y);
}

function listen(picture) {
  picture.svg.addEventListener("pointermove", (event) => {
    const unit = event.target.closest(".unit");
    const index = picture.items.findIndex(({ node }) => node === unit);
    if (index >= 0) show(picture, index, event.clientX, event.clientY);
    else tip(event.target.evbTip ?? null, event.clientX, event.clientY);
  });
  picture.svg.addEventListener("pointerleave", () => tip(null));
  picture.svg.addEventListener("focusout", () => tip(null));
  picture.svg.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return tip(null);
    const next = step(picture, event.key);
    if (next === null || !picture.items[next]) return;
    event.preventDefault();
    attr(picture.items[picture.focus].node, "tabindex", "-1");
    picture.focus = next;
    attr(picture.items[next].node, "tabindex", "0");
    picture.items[next].node.focus();
  });
  picture.svg.addEventListener("focusin", (event) => {
    const index = picture.items.findIndex(({ node }) => node === event.target);
    if (index < 0) return;
    const at = event.target.getBoundingClientRect();
    show(picture, index, at.left + at.width / 2, at.top + at.height / 2);
  });
}

/** The unit to which an arrow key leads. */
function step(picture, key) {
  const { focus, plan, readouts, builders } = picture;
  const right = focus >= readouts.length;
  const column = right ? plan.builders : plan.readouts;
  const [at, all] = right ? [focus - readouts.length, builders] : [focus, readouts];
  const to = (index) => (right ? readouts.length : 0) + Math.max(0, Math.min(all.length - 1, index));
  const other = (index) => (right ? Math.min(index, readouts.length - 1) : readouts.length + Math.min(index, builders.length - 1));
  if (key === "ArrowDown") return to(at + column.columns);
  if (key === "ArrowUp") return to(at - column.columns);
  if (key === "ArrowRight") return column.grid && (at + 1) % column.columns && at + 1 < all.length ? to(at + 1) : right ? null : other(column.grid ? 0 : at);
  if (key === "ArrowLeft") return column.grid && at % column.columns ? to(at - 1) : right ? other(column.grid ? 0 : at) : null;
  return null;
}

/** The legend below the picture. */
export function legend() {
  const swatch = (look, words) => el("span", { class: "key" }, el("i", { class: `swatch ${look}`, "aria-hidden": "true" }), words);
  return el("p", { class: "legend" }, swatch("low", "room left"), swatch("high", "over 60 % full"), swatch("full", "over 90 % full"),
    swatch("waiting", "a builder waits for these fragments"), swatch("barred", "barred inlet: what comes before must wait; the farthest right is the cause"));
}

