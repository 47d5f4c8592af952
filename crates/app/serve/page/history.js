// The history of the rates: fetched once, and continued from each status.

import { get } from "./api.js";
import { inRun } from "./states.js";
import { sum } from "./units.js";

const KEPT_S = 3700;
const COLUMNS = [
  "time",
  "trigger_hz",
  "built_hz",
  "incomplete_hz",
  "inhibited_hz",
  "bytes_per_s",
  "stored_bytes_per_s",
];

/** Makes an empty history. */
export const makeHistory = () => ({ columns: COLUMNS, points: [] });

/** Fetches the history anew; points that came meanwhile stay. */
export async function fetchHistory(history) {
  const found = await get("api/history").catch(() => null);
  if (!found?.points) return;
  const places = COLUMNS.map((name) => found.columns.indexOf(name));
  const old = found.points.map((point) => places.map((place) => (place < 0 ? null : point[place])));
  const end = old.length ? old[old.length - 1][0] : 0;
  history.points = [...old, ...history.points.filter((point) => point[0] > end)];
}

/** Takes the rates of a status, at most one point in a second. Between runs there is nothing to take. */
export function takeStatus(history, status) {
  const rates = status.now_rates;
  if (!rates || !inRun(status.state)) return;
  const { points } = history;
  if (points.length && status.now - points[points.length - 1][0] < 0.95) return;
  const stored = sum((rates.builders ?? []).map((one) => one.stored_bytes_per_s));
  points.push([status.now, ...COLUMNS.slice(1, -1).map((name) => rates[name] ?? null), stored]);
  while (points.length && points[0][0] < status.now - KEPT_S) points.shift();
}
