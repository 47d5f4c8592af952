//! Marks of points and dashes of lines: each series has its own, so that colours are not needed to tell them apart.

use super::style::{GREY, PALETTE};
use plotters::prelude::*;

/// Half the width of a mark in pixels, and of a hollow one, which shows a full one inside.
const FULL: f64 = 4.5;
const HOLLOW: f64 = 6.5;

/// Strokes and gaps in pixels of lines without marks; the first one is solid.
const DASHES: [Option<(i32, i32)>; 5] = [None, Some((9, 4)), Some((2, 3)), Some((14, 3)), Some((5, 8))];

/// Number of shapes.
const SHAPES: usize = 7;

/// The colour at this index of the palette; grey means all.
pub(super) fn colour(place: Option<usize>) -> RGBColor {
    place.map_or(GREY, |place| PALETTE[place % PALETTE.len()])
}

/// Lines of this colour.
pub(super) fn pen(place: Option<usize>) -> ShapeStyle {
    colour(place).stroke_width(2)
}

/// The dashes of a line without marks.
pub(super) fn dashes(place: Option<usize>) -> Option<(i32, i32)> {
    DASHES[place.unwrap_or(0) % DASHES.len()]
}

/// The outline of a mark around its point, closed. Where the colours repeat, the shapes differ.
pub(super) fn outline(place: Option<usize>, is_full: bool) -> Vec<(i32, i32)> {
    let place = place.unwrap_or(0);
    let scale = if is_full { FULL } else { HOLLOW };
    let pixel = |(x, y): (f64, f64)| ((x * scale).round() as i32, (y * scale).round() as i32);
    let mut points: Vec<_> = corners((place + place / PALETTE.len()) % SHAPES).into_iter().map(pixel).collect();
    points.push(points[0]);
    points
}

/// The corners of a shape; the first one is a circle.
fn corners(shape: usize) -> Vec<(f64, f64)> {
    match shape {
        0 => star(16, 1.0, 1.0),
        1 => vec![(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        2 => vec![(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
        3 => vec![(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
        4 => vec![(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)],
        5 => star(5, 1.4, 0.6),
        _ => star(4, 1.5, 0.5),
    }
}

/// A star whose corners lie on two circles; with equal circles, a polygon. The first corner is at the top.
fn star(tips: u32, outer: f64, inner: f64) -> Vec<(f64, f64)> {
    let corner = |n: u32| {
        let (sin, cos) = (f64::from(n) * std::f64::consts::PI / f64::from(tips)).sin_cos();
        let radius = if n.is_multiple_of(2) { outer } else { inner };
        (radius * sin, -radius * cos)
    };
    (0..2 * tips).map(corner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_of_many_series_look_the_same() {
        let looks = |place: usize| (colour(Some(place)).0, colour(Some(place)).1, outline(Some(place), true));
        let shapes: BTreeSet<_> = (0..PALETTE.len()).map(|place| outline(Some(place), true)).collect();
        assert_eq!(shapes.len(), PALETTE.len(), "without colours");
        assert_eq!((0..49).map(looks).collect::<BTreeSet<_>>().len(), 49);
    }
}
