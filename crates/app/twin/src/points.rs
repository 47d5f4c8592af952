//! The runs that a fit is made of.

use crate::TwinError;
use evb_experiment::{Experiment, Plan};
use std::path::Path;

/// Two readout units and two builder units, without storage.
pub(crate) const TWO_BY_TWO: &str = r#"
[readout]
units = 2
source = { type = "fixed", size = "2 KiB" }
[builder]
units = 2
[storage]
keep = "none"
"#;

/// Time of each run.
const RUN: &str = "trigger.duration=300 ms";
/// Simulated time of each run.
const SIMULATED: &str = "trigger.duration=10 ms";

/// One unit of each role.
const ONE_BY_ONE: [&str; 2] = ["readout.units=1", "builder.units=1"];
/// Several units of one role, which show what more peers cost.
const UNEVEN: [[&str; 2]; 2] = [["readout.units=4", "builder.units=1"], ["readout.units=1", "builder.units=4"]];
const SIZES: [&str; 4] = ["256 B", "2 KiB", "16 KiB", "64 KiB"];
/// Numbers of events that a builder may have under construction: with few, each turn has little work.
const FEW_SLOTS: [u32; 2] = [1, 4];
const GROUPING: &str = "shaping={ type = \"grouping\", packet = \"32 KiB\", timeout = \"1 ms\" }";
/// Events of these sizes are stored, too.
const STORED: [&str; 3] = ["256 B", "2 KiB", "16 KiB"];
const DIFFERING: &str = "readout.source={ type = \"uniform\", min = \"1 KiB\", max = \"3 KiB\" }";

/// A run of a fit.
pub struct FitPoint {
    /// Its settings, which differ from run to run.
    pub name: String,
    run: Experiment,
    simulated: Experiment,
}

impl FitPoint {
    fn new(transport: &str, directory: &Path, settings: &[String]) -> Result<Self, TwinError> {
        let (transport, directory) =
            (format!("transport.type={transport}"), format!("storage.directory={:?}", directory.display().to_string()));
        let with = |duration: &str| {
            let all: Vec<_> = [transport.as_str(), &directory, duration].into_iter().map(str::to_owned).collect();
            Experiment::parse(TWO_BY_TWO, "two-by-two.toml", &[all, settings.to_vec()].concat())
        };
        let name = settings.iter().map(|setting| setting.rsplit_once('.').map_or(&**setting, |(_, last)| last));
        Ok(Self { name: name.collect::<Vec<_>>().join(", "), run: with(RUN)?, simulated: with(SIMULATED)? })
    }

    /// The plan to run, and its text.
    ///
    /// # Panics
    /// Never: a run of a fit is no sweep.
    #[must_use]
    pub fn plan(&self) -> (&Plan, String) {
        (&self.run.plans()[0], self.run.resolved_at(0).unwrap_or_default())
    }

    /// The plan to simulate.
    pub(crate) fn simulated(&self) -> &Plan {
        &self.simulated.plans()[0]
    }
}

/// The run by which a machine is known again.
///
/// # Errors
/// The transport is not one that an experiment can name.
pub fn reference(transport: &str) -> Result<FitPoint, TwinError> {
    FitPoint::new(transport, Path::new("."), &["trigger.block=1".to_owned()])
}

/// The runs of a fit over a transport: `two-by-two` and one unit of each role, with fragments of several sizes, alone and in
/// blocks. Threads run with one worker and with two; processes have their own. The last runs store events in `directory`.
///
/// # Errors
/// The transport is not one that an experiment can name.
pub fn fit_points(transport: &str, directory: &Path) -> Result<Vec<FitPoint>, TwinError> {
    let is_threads = reference(transport)?.plan().0.transport.info().is_one_process();
    let workers: &[&[&str]] = if is_threads { &[&["run.workers=1"], &["run.workers=2"]] } else { &[&[]] };
    let mut points = Vec::new();
    for workers in workers {
        for settings in settings() {
            let all: Vec<_> = workers.iter().map(|&key| key.to_owned()).chain(settings).collect();
            points.push(FitPoint::new(transport, directory, &all)?);
        }
    }
    for workers in workers {
        for size in STORED {
            let settings = [&format!("readout.source.size={size}"), "trigger.block=auto", "storage.keep=all"];
            let all = [workers, &settings[..]].concat().map_to_owned();
            points.push(FitPoint::new(transport, directory, &all)?);
        }
    }
    Ok(points)
}

/// The settings of the runs of one number of workers.
fn settings() -> Vec<Vec<String>> {
    let blocks = ["trigger.block=1", "trigger.block=auto"];
    let size = |size: &str| format!("readout.source.size={size}");
    let mut all = Vec::new();
    for block in blocks {
        all.extend(SIZES.map(|bytes| vec![size(bytes), block.to_owned()]));
        all.extend(SIZES[..3].iter().map(|bytes| [&ONE_BY_ONE[..], &[&size(bytes), block]].concat().map_to_owned()));
        all.push([DIFFERING, block].map(str::to_owned).to_vec());
    }
    all.extend(
        UNEVEN
            .iter()
            .flat_map(|units| blocks.map(|block| [&units[..], &[&size("2 KiB"), block]].concat().map_to_owned())),
    );
    all.push([&ONE_BY_ONE[..], &["trigger.block=1", GROUPING]].concat().map_to_owned());
    all.extend(FEW_SLOTS.map(|slots| vec![size("256 B"), "trigger.block=1".into(), format!("builder.slots={slots}")]));
    all
}

trait MapToOwned {
    fn map_to_owned(self) -> Vec<String>;
}

impl MapToOwned for Vec<&str> {
    fn map_to_owned(self) -> Vec<String> {
        self.into_iter().map(str::to_owned).collect()
    }
}
