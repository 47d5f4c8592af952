//! Links that several sources share: which they are, and how their sources find each other.

use super::{LiveSource, link::Link, parser::Frames};
use crate::{FrontEndLink, LiveSpec, OpenOptions, SourceError, SourceSpec};
use std::{
    io::ErrorKind,
    sync::{Arc, Mutex, PoisonError, Weak},
};

/// The links that sources of one process share. A link is read when all its sources have joined it, so that no frame comes
/// before its source is there.
#[derive(Clone, Default)]
pub struct SharedLinks(Arc<Mutex<Vec<SharedLink>>>);

/// A link by its description.
type SharedLink = (FrontEndLink, Weak<Link>);

impl SharedLinks {
    /// Starts a source as [`LiveSource::start`] does, but for a link that it shares.
    ///
    /// # Errors
    /// As [`LiveSource::start`]; the last source of a link has the errors of the link.
    pub fn start(
        &self,
        spec: &LiveSpec,
        options: &OpenOptions,
        waker: Arc<dyn Fn() + Send + Sync>,
    ) -> Result<LiveSource, SourceError> {
        if spec.shared.is_empty() {
            return LiveSource::start(spec, options, waker);
        }
        LiveSource::join(self.link(spec, options)?, spec, options, waker)
    }

    /// The link of a source, which is new for the first one.
    fn link(&self, spec: &LiveSpec, options: &OpenOptions) -> Result<Arc<Link>, SourceError> {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|(_, link)| link.strong_count() > 0);
        let known = links.iter().find(|(link, _)| *link == spec.link).and_then(|(_, link)| link.upgrade());
        match known {
            Some(link) if link.outlets().is_empty() => Ok(link),
            // One more source than the link has: its others are those of an earlier plan.
            Some(_) => {
                let address = spec.link.place().into_owned();
                Err(SourceError::Listen { address, error: ErrorKind::AddrInUse.into() })
            }
            None => {
                let link = Link::new(Frames::new(spec, options)?, false, spec.shared.len());
                links.push((spec.link.clone(), Arc::downgrade(&link)));
                Ok(link)
            }
        }
    }
}

impl LiveSpec {
    /// The id that the frames of this source have; `None` if its framing has no source id.
    pub fn source_id(&self) -> Option<u64> {
        self.framing.as_ref()?.source.map(|(_, value)| value)
    }

    /// Returns true if both sources can take their frames from one link: their framings are the same but for the source id.
    pub fn can_share(&self, other: &Self) -> bool {
        let alike = |framing: &crate::Framing| {
            let mut alike = framing.clone();
            alike.source = framing.source.map(|(field, _)| (field, 0));
            alike
        };
        let differ = self.source_id().zip(other.source_id()).is_some_and(|(own, other)| own != other);
        differ && self.framing.as_ref().map(alike) == other.framing.as_ref().map(alike)
    }

    /// Returns true if the link can be shared. A file is read by each of its sources, and each port 0 is another port.
    fn is_shareable(&self) -> bool {
        let is_any_port = matches!(&self.link, FrontEndLink::Tcp(at) | FrontEndLink::Udp(at) if at.ends_with(":0"));
        self.link.file().is_none() && !is_any_port && self.source_id().is_some()
    }
}

/// Notes at each live source which others share its link: those with the same one and another source id.
pub fn note_shared_links(sources: &mut [SourceSpec]) {
    let shareable = |source: &SourceSpec| source.live().filter(|live| live.is_shareable()).cloned();
    let lives: Vec<LiveSpec> = sources.iter().filter_map(shareable).collect();
    for source in sources {
        let SourceSpec::Live(live) = source else { continue };
        if !live.is_shareable() {
            continue;
        }
        let mut ids: Vec<_> =
            lives.iter().filter(|other| other.link == live.link).filter_map(LiveSpec::source_id).collect();
        ids.sort_unstable();
        live.shared = if ids.len() > 1 { ids } else { Vec::new() };
    }
}
