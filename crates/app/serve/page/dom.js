// Elements: small helpers that make them, and that change them only where something is new.

const SVG = "http://www.w3.org/2000/svg";

function build(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** An HTML element. `text` is its text, `onclick` and the like are listeners, the rest are attributes. */
export const el = (tag, props, ...children) => build(document.createElement(tag), props, children);

/** The same for SVG. */
export const svg = (tag, props, ...children) => build(document.createElementNS(SVG, tag), props, children);

/** Sets the text of an element, if it is another one. */
export function text(node, value) {
  const wanted = String(value);
  if (node.textContent !== wanted) node.textContent = wanted;
}

/** Sets an attribute, if it is another one; `null` removes it. */
export function attr(node, name, value) {
  if (value === null || value === undefined || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
    return;
  }
  const wanted = value === true ? "" : String(value);
  if (node.getAttribute(name) !== wanted) node.setAttribute(name, wanted);
}

/** Several attributes at once. */
export function attrs(node, all) {
  for (const [name, value] of Object.entries(all)) attr(node, name, value);
}

/** Adds or removes a class. */
export function flag(node, name, on) {
  if (node.classList.contains(name) !== Boolean(on)) node.classList.toggle(name, Boolean(on));
}

/** Shows or hides an element. */
export function show(node, on) {
  if (node.hidden === Boolean(on)) node.hidden = !on;
}

/** The width of a bar in per cent. */
export function width(node, part) {
  const wanted = `${Math.round(Math.min(1, Math.max(0, part || 0)) * 1000) / 10}%`;
  if (node.style.width !== wanted) node.style.width = wanted;
}

/**
 * Makes the children of an element follow a list. Each item has a key; elements stay where the key stays. `make` returns
 * an element, `update` changes it.
 */
export function follow(parent, items, key, make, update) {
  const known = (parent.evbChildren ??= new Map());
  const seen = new Set();
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    seen.add(name);
    let child = known.get(name);
    if (!child) {
      child = make(item);
      known.set(name, child);
    }
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
    update?.(child, item);
  }
  for (const [name, child] of known) {
    if (!seen.has(name)) {
      child.remove();
      known.delete(name);
    }
  }
}

/** True if a key press belongs to a field in which one types. */
export const typing = (event) => Boolean(event.target.closest?.("input, textarea, select, dialog"));

/** A table with a head; returns the table and its body. */
export function table(heads, label) {
  const body = el("tbody");
  const cells = heads.map((head) =>
    el("th", { scope: "col", class: head.number ? "number" : null, text: head.text ?? head }),
  );
  const node = el("table", { "aria-label": label }, el("thead", {}, el("tr", {}, ...cells)), body);
  return { node, body };
}

/** Makes the cells of a row say these texts; the first use makes the cells. */
export function cells(row, texts, numbers = []) {
  while (row.children.length < texts.length) {
    row.append(el("td", { class: numbers.includes(row.children.length) ? "number" : null }));
  }
  texts.forEach((value, index) => {
    if (value !== null) text(row.children[index], value);
  });
}

/** The box that shows what is under the pointer or has the focus. */
export function tip(lines, x, y) {
  const node = document.getElementById("tip");
  show(node, Boolean(lines));
  if (!lines) return;
  text(node, lines);
  const { width: w, height: h } = node.getBoundingClientRect();
  const left = Math.max(4, Math.min(x + 12, innerWidth - w - 8));
  const top = y + 16 + h > innerHeight ? Math.max(4, y - h - 12) : y + 16;
  node.style.left = `${left}px`;
  node.style.top = `${top}px`;
}
