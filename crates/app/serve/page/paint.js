// The painting of the picture: rates, waits and back-pressure of a status, on the elements that are there.

import { svg, attr, attrs, text } from "./dom.js";
import { bytes, hertz, known, rate, several, span, sum, count } from "./units.js";
import { live } from "./nodes.js";
import { leftOf, rightOf, middle } from "./layout.js";
import { thickness } from "./shapes.js";

const MOST_WAITS = 40;
const MANY_BUILDERS = 8;

/** Paints the picture with a status and its units. */
export function paint(picture, status, all) {
  const rates = live(status) ? status.now_rates : {};
  picture.readouts.forEach((item, i) =>
    item.update(all.readouts[i], all.readouts[i].rates.held_events, all.readouts[i].rates.most_events),
  );
  picture.builders.forEach((item, i) =>
    item.update(all.builders[i], all.builders[i].rates.open_events, all.builders[i].rates.slots),
  );
  const away = rates.inhibited_hz > 0 ? `, ${hertz(rates.inhibited_hz)} turned away` : "";
  picture.manager.update(
    [known(rates.trigger_hz) ? `triggers ${hertz(rates.trigger_hz)}${away}` : (all.manager?.state ?? "")],
    {
      slow: isSlow(status, all.manager?.name),
      gone: all.manager?.state === "lost",
      blocked: rates.inhibited_hz > 0.01 * (rates.trigger_hz ?? 0),
    },
  );
  text(picture.band, known(rates.bytes_per_s) ? rate(rates.bytes_per_s) : "");
  paintCaptions(picture, status, all);
  paintMesh(picture, all);
  paintSources(picture, all, rates);
  paintWaits(picture, all);
  paintOuts(picture, all);
  paintEnds(picture, status, all, rates);
}

function paintCaptions(picture, status, all) {
  const narrow = picture.plan.narrow;
  [
    [all.readouts, narrow ? "RU" : "readout unit"],
    [all.builders, narrow ? "BU" : "builder unit"],
  ].forEach(([those, word], index) => {
    const gone = those.filter((unit) => unit.gone).length;
    text(
      picture.captions[index],
      `${several(those.length, word)}${gone && those.length !== gone ? `, ${gone} lost` : ""}`,
    );
  });
  const sources = status.record?.bundles?.sources ?? all.readouts.length;
  text(picture.captions[2], picture.plan.sources ? several(sources, "source") : "");
}

const isSlow = (status, name) => Boolean(name) && (status.slowest?.node === name || status.limit?.what === name);

function paintSources(picture, all, rates) {
  if (!picture.plan.readouts.grid) {
    picture.sources.forEach((one, i) => {
      const { hz, gone, blocked } = all.readouts[i];
      one.update(
        gone ? "dead" : blocked ? "held" : known(hz) && hz > 0 ? "flows" : "",
        1.5,
        known(hz) ? hertz(hz) : "",
      );
    });
    return;
  }
  const blocked = all.readouts.some((unit) => unit.blocked);
  picture.sources[0]?.update(
    blocked ? "held" : rates.trigger_hz > 0 ? "flows" : "",
    4,
    known(rates.trigger_hz) ? hertz(rates.trigger_hz) : "",
  );
}

/** The ways on which a builder unit waits for fragments. */
function paintWaits(picture, all) {
  const readoutOf = new Map(all.readouts.map((unit, index) => [unit.name, index]));
  const grid = picture.plan.builders.grid || picture.plan.readouts.grid;
  const each = all.builders
    .flatMap((unit, to) =>
      unit.waits.map(({ source, fragments }) => ({
        from: readoutOf.get(source),
        to,
        fragments,
        source,
        who: unit.name,
        number: 1,
      })),
    )
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
    lines[index].evbTip =
      `${wait.who} ${wait.number === 1 ? "waits" : "wait"} for ${several(wait.fragments, "fragment")} of ${wait.source}`;
  });
}

/** Where many builder units wait for one readout unit, one line says so for all. */
function together(each) {
  const bySource = new Map();
  for (const wait of each) bySource.set(wait.source, [...(bySource.get(wait.source) ?? []), wait]);
  return [...bySource.values()].flatMap((waits) => {
    if (waits.length < MANY_BUILDERS) return waits;
    return [
      {
        ...waits[0],
        to: -1,
        fragments: sum(waits.map(({ fragments }) => fragments)),
        who: `${waits.length} builder units`,
        number: waits.length,
      },
    ];
  });
}

function paintOuts(picture, all) {
  const queue = sum(all.builders.map((unit) => unit.queue));
  const stored = sum(all.builders.map((unit) => unit.stored));
  const storageHeld = all.builders.some((unit) => unit.storageHeld);
  const look = (unit) => (unit.gone ? "dead" : unit.storageHeld ? "held" : unit.stored > 0 ? "flows" : "");
  const words = (unit) =>
    unit.storageHeld ? `${count(unit.queue)} wait` : known(unit.stored) ? rate(unit.stored) : "";
  const each = picture.plan.builders.grid ? [{ queue, stored, storageHeld }] : all.builders;
  picture.outs.forEach((one, index) => {
    const unit = each[index] ?? { stored };
    one.update(look(unit), picture.plan.builders.grid || index >= each.length ? 4 : 1.5, words(unit), unit.storageHeld);
  });
}

function paintEnds(picture, status, all, rates) {
  const stored = sum(all.builders.map((unit) => unit.stored));
  const filter = status.record?.filter;
  picture.filters?.update(
    [
      filter ? `${hertz(filter.decided_hz)} decided` : "",
      known(rates.rejected_hz) ? `${hertz(rates.rejected_hz)} rejected` : "",
      filter?.quarantined ? `${count(filter.quarantined)} in quarantine` : "",
    ].filter(Boolean),
    { slow: isSlow(status, "filter") || isSlow(status, "filters") },
  );
  const { disk } = status;
  const free = disk
    ? [
        `${bytes(disk.free_bytes)} free`,
        known(disk.seconds_until_full) ? `full in ${span(disk.seconds_until_full)}` : "",
      ]
    : [];
  picture.storage.update([known(stored) ? rate(stored) : "", ...free].filter(Boolean), {
    slow: isSlow(status, "storage"),
    blocked: picture.plan.narrow && all.builders.some((unit) => unit.storageHeld),
  });
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
