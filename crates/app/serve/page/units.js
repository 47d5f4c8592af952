// Numbers as text: SI prefixes, counts, times. What is not known is a dash.

export const DASH = "–";
const THIN = "\u202f";
const PREFIXES = [
  [1e15, "P"],
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
  [1, ""],
  [1e-3, "m"],
  [1e-6, "µ"],
  [1e-9, "n"],
];

/** True for a number that can be shown. */
export const known = (value) => typeof value === "number" && Number.isFinite(value);

function three(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

/** The prefix for a value: its factor and its letter. */
export function prefix(value) {
  const size = Math.abs(value) * 1.0005;
  return PREFIXES.find(([factor]) => size >= factor) ?? PREFIXES[PREFIXES.length - 1];
}

/** A value with three digits and an SI prefix, such as `98.0 kHz`. */
export function si(value, unit = "") {
  if (!known(value)) return DASH;
  if (value === 0) return unit ? `0${THIN}${unit}` : "0";
  const [factor, letter] = prefix(value);
  const scaled = value / factor;
  const digits = factor === 1 && Number.isInteger(value) && Math.abs(value) < 1000 ? String(value) : three(scaled);
  return letter + unit ? `${digits}${THIN}${letter}${unit}` : digits;
}

export const hertz = (value) => (known(value) && value > 0 && value < 0.0005 ? `0${THIN}Hz` : si(value, "Hz"));
export const bytes = (value) => si(value, "B");
export const rate = (value) => si(value, "B/s");

/** A whole number with its digits in groups of three. */
export function count(value) {
  if (!known(value)) return DASH;
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, THIN);
}

/** A part as per cent. */
export function percent(part) {
  if (!known(part)) return DASH;
  const value = part * 100;
  if (value > 0 && value < 0.1) return `<0.1${THIN}%`;
  return `${value < 9.95 && value > 0 ? value.toFixed(1) : value.toFixed(0)}${THIN}%`;
}

/** A time span in words, such as `1 h 02 min`. */
export function span(seconds) {
  if (!known(seconds)) return DASH;
  const all = Math.max(0, Math.floor(seconds));
  const two = (value) => String(value).padStart(2, "0");
  const [days, hours, minutes] = [Math.floor(all / 86400), Math.floor(all / 3600) % 24, Math.floor(all / 60) % 60];
  if (days) return `${days} d ${two(hours)} h`;
  if (hours) return `${hours} h ${two(minutes)} min`;
  if (minutes) return `${minutes} min ${two(all % 60)} s`;
  return `${all} s`;
}

const iso = (time) => new Date(time * 1000).toISOString();

/** The time of day, UTC. */
export const clock = (time) => (known(time) ? iso(time).slice(11, 19) : DASH);

/** Date and time of day, UTC. */
export const stamp = (time) => (known(time) ? iso(time).slice(0, 19).replace("T", " ") : DASH);

/** One or several: `1 event`, `2 events`. */
export const several = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

/** A sum of the known values; `null` if none is known. */
export function sum(values) {
  const good = values.filter(known);
  return good.length ? good.reduce((a, b) => a + b, 0) : null;
}
