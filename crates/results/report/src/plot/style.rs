//! The house style: white, thin grey grid, sans-serif, colours that everybody can distinguish.

use plotters::style::{
    IntoFont, RGBColor, TextStyle,
    text_anchor::{HPos, Pos, VPos},
};

/// Size of ordinary text in pixels.
pub(super) const TEXT: f64 = 13.0;
/// Size of titles in pixels.
pub(super) const TITLE: f64 = 14.0;
/// Lines of the grid.
pub(super) const GRID: RGBColor = RGBColor(0xE0, 0xE0, 0xE0);
/// Colour of axes, and of parts that belong to no curve.
pub(super) const GREY: RGBColor = RGBColor(0x60, 0x60, 0x60);
/// Text.
pub(super) const INK: RGBColor = RGBColor(0x20, 0x20, 0x20);
/// Colour of used links, and of the first curve.
pub(super) const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xB2);
/// Colour of blocked links, and of the second curve.
pub(super) const VERMILLION: RGBColor = RGBColor(0xD5, 0x5E, 0x00);

/// The palette of M. Okabe and K. Ito, "Color Universal Design", without the yellow, which is invisible on white.
pub(super) const PALETTE: [RGBColor; 7] = [
    BLUE,
    VERMILLION,
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xCC, 0x79, 0xA7),
    RGBColor(0xE6, 0x9F, 0x00),
    RGBColor(0x56, 0xB4, 0xE9),
    RGBColor(0x00, 0x00, 0x00),
];

/// Colours for readers that prefer dark pages: light ones become dark, and blue and black light enough to be seen.
const DARK: [(&str, &str); 7] = [
    ("#FFFFFF", "#16181C"),
    ("#E0E0E0", "#3A3D42"),
    ("#606060", "#A6A9AE"),
    ("#202020", "#E6E6E6"),
    ("#0072B2", "#3D9BE0"),
    ("#D55E00", "#F07A22"),
    ("#000000", "#E6E6E6"),
];

/// The picture with a style that follows the reader's choice of light or dark: rules go before attributes.
pub(super) fn themed(svg: String) -> String {
    let Some((head, rest)) = svg.split_once("<rect") else { return svg };
    let rule =
        |(light, dark): &(&str, &str)| format!("[fill='{light}']{{fill:{dark}}}[stroke='{light}']{{stroke:{dark}}}");
    let rules: String = DARK.iter().map(rule).collect();
    format!("{head}<style>@media (prefers-color-scheme:dark){{{rules}}}</style>\n<rect{rest}")
}

/// A text style of this size in pixels. The SVG backend divides sizes by 1.24.
pub(super) fn text<'a>(size: f64, across: HPos, down: VPos) -> TextStyle<'a> {
    ("sans-serif", size * 1.24).into_font().color(&INK).pos(Pos::new(across, down))
}

/// Estimated width of a text in pixels, rather too large: the font is only known to the viewer.
pub(super) fn width(text: &str, size: f64) -> u32 {
    (text.chars().count() as f64 * size * 0.62).ceil() as u32
}

/// The text without characters that XML forbids, cut to `most` characters.
pub(super) fn printable(text: &str, most: usize) -> String {
    let clean = |c: char| if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') { ' ' } else { c };
    if text.chars().count() <= most {
        return text.chars().map(clean).collect();
    }
    text.chars().map(clean).take(most.saturating_sub(1)).chain(['\u{2026}']).collect()
}
