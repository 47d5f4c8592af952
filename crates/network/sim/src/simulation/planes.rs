//! The planes of a network, as hosts choose them: what the chosen one does not carry to the receiver takes the next one that does.

use super::Simulation;
use crate::{connections::ConnectionId, nic::Chunk};
use evb_fabric::{EndpointId, NetworkConfig, PlaneChoice, Planes};

/// Lines of messages in an interface: one for all ports, or one for each plane.
pub(super) fn lineups(config: &NetworkConfig) -> usize {
    match config.planes {
        Some(Planes { choice: PlaneChoice::Packet, .. }) | None => 1,
        Some(Planes { count, .. }) => count.into(),
    }
}

impl Simulation<'_> {
    /// The plane of a new message from one host to another; 0 where all ports of a host share what waits.
    pub(super) fn plane_of_message(&mut self, from: usize, to: usize) -> usize {
        let Some(Planes { count, choice }) = self.net.network.config.planes else { return 0 };
        let first = match choice {
            PlaneChoice::Packet => return 0,
            PlaneChoice::Message => {
                let turn = &mut self.nics[from].turn;
                std::mem::replace(turn, (*turn + 1) % count).into()
            }
            PlaneChoice::Pair => from + to,
            PlaneChoice::Destination => to,
        };
        self.plane_from(first, (from, to))
    }

    /// The port through which a packet of a connection goes from one of its hosts to the other.
    pub(super) fn port_of(&self, id: ConnectionId, from: usize, to: usize) -> usize {
        let Some(Planes { choice, .. }) = self.net.network.config.planes else {
            return id.0 as usize % self.nics[0].ports.len();
        };
        let first = match choice {
            PlaneChoice::Packet | PlaneChoice::Message => self.connections.as_ref().map_or(0, |all| all.get(id).turn),
            PlaneChoice::Pair => from + to,
            PlaneChoice::Destination => to,
        };
        self.plane_from(first, (from, to))
    }

    /// The first plane, from the one with this number on, that leads from one host to another; that one if none does.
    fn plane_from(&self, first: usize, hosts: (usize, usize)) -> usize {
        let planes = self.nics[0].ports.len();
        let first = first % planes;
        (first..planes).chain(0..first).find(|&plane| self.reaches(hosts, plane)).unwrap_or(first)
    }

    fn reaches(&self, (from, to): (usize, usize), plane: usize) -> bool {
        let planes = self.nics[0].ports.len();
        let [from, to] = [from, to].map(|host| EndpointId((host * planes + plane) as u16));
        self.net.reaches(from, to)
    }

    /// The next packet that a port sends in its plane. One whose receiver only other ports reach waits for the first of these that
    /// is free.
    pub(super) fn next_in_plane(&mut self, now: u64, host: usize, port: usize) -> Option<Chunk> {
        let aside = self.nics[host].aside.take();
        let chunk = aside.or_else(|| self.cut(now, host, port))?;
        let to = self.messages.get(chunk.message).to.first;
        let to = self.host(to).expect("a message in an interface is for a host");
        if self.plane_from(port, (host, to)) == port {
            return Some(chunk);
        }
        self.nics[host].aside = Some(chunk);
        None
    }

    /// The new routes may lead over other planes than before: ports that wait look again.
    pub(super) fn look_at_planes(&mut self) {
        let now = self.net.queue.now().0;
        (0..self.nics.len()).for_each(|host| self.wake_ports(now, host));
    }
}
