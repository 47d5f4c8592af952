//! The data rate of a link by its width and speed, such as `4xHDR`.

use evb_core::Bandwidth;

/// Data rate of a lane for each speed, in bit/s: the signalling rate less the code of the line, which is 8 of 10 bits up to
/// QDR, and 64 of 66 from FDR10 on; from HDR on the forward error correction, too (InfiniBand Architecture Specification,
/// volume 2, and the roadmap of the InfiniBand Trade Association).
const LANES: [(&str, u64); 9] = [
    ("SDR", 2_000_000_000),
    ("DDR", 4_000_000_000),
    ("QDR", 8_000_000_000),
    ("FDR10", 10_000_000_000),
    // 14.0625 Gbit/s x 64 / 66.
    ("FDR", 13_636_363_636),
    ("EDR", 25_000_000_000),
    ("HDR", 50_000_000_000),
    ("NDR", 100_000_000_000),
    ("XDR", 200_000_000_000),
];

/// The data rate of a link with this width and speed.
pub(super) fn of(text: &str) -> Option<Bandwidth> {
    let (width, speed) = text.split_once('x')?;
    let lanes = ["1", "2", "4", "8", "12"].iter().find(|&&lanes| lanes == width)?;
    let (_, rate) = LANES.iter().find(|(name, _)| *name == speed)?;
    Some(Bandwidth(lanes.parse::<u64>().ok()? * rate))
}

#[cfg(test)]
mod tests {
    use super::of;
    use evb_core::Bandwidth;

    #[test]
    fn width_times_speed() {
        let rates =
            ["1xSDR", "4xQDR", "4xFDR", "4xEDR", "2xHDR", "4xNDR", "12xXDR"].map(|text| of(text).map(|rate| rate.0));
        let expected: [u64; 7] = [
            2_000_000_000,
            32_000_000_000,
            54_545_454_544,
            100_000_000_000,
            100_000_000_000,
            400_000_000_000,
            2_400_000_000_000,
        ];
        assert_eq!(rates, expected.map(Some));
        assert_eq!(["", "4x", "x", "3xEDR", "4x???", "4XEDR", "EDR"].map(of), [None::<Bandwidth>; 7]);
    }
}
