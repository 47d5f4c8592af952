// The live sources: their states, in a table, and those that the run waits for.

import { el, show, text, follow, cells, table } from "./dom.js";
import { known, count, hertz, span, clock, DASH } from "./units.js";
import { icon, ofSource, setIcon } from "./states.js";
import { faultWords } from "./nodes.js";

/** The name of a source's state. */
export const sourceWord = (state) =>
  state === "connected" ? "connected, has sent nothing" : state.replaceAll("_", " ");

/** Time of day at which something was, that many seconds after the start of the run. */
const at = (status, seconds) => clock((status.run?.started ?? NaN) + seconds);

/** Since when, as in `since 12:04:31 (34 s)`. */
function since(status, seconds) {
  const ago = (status.run?.seconds ?? NaN) - seconds;
  return `since ${at(status, seconds)}${known(ago) ? ` (${span(ago)})` : ""}`;
}

/** The sources that the run waits for, in words, each with the time since when. */
export const waitingWords = (status) =>
  (status?.waiting ?? []).map(({ source, state, since_s: time }) => ({
    source,
    head: `Waiting for ${source}: ${sourceWord(state)}`,
    words: since(status, time),
    state,
  }));

/** Makes the table of live sources. */
export function makeSources() {
  const heads = ["source", "state", "since", "rate", "last counter", "last mark", "faults", "front end"];
  const { node, body } = table(heads, "Live sources");
  const box = el("section", { class: "panel" }, el("h2", { text: "Live sources" }), node);
  return { node: box, update: (status) => update(box, body, status) };
}

function update(box, body, status) {
  const rows = (status.record?.readouts ?? [])
    .map((readout, index) => ({ name: `ru${index}`, ...readout }))
    .filter((readout) => readout.source);
  show(box, rows.length > 0);
  const waited = new Set((status.waiting ?? []).map(({ source }) => source));
  follow(
    body,
    rows,
    (row) => row.name,
    ({ source }) => el("tr", {}, el("td"), el("td", { class: "state-cell" }, icon(ofSource(source.state)), el("span"))),
    (node, { name, source, faults }) => {
      cells(node, [
        name,
        null,
        since(status, source.since_s),
        hertz(source.rate_hz),
        known(source.last_counter) ? count(source.last_counter) : DASH,
        known(source.last_mark) ? count(source.last_mark) : DASH,
        faultWords(faults) || "none",
        source.peer ?? DASH,
      ]);
      const [state, word] = node.children[1].children;
      setIcon(state, ofSource(source.state, waited.has(name)));
      text(word, sourceWord(source.state));
    },
  );
}
