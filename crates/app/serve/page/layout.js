// The places of everything in the picture of the event builder: pure geometry, for any number of units and any width.

/** Up to this many units of a kind each has a row; above they are cells of a grid. */
const ROWS = 16;
const NARROW = 680;
const TOP = 76;
const GAP = 8;

/** The places of the units of one column: rows, or a grid. */
function column(number, x, width, narrow) {
  if (number > ROWS) return grid(number, x, width, narrow);
  const pitch = Math.max(30, Math.min(46, 400 / Math.max(1, number)));
  const places = Array.from({ length: number }, (_, index) => ({ x, y: index * pitch, w: width, h: pitch - GAP }));
  return { grid: false, columns: 1, places, height: number * pitch - GAP };
}

function grid(number, x, width, narrow) {
  const columns = narrow ? 8 : number <= 64 ? 8 : 16;
  const cell = Math.max(12, Math.min(34, Math.floor(width / columns)));
  const left = x + (width - cell * columns) / 2;
  const place = (index) => ({
    x: left + (index % columns) * cell,
    y: Math.floor(index / columns) * cell,
    w: cell - 3,
    h: cell - 3,
  });
  const places = Array.from({ length: number }, (_, index) => place(index));
  return { grid: true, columns, places, height: Math.ceil(number / columns) * cell - 3 };
}

/** Moves a column down so that its middle is in the middle of the picture. */
function centre(one, height) {
  const down = TOP + (height - one.height) / 2;
  return { ...one, places: one.places.map((place) => ({ ...place, y: place.y + down })) };
}

/**
 * The layout for these numbers of readout and builder units, with or without filters, in this width: the columns, the boxes of event
 * manager, filters and storage, and the height of all.
 */
export function layout(width, readouts, builders, filters) {
  return width < NARROW ? narrow(width, readouts, builders, filters) : wide(width, readouts, builders, filters);
}

function wide(width, readouts, builders, filters) {
  const storage = 140;
  const side = 100;
  const filter = filters ? 120 + 36 : 0;
  const many = Math.max(readouts, builders) > ROWS;
  const inner = width - side - storage - side - filter;
  const column_ = many ? Math.min(16 * 34, inner * 0.4) : Math.min(214, inner * 0.36);
  const left = column(readouts, side, column_, false);
  const right = column(builders, side + inner - column_, column_, false);
  const height = Math.max(left.height, right.height, 150);
  const box = (x, w) => ({ x, y: TOP, w, h: height });
  const out = side + inner + side;
  return {
    narrow: false,
    width,
    height: TOP + height + 10,
    readouts: centre(left, height),
    builders: centre(right, height),
    sources: { x: 10, to: side },
    band: { x0: side + column_, x1: side + inner - column_, y0: TOP, y1: TOP + height },
    manager: { x: side + inner / 2 - 150, y: 4, w: 300, h: 42 },
    filters: filters ? box(out, 120) : null,
    storage: box(out + filter, storage - 4),
    out: side + inner,
  };
}

function narrow(width, readouts, builders, filters) {
  const gap = 56;
  const each = (width - gap - 2) / 2;
  const left = column(readouts, 1, each, true);
  const right = column(builders, 1 + each + gap, each, true);
  const height = Math.max(left.height, right.height);
  const bottom = TOP + height + 26;
  const half = filters ? (width - 12) / 2 : width - 2;
  return {
    narrow: true,
    width,
    height: bottom + 78,
    readouts: centre(left, height),
    builders: centre(right, height),
    sources: null,
    band: { x0: 1 + each, x1: 1 + each + gap, y0: TOP, y1: TOP + height },
    manager: { x: 1, y: 4, w: width - 2, h: 42 },
    filters: filters ? { x: 1, y: bottom, w: half, h: 74 } : null,
    storage: { x: filters ? 11 + half : 1, y: bottom, w: half, h: 74 },
    out: null,
  };
}

/** The middle of the left side of a place, of its right side, and of all of it. */
export const leftOf = (place) => [place.x, place.y + place.h / 2];
export const rightOf = (place) => [place.x + place.w, place.y + place.h / 2];
export const middle = (place) => [place.x + place.w / 2, place.y + place.h / 2];
