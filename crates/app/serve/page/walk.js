// The way through the picture by mouse and keyboard: what is under the pointer or has the focus says what it is.

import { attr, tip } from "./dom.js";
import { aboutReadout, aboutBuilder } from "./nodes.js";

function show(picture, index, x, y) {
  const readout = index < picture.readouts.length;
  const unit = readout ? picture.all.readouts[index] : picture.all.builders[index - picture.readouts.length];
  tip(readout ? aboutReadout(unit) : aboutBuilder(unit), x, y);
}

/** Listens to mouse and keys in the picture. */
export function listen(picture) {
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
  const other = (index) =>
    right ? Math.min(index, readouts.length - 1) : readouts.length + Math.min(index, builders.length - 1);
  if (key === "ArrowDown") return to(at + column.columns);
  if (key === "ArrowUp") return to(at - column.columns);
  if (key === "ArrowRight")
    return column.grid && (at + 1) % column.columns && at + 1 < all.length
      ? to(at + 1)
      : right
        ? null
        : other(column.grid ? 0 : at);
  if (key === "ArrowLeft")
    return column.grid && at % column.columns ? to(at - 1) : right ? other(column.grid ? 0 : at) : null;
  return null;
}
