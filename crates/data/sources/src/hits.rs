//! Sources without a trigger: a stream of hits, each with its time, that is cut into slices of the time.
//!
//! An event is a slice. Slices may overlap: hits near the border of two slices belong to both, so that what happens across
//! the border is whole in one of them.
//!
//! Slices are cut here, so machines, blocks and filters need not know of them. Generated hits follow from seed, source
//! and time alone, and are the same in both slices of an overlap.

use crate::{
    OpenOptions, SourceError, SourceSpec,
    draw::{bits, key},
    path::resolve,
    payload,
    slicing::Slicing,
    source::{ReadOutcome, Room},
    spec::Feed,
};
use evb_core::{EventId, Frequency};
use rand_distr::{Distribution as _, Poisson, StandardUniform};
use rand_xoshiro::{SplitMix64, rand_core::SeedableRng as _};
use std::{
    fs::File,
    io::{self, BufReader, Read},
    ops::Range,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

/// Bytes of the time of a hit: nanoseconds, little-endian.
pub const HIT_TIME_BYTES: u64 = 8;
/// Most slices of a file.
const MAX_SLICES: usize = 1 << 24;
/// Mean number of generated hits that are drawn together.
const DRAWN_TOGETHER: f64 = 16.0;
/// Purpose of the draws of this module, beside seed and source.
const HITS: u64 = 3;

/// The reason why a file is not a stream of hits.
#[derive(Debug, thiserror::Error)]
pub enum HitsError {
    /// The file ends within a hit.
    #[error("its length is not a multiple of the {size} bytes of a hit")]
    Length {
        /// Bytes of a hit.
        size: u64,
    },
    /// The hits are not in the order of their times.
    #[error("hit {hit} at {time} ns is earlier than the one before, at {before} ns")]
    Order {
        /// The hit, counted from 0.
        hit: u64,
        /// Its time in nanoseconds.
        time: u64,
        /// The time of the hit before.
        before: u64,
    },
    /// The times span too many slices.
    #[error("its hits span more than {limit} slices: is `readout.slices_from` the time of the first one?")]
    TooManySlices {
        /// The largest number of slices.
        limit: usize,
    },
}

/// The hits of one source.
#[derive(Debug)]
pub(crate) struct Hits {
    slicing: Slicing,
    /// Bytes of a hit.
    size: u64,
    max_fragment: u64,
    origin: Origin,
}

#[derive(Debug)]
enum Origin {
    Generated(Generator),
    File { path: PathBuf, file: File, slices: Slices },
}

/// Hits at random times: a Poisson process, of which any part can be asked for with the same result.
#[derive(Clone, Debug)]
pub(crate) struct Generator {
    key: u64,
    seed: u64,
    unit: u16,
    /// Length in nanoseconds of a part whose hits are drawn together.
    part: u64,
    /// The number of hits in a part.
    number: Poisson<f64>,
}

impl Hits {
    /// Opens the hits that `spec` describes; `None` if it describes none.
    pub(crate) fn open(spec: &SourceSpec, options: &OpenOptions) -> Result<Option<Self>, SourceError> {
        let (size, slicing, origin) = match spec {
            SourceSpec::Hits { rate, size, slicing } => {
                (size.0, *slicing, Origin::Generated(Generator::new(*rate, options)?))
            }
            SourceSpec::HitFile { file, size, slicing } => {
                let path = resolve(file, &options.data_directory)?;
                let file = File::open(&path).map_err(|error| SourceError::Open { path: path.clone(), error })?;
                let slices = Slices::read(&path, &file, size.0, slicing)?;
                (size.0, *slicing, Origin::File { path, file, slices })
            }
            _ => return Ok(None),
        };
        Ok(Some(Self { slicing, size, max_fragment: options.max_fragment.into(), origin }))
    }

    /// Reads the hits of a slice.
    pub(crate) fn read(&mut self, slice: EventId, buffer: &mut impl Room) -> Result<ReadOutcome, SourceError> {
        let most = self.max_fragment / self.size;
        match &self.origin {
            Origin::Generated(generator) => {
                let times = generator.times(self.slicing.window(slice));
                let kept = &times[..times.len().min(most as usize)];
                let room = buffer.room(kept.len() * self.size as usize);
                generator.write(kept, room, self.size as usize);
                Ok(outcome(times.len() as u64, most, self.size))
            }
            Origin::File { path, file, slices } => {
                let Some(hits) = slices.hits(slice) else {
                    buffer.room(0);
                    return Ok(ReadOutcome::Missing);
                };
                let count = hits.end - hits.start;
                let room = buffer.room((count.min(most) * self.size) as usize);
                file.read_exact_at(room, hits.start * self.size)
                    .map_err(|error| SourceError::Read { path: path.clone(), error })?;
                Ok(outcome(count, most, self.size))
            }
        }
    }

    /// Number of hits before the first slice; generated ones do not count.
    pub(crate) const fn early(&self) -> u64 {
        match &self.origin {
            Origin::Generated(_) => 0,
            Origin::File { slices, .. } => slices.early,
        }
    }

    /// The extent of the hits.
    pub(crate) fn feed(&self) -> Feed {
        match &self.origin {
            Origin::Generated(_) => Feed::Endless,
            Origin::File { slices, .. } => slices.feed(),
        }
    }

    /// The sizes of the slices, without their bytes.
    pub(crate) fn into_sizes(self) -> HitSizes {
        let counts = match self.origin {
            Origin::Generated(generator) => Counts::Generated(generator),
            Origin::File { slices, .. } => Counts::File(slices),
        };
        HitSizes { slicing: self.slicing, size: self.size, most: self.max_fragment / self.size, counts }
    }
}

/// A slice has its hits, or more than a fragment may have.
fn outcome(count: u64, most: u64, size: u64) -> ReadOutcome {
    match count > most {
        true => ReadOutcome::Oversized { bytes: u32::try_from(count * size).unwrap_or(u32::MAX) },
        false => ReadOutcome::Good,
    }
}

/// The sizes of slices of hits.
#[derive(Clone, Debug)]
pub(crate) struct HitSizes {
    slicing: Slicing,
    size: u64,
    most: u64,
    counts: Counts,
}

#[derive(Clone, Debug)]
enum Counts {
    Generated(Generator),
    File(Slices),
}

impl HitSizes {
    /// Bytes of the hits of a slice; none after the last one.
    pub(crate) fn size(&self, slice: EventId) -> Option<u32> {
        let count = match &self.counts {
            Counts::Generated(generator) => generator.times(self.slicing.window(slice)).len() as u64,
            Counts::File(slices) => slices.hits(slice).map(|hits| hits.end - hits.start)?,
        };
        Some((count.min(self.most) * self.size) as u32)
    }

    /// The extent of the sizes.
    pub(crate) fn feed(&self) -> Feed {
        match &self.counts {
            Counts::Generated(_) => Feed::Endless,
            Counts::File(slices) => slices.feed(),
        }
    }
}

impl Generator {
    fn new(rate: Frequency, options: &OpenOptions) -> Result<Self, SourceError> {
        let per_ns = rate.as_hertz() * 1e-9;
        let part = (DRAWN_TOGETHER / per_ns).ceil().clamp(1.0, 1e15);
        let number = Poisson::new(part * per_ns).map_err(|error| SourceError::Parameter {
            name: "rate",
            value: format!("{} Hz", rate.as_hertz()),
            expected: format!("a rate of hits: {error}"),
        })?;
        let key = key(options.seed, HITS, options.unit);
        Ok(Self { key, seed: options.seed, unit: options.unit, part: part as u64, number })
    }

    /// The times of all hits in a window, in order.
    fn times(&self, window: Range<u64>) -> Vec<u64> {
        let mut times = Vec::new();
        let parts = window.start / self.part..window.end.div_ceil(self.part);
        parts.for_each(|part| self.draw(part, &mut times));
        times.retain(|time| window.contains(time));
        times
    }

    /// Draws the number of hits of a part, and their times.
    fn draw(&self, part: u64, times: &mut Vec<u64>) {
        let (mut random, first) = (SplitMix64::seed_from_u64(bits(self.key, part)), times.len());
        let count = self.number.sample(&mut random) as u64;
        let start = part * self.part;
        let place = |draw: f64| start + (draw * self.part as f64) as u64;
        times.extend((0..count).map(|_| place(StandardUniform.sample(&mut random))));
        times[first..].sort_unstable();
    }

    /// Writes hits: their times, and bytes that follow from time and source.
    fn write(&self, times: &[u64], room: &mut [u8], size: usize) {
        for (hit, time) in room.chunks_exact_mut(size).zip(times) {
            let (head, rest) = hit.split_at_mut(HIT_TIME_BYTES as usize);
            head.copy_from_slice(&time.to_le_bytes());
            payload::fill(rest, self.seed, EventId(*time), self.unit);
        }
    }
}

/// The hits of each slice of a file, by their numbers.
#[derive(Clone, Debug, Default)]
struct Slices {
    starts: Vec<u64>,
    ends: Vec<u64>,
    /// Hits before the first slice.
    early: u64,
}

impl Slices {
    /// Reads the times of all hits.
    fn read(path: &Path, file: &File, size: u64, slicing: &Slicing) -> Result<Self, SourceError> {
        let failed = |error| SourceError::Read { path: path.to_owned(), error };
        let bad = |error| SourceError::Hits { path: path.to_owned(), error };
        let length = file.metadata().map_err(failed)?.len();
        if !length.is_multiple_of(size) {
            return Err(bad(HitsError::Length { size }));
        }
        let (mut reader, mut slices, mut before) = (BufReader::with_capacity(1 << 20, file), Self::default(), 0);
        for hit in 0..length / size {
            let mut time = [0; HIT_TIME_BYTES as usize];
            reader.read_exact(&mut time).map_err(failed)?;
            io::copy(&mut reader.by_ref().take(size - HIT_TIME_BYTES), &mut io::sink()).map_err(failed)?;
            let time = u64::from_le_bytes(time);
            if time < before {
                return Err(bad(HitsError::Order { hit, time, before }));
            }
            before = time;
            slices.early += u64::from(time < slicing.start());
            slices.add(hit, time, slicing).map_err(bad)?;
        }
        slices.ends.resize(slices.starts.len(), length / size);
        Ok(slices)
    }

    /// Takes the next hit.
    fn add(&mut self, hit: u64, time: u64, slicing: &Slicing) -> Result<(), HitsError> {
        let window = |index: usize| slicing.window(EventId(index as u64 + 1));
        while window(self.ends.len()).end <= time {
            self.ends.push(hit);
            if self.ends.len() > MAX_SLICES {
                return Err(HitsError::TooManySlices { limit: MAX_SLICES });
            }
        }
        while window(self.starts.len()).start <= time {
            self.starts.push(hit);
        }
        Ok(())
    }

    /// The numbers of the hits of a slice; none after the last one.
    fn hits(&self, slice: EventId) -> Option<Range<u64>> {
        let index = usize::try_from(slice.0.checked_sub(1)?).ok()?;
        Some(*self.starts.get(index)?..*self.ends.get(index)?)
    }

    fn feed(&self) -> Feed {
        Feed::Finite { events: self.starts.len() as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use evb_core::{ByteCount, Span};
    use std::{collections::BTreeSet, io::Write as _};

    const SLICING: Slicing =
        Slicing { length: Span::from_micros(100), overlap: Span::from_micros(30), from_ns: Some(5_000_000) };

    fn options(max_fragment: u32) -> OpenOptions {
        OpenOptions { data_directory: ".".into(), unit: 3, seed: 9, max_fragment }
    }

    fn slice(hits: &mut Hits, number: u64) -> (ReadOutcome, Vec<[u8; 16]>) {
        let mut buffer = BytesMut::new();
        let outcome = hits.read(EventId(number), &mut buffer).unwrap();
        let (hits, rest) = buffer.as_chunks::<16>();
        assert!(rest.is_empty());
        (outcome, hits.to_vec())
    }

    fn time(hit: &[u8; 16]) -> u64 {
        u64::from_le_bytes(*hit.first_chunk().unwrap())
    }

    /// Opens hits, and compares their sizes with what is read.
    fn check(spec: &SourceSpec, last: u64) -> BTreeSet<[u8; 16]> {
        let mut hits = Hits::open(spec, &options(1 << 20)).unwrap().unwrap();
        let sizes = Hits::open(spec, &options(1 << 20)).unwrap().unwrap().into_sizes();
        let (mut all, mut before): (BTreeSet<_>, Vec<_>) = (BTreeSet::new(), Vec::new());
        for number in 1..=last {
            let (outcome, hits) = slice(&mut hits, number);
            let window = SLICING.window(EventId(number));
            assert_eq!(outcome, ReadOutcome::Good);
            assert_eq!(sizes.size(EventId(number)), Some(hits.len() as u32 * 16));
            assert!(hits.is_sorted_by_key(time) && hits.iter().all(|hit| window.contains(&time(hit))));
            let late = |hit: &&[u8; 16]| time(hit) >= window.start;
            let early = |hit: &&[u8; 16]| time(hit) < window.start + 30_000;
            if number > 1 {
                assert!(before.iter().filter(late).eq(hits.iter().filter(early)), "overlap of {number}");
            }
            all.extend(hits.iter().copied());
            before = hits;
        }
        all
    }

    #[test]
    fn generated_hits_are_the_same_in_both_slices_of_an_overlap() {
        let spec = SourceSpec::Hits { rate: Frequency(1_000_000_000), size: ByteCount(16), slicing: SLICING };
        let all = check(&spec, 2000);
        // 200 ms at 1 MHz; the standard deviation is the root.
        assert!((all.len() as i64 - 200_030).abs() < 5 * 447, "{}", all.len());
    }

    #[test]
    fn a_file_of_hits_is_cut_into_slices_without_loss() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        // The first two hits are before the first slice.
        let times: Vec<u64> = (0..500).map(|hit| 4_990_000 + hit * hit * 7).collect();
        for time in &times {
            file.write_all(&[time.to_le_bytes(), (time * 3).to_le_bytes()].concat()).unwrap();
        }
        let path = file.path().to_owned();
        let spec = |size| SourceSpec::HitFile { file: path.clone(), size: ByteCount(size), slicing: SLICING };
        let last = (times.last().unwrap() - SLICING.start()) / 100_000 + 1;
        let all = check(&spec(16), last);
        assert_eq!(all.len(), times.iter().filter(|time| **time >= SLICING.start()).count());
        let mut hits = Hits::open(&spec(16), &options(1 << 20)).unwrap().unwrap();
        assert_eq!((hits.feed(), hits.early()), (Feed::Finite { events: last }, 38));
        assert_eq!(slice(&mut hits, last + 1), (ReadOutcome::Missing, Vec::new()));
        let error = Hits::open(&spec(24), &options(1 << 20)).unwrap_err().to_string();
        assert!(error.ends_with("its length is not a multiple of the 24 bytes of a hit"), "{error}");
        file.write_all(&[0; 16]).unwrap();
        let error = Hits::open(&spec(16), &options(1 << 20)).unwrap_err().to_string();
        assert!(error.contains("hit 500 at 0 ns is earlier than the one before"), "{error}");
    }

    #[test]
    fn a_slice_above_the_largest_fragment_is_oversized_and_cut_between_hits() {
        let spec = SourceSpec::Hits { rate: Frequency(1_000_000_000), size: ByteCount(16), slicing: SLICING };
        let mut hits = Hits::open(&spec, &options(1000)).unwrap().unwrap();
        let (outcome, hits) = slice(&mut hits, 1);
        assert_eq!(hits.len(), 62);
        assert!(matches!(outcome, ReadOutcome::Oversized { bytes } if bytes > 1000));
    }
}
