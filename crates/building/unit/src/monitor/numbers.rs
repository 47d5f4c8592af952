//! The numbers of a field, one after another.
//!
//! The type is looked at once for a payload, so the loop over its items only reads and counts.

use evb_experiment::{FieldLayout, NumberType};

/// Gives `visit` each number of a field. `part` is the part of the payload that has it, and consists of pieces of `stride`
/// bytes, each with the field. Numbers become floating-point numbers of 64 bits, so those beyond 2^53 are rounded.
pub(super) fn read(field: &FieldLayout, part: &[u8], stride: usize, mut visit: impl FnMut(f64)) {
    /// Reads each number as the type, and converts it.
    macro_rules! each {
        ($type:ty, $value:expr) => {{
            let value = $value;
            match field.big_endian {
                true => scan(field, part, stride, |bytes| visit(value(<$type>::from_be_bytes(bytes)))),
                false => scan(field, part, stride, |bytes| visit(value(<$type>::from_le_bytes(bytes)))),
            }
        }};
    }
    let (shift, mask) = field.bits.map_or((0, u64::MAX), |(low, high)| (low, u64::MAX >> (63 - (high - low))));
    let chosen = |value: u64| ((value >> shift) & mask) as f64;
    match field.number {
        NumberType::U1 => each!(u8, |value: u8| chosen(value.into())),
        NumberType::U2 => each!(u16, |value: u16| chosen(value.into())),
        NumberType::U4 => each!(u32, |value: u32| chosen(value.into())),
        NumberType::U8 => each!(u64, chosen),
        NumberType::I1 => each!(i8, f64::from),
        NumberType::I2 => each!(i16, f64::from),
        NumberType::I4 => each!(i32, f64::from),
        NumberType::I8 => each!(i64, |value: i64| value as f64),
        NumberType::F4 => each!(f32, f64::from),
        NumberType::F8 => each!(f64, |value: f64| value),
    }
}

/// Gives `visit` the bytes of each number.
#[inline]
fn scan<const BYTES: usize>(field: &FieldLayout, part: &[u8], stride: usize, mut visit: impl FnMut([u8; BYTES])) {
    let (from, length) = (field.at as usize, field.count as usize * BYTES);
    for piece in part.chunks_exact(stride.max(1)) {
        let Some(numbers) = piece.get(from..from + length) else { return };
        numbers.as_chunks::<BYTES>().0.iter().for_each(|bytes| visit(*bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_experiment::PayloadPart;

    fn field(at: u32, count: u32, number: NumberType, big_endian: bool) -> FieldLayout {
        FieldLayout { part: PayloadPart::Items, at, count, number, big_endian, bits: None }
    }

    fn values(field: &FieldLayout, part: &[u8], stride: usize) -> Vec<f64> {
        let mut values = Vec::new();
        read(field, part, stride, |value| values.push(value));
        values
    }

    /// The values of `numpy.frombuffer` for each type in both orders.
    #[test]
    fn every_type_is_read_as_numpy_reads_it() {
        let bytes = [0xff, 0xc8, 0x45, 0x3f, 0x80, 0x00, 0x00, 0xbf];
        for (number, little, big) in [
            (NumberType::U1, 255.0, 255.0),
            (NumberType::U2, 51455.0, 65480.0),
            (NumberType::U4, 1061538047.0, 4291315007.0),
            (NumberType::U8, 1.3763001012061587e+19, 1.8431057614046495e+19),
            (NumberType::I1, -1.0, -1.0),
            (NumberType::I2, -14081.0, -56.0),
            (NumberType::I4, 1061538047.0, -3652289.0),
            (NumberType::I8, -4.683743061647964e+18, -1.5686459663056704e+16),
            (NumberType::F4, 0.7725982069969177, f64::NAN),
            (NumberType::F8, -3.0521310608560066e-05, -3.4086649655347267e+307),
        ] {
            for (big_endian, expected) in [(false, little), (true, big)] {
                let width = number.bytes() as usize;
                let found = values(&field(0, 1, number, big_endian), &bytes[..width], width)[0];
                let is_same = found == expected || (found.is_nan() && expected.is_nan());
                assert!(is_same, "{number:?}, {big_endian}: {found} {expected}");
            }
        }
    }

    #[test]
    fn fields_are_read_in_each_piece_and_arrays_number_by_number() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
        assert_eq!(values(&field(1, 1, NumberType::U1, false), &bytes, 5), [2.0, 7.0]);
        assert_eq!(values(&field(3, 2, NumberType::U1, false), &bytes, 5), [4.0, 5.0, 9.0, 10.0]);
        assert_eq!(values(&field(0, 2, NumberType::U2, true), &bytes, 5), [258.0, 772.0, 1543.0, 2057.0]);
        assert_eq!(values(&field(4, 1, NumberType::U2, false), &bytes, 5), [0.0; 0], "a field beyond its piece");
    }

    #[test]
    fn bits_are_those_from_the_lowest_to_the_highest() {
        let of_bits = |bits| FieldLayout { bits: Some(bits), ..field(0, 1, NumberType::U2, true) };
        assert_eq!(values(&of_bits((12, 15)), &[0xa5, 0x3c], 2), [10.0]);
        assert_eq!(values(&of_bits((0, 0)), &[0xa5, 0x3d], 2), [1.0]);
        assert_eq!(values(&of_bits((0, 15)), &[0xa5, 0x3c], 2), [f64::from(0xa53c)]);
    }
}
