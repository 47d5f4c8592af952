// A hex view: lines of bytes with their offset, and the same bytes as text.

import { el, show, text } from "./dom.js";
import { count } from "./units.js";

const printable = (byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "·");

/** The bytes of a text in hex; other characters are left out. */
export function parse(hex) {
  return (hex ?? "").match(/[0-9a-f]{2}/gi)?.map((pair) => parseInt(pair, 16)) ?? [];
}

/** Lines of a hex view, with a number of bytes each. */
export function lines(values, offset, each) {
  const all = [];
  for (let at = 0; at < values.length; at += each) {
    const part = values.slice(at, at + each);
    const groups = [];
    for (let g = 0; g < part.length; g += 4)
      groups.push(
        part
          .slice(g, g + 4)
          .map((byte) => byte.toString(16).padStart(2, "0"))
          .join(" "),
      );
    const wide = groups.join("  ").padEnd(each * 3 + each / 4 - 2);
    all.push(`${(offset + at).toString(16).padStart(6, "0")}  ${wide}  ${part.map(printable).join("")}`);
  }
  return all.join("\n");
}

/** Makes the view; `more` fetches bytes from an offset, or is null where there are none to fetch. */
export function makeHex() {
  const body = el("pre", { class: "hex", tabindex: "0", "aria-label": "Bytes of the fragment" });
  const note = el("p", { class: "small" });
  const next = el("button", { type: "button", text: "More bytes", hidden: true });
  const hex = { node: el("div", {}, note, body, next), values: [], size: 0, offset: 0, more: null };
  const draw = () => {
    const each = body.clientWidth && body.clientWidth < 520 ? 8 : 16;
    text(body, lines(hex.values, 0, each));
    const all = hex.values.length >= hex.size;
    const rest = hex.more ? "" : " A live event shows only its first bytes; those of files show all.";
    text(
      note,
      hex.size === 0
        ? "There are no bytes."
        : all
          ? `All ${count(hex.size)} bytes.`
          : `The first ${count(hex.values.length)} of ${count(hex.size)} bytes.${rest}`,
    );
    show(next, !all && Boolean(hex.more));
  };
  next.addEventListener("click", async () => {
    const found = await hex
      .more(hex.values.length)
      .catch((error) => text(note, `${error.message} ${error.hint ?? ""}`));
    const fresh = parse(found?.bytes);
    if (!fresh.length) return show(next, false);
    hex.values = [...hex.values, ...fresh];
    draw();
  });
  hex.set = (bytes, size, more) => {
    Object.assign(hex, { values: parse(bytes), size, more });
    draw();
  };
  addEventListener("resize", () => hex.values.length && draw());
  return hex;
}
