//! Dispersive routing that probes: a pair whose packets were blocked takes a route that is free.
//!
//! A probe takes no time here: it sees the links as they are when the last packet was blocked.

use super::Net;
use evb_fabric::{EndpointId, LinkEnd, LinkId};

impl Net {
    /// Probes up to `probes` routes after the one with the number `variant`. The pair takes the first one that is free, and
    /// keeps its route if none is.
    #[cold]
    pub(super) fn probe(&mut self, pair: (EndpointId, EndpointId), variant: u32, probes: u16) {
        let mut others = (1..=u32::from(probes)).map(|step| variant.wrapping_add(step));
        if let Some(free) = others.find(|&other| self.is_free(pair, other)) {
            self.router.change_route(pair.0, pair.1, free);
        }
    }

    /// Returns true if no link between switches is in use or requested on a route of a pair.
    fn is_free(&self, (from, to): (EndpointId, EndpointId), variant: u32) -> bool {
        let (view, to) = (self.router.view(from), self.router.port_of(&self.network, from, to, variant));
        let mut switch = self.network.switch_into(from);
        loop {
            let outputs = self.router.outputs_of(view, switch, to);
            if outputs.is_empty() {
                return false;
            }
            let link = self.router.pick_fixed(&self.network, (from, to), variant, outputs);
            match self.network.link(link).to {
                LinkEnd::Switch(next) if self.is_idle(link) => switch = next,
                LinkEnd::Switch(_) => return false,
                LinkEnd::Endpoint(_) => return true,
            }
        }
    }

    fn is_idle(&self, link: LinkId) -> bool {
        let port = &self.links[link];
        port.waiting.is_empty() && !port.failed && port.free_at <= self.queue.now()
    }
}
