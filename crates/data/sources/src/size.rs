//! Sizes of fragments as a pure function of seed, source and event.

mod relative;
mod trace;

pub(crate) use relative::read_model;
pub(crate) use trace::read_trace;

use crate::{
    OpenOptions, SourceError, SourceSpec,
    draw::{LogNormal, bits, key},
    hits::{HitSizes, Hits},
    path::resolve,
    source::open_recorded,
    spec::Feed,
};
use evb_core::{ByteCount, EventId, Recording};
use relative::Relative;
use std::{
    fs::File,
    io::BufReader,
    path::{Path, PathBuf},
};
use trace::Trace;

/// Smallest size of a distribution, in bytes. Sizes in a file are used as they are.
pub const MIN_DRAWN_SIZE: u32 = 16;

/// Purpose of the draws of this module, beside seed and source.
const OWN_SIZE: u64 = 1;
const EVENT_SIZE: u64 = 2;

/// The sizes of one readout unit's fragments. The same seed, source and event give the same size in every process, at
/// every call.
#[derive(Clone, Debug)]
pub struct SizeModel(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Fixed(u32),
    Uniform { key: u64, min: u32, max: u32 },
    LogNormal { draw: LogNormal, max: u32 },
    Relative { model: Relative, max: u32 },
    Trace(Trace),
    Recorded { trace: Trace, recording: Recording },
    Hits(HitSizes),
}

impl SizeModel {
    /// The sizes that `spec` describes for readout unit `options.unit`. Drawn sizes are limited to
    /// `options.max_fragment`.
    ///
    /// # Errors
    /// If a parameter is impossible, a size in a file is above `options.max_fragment`, a file cannot be read or has a
    /// bad line, or the source is live.
    pub fn open(spec: &SourceSpec, options: &OpenOptions) -> Result<Self, SourceError> {
        let own = key(options.seed, OWN_SIZE, options.unit);
        let max = options.max_fragment;
        let kind = match spec {
            SourceSpec::Fixed { size } => Kind::Fixed(written("size", *size, max)?),
            SourceSpec::Uniform { min: low, max: high } => uniform(own, *low, *high, max)?,
            SourceSpec::LogNormal { mean, rms } => {
                let mean = f64::from(positive("mean", *mean, max)?);
                Kind::LogNormal { draw: LogNormal::new(own, mean, rms.0 as f64), max }
            }
            SourceSpec::Trace { file, source } => {
                let (path, reader) = open(file, options)?;
                Kind::Trace(read_trace(path, reader, source.unwrap_or(options.unit.into()), max)?)
            }
            SourceSpec::SizeModel { .. } => relative(spec, options, own)?,
            SourceSpec::CmsFed { .. } => recorded(spec, options)?,
            SourceSpec::Hits { .. } | SourceSpec::HitFile { .. } => {
                Kind::Hits(Hits::open(spec, options)?.ok_or(SourceError::Live)?.into_sizes())
            }
            SourceSpec::Live(_) => return Err(SourceError::Live),
        };
        Ok(Self(kind))
    }

    /// Size in bytes of this source's fragment of `event`; `None` if it has none.
    pub fn size(&mut self, event: EventId) -> Option<u32> {
        match &mut self.0 {
            Kind::Fixed(size) => Some(*size),
            Kind::Uniform { key, min, max } => Some(between(bits(*key, event.0), *min, *max)),
            Kind::LogNormal { draw, max } => Some(drawn(draw.draw(event.0), *max)),
            Kind::Relative { model, max } => Some(drawn(model.size(event.0), *max)),
            Kind::Trace(trace) | Kind::Recorded { trace, .. } => trace.size(event.0),
            Kind::Hits(sizes) => sizes.size(event),
        }
    }

    /// The mean of all sizes in bytes, where a formula gives it: not of a file, nor of a distribution whose tails are limited.
    pub fn mean(&self) -> Option<f64> {
        match &self.0 {
            Kind::Fixed(size) => Some(f64::from(*size)),
            Kind::Uniform { min, max, .. } => Some((f64::from(*min) + f64::from(*max)) / 2.0),
            Kind::LogNormal { draw, max } => draw.mean_between(MIN_DRAWN_SIZE.into(), f64::from(*max)),
            Kind::Relative { .. } | Kind::Trace(_) | Kind::Recorded { .. } | Kind::Hits(_) => None,
        }
    }

    /// The extent and first fragments of a recording.
    pub const fn recording(&self) -> Option<&Recording> {
        match &self.0 {
            Kind::Recorded { recording, .. } => Some(recording),
            _ => None,
        }
    }

    /// The extent of the sizes.
    pub fn feed(&self) -> Feed {
        match &self.0 {
            Kind::Trace(trace) | Kind::Recorded { trace, .. } => Feed::Finite { events: trace.last_event() },
            Kind::Hits(sizes) => sizes.feed(),
            _ => Feed::Endless,
        }
    }
}

/// A drawn value as a size: rounded, not below [`MIN_DRAWN_SIZE`], not above `max`.
fn drawn(value: f64, max: u32) -> u32 {
    // The conversion saturates, so a draw of infinity is cut like any other.
    (value.round() as u32).max(MIN_DRAWN_SIZE).min(max)
}

/// Maps 64 random bits to `min..=max` by multiplication; the bias is below 2^-31.
const fn between(bits: u64, min: u32, max: u32) -> u32 {
    let span = (max - min) as u128 + 1;
    min + ((bits as u128 * span) >> 64) as u32
}

fn uniform(key: u64, low: ByteCount, high: ByteCount, limit: u32) -> Result<Kind, SourceError> {
    let (min, max) = (written("min", low, limit)?, written("max", high, limit)?);
    if min > max {
        return Err(parameter("min", low, format!("at most max, which is {high}")));
    }
    Ok(Kind::Uniform { key, min, max })
}

fn relative(spec: &SourceSpec, options: &OpenOptions, own: u64) -> Result<Kind, SourceError> {
    let SourceSpec::SizeModel { file, fed, event_size_mean: mean, event_size_rms: rms } = spec else {
        unreachable!("called for a size model only")
    };
    if !(mean.is_finite() && *mean > 0.0) {
        return Err(parameter("event_size_mean", mean, "above 0".into()));
    }
    if !(rms.is_finite() && *rms >= 0.0) {
        return Err(parameter("event_size_rms", rms, "0 or above".into()));
    }
    let (path, reader) = open(file, options)?;
    let row = read_model(path, reader, *fed, options.unit)?;
    // Every readout unit draws the same event size: the key must not depend on the source.
    let event_size = LogNormal::new(key(options.seed, EVENT_SIZE, 0), *mean, *rms);
    Ok(Kind::Relative { model: Relative::new(row, event_size, own), max: options.max_fragment })
}

fn recorded(spec: &SourceSpec, options: &OpenOptions) -> Result<Kind, SourceError> {
    let fed = open_recorded(spec, &options.data_directory)?;
    let sizes = fed.entries().iter().filter_map(|entry| Some((entry.event?, entry.length.min(options.max_fragment))));
    let mut sizes: Vec<_> = sizes.collect();
    sizes.sort_unstable();
    Ok(Kind::Recorded { trace: Trace::new(sizes.into(), fed.events()), recording: fed.recording() })
}

fn open(file: &Path, options: &OpenOptions) -> Result<(PathBuf, BufReader<File>), SourceError> {
    let path = resolve(file, &options.data_directory)?;
    match File::open(&path) {
        Ok(file) => Ok((path, BufReader::new(file))),
        Err(error) => Err(SourceError::Open { path, error }),
    }
}

/// Checks a size from the user: it must not exceed the limit.
fn written(name: &'static str, size: ByteCount, limit: u32) -> Result<u32, SourceError> {
    let fits = u32::try_from(size.0).ok().filter(|&bytes| bytes <= limit);
    fits.ok_or_else(|| parameter(name, size, format!("at most {}, the largest fragment", ByteCount(u64::from(limit)))))
}

fn positive(name: &'static str, size: ByteCount, limit: u32) -> Result<u32, SourceError> {
    if size.0 == 0 {
        return Err(parameter(name, size, "above 0".into()));
    }
    written(name, size, limit)
}

fn parameter(name: &'static str, value: impl ToString, expected: String) -> SourceError {
    SourceError::Parameter { name, value: value.to_string(), expected }
}
