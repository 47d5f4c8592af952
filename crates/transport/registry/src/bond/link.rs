//! A link of a bond as people write it.

use super::Bonded;
use crate::{LayerChoice, TransportChoice};
use evb_core::NodeId;
use evb_transport::{OpenError, TransportFactory};
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
};

/// What is between two links.
const SEPARATOR: char = '+';
/// The placeholder of the number of the node.
const NODE: &str = "{node}";
/// A port that nothing is sent to.
const ANY_PORT: u16 = 9;
const MOST_LINKS: usize = 16;

/// A link: a transport, and the place of the node there.
#[derive(Clone, Debug)]
pub(super) struct BondLink {
    layer: LayerChoice,
    place: Option<String>,
}

/// The links of a text.
pub(super) fn links(text: &str) -> Result<Vec<BondLink>, OpenError> {
    let links: Vec<_> = text.split(SEPARATOR).map(|link| read(link.trim())).collect::<Result<_, _>>()?;
    match links.len() {
        2..=MOST_LINKS => Ok(links),
        count => Err(OpenError::new(format!("a bond has from 2 to {MOST_LINKS} links, and {text:?} names {count}"))
            .hint("write `+` between them: tcp@10.1.0.0/24+tcp@10.2.0.0/24")),
    }
}

fn read(text: &str) -> Result<BondLink, OpenError> {
    let wrong = |why: String| {
        OpenError::new(format!("{text:?} is not a link: {why}"))
            .hint("links are such as tcp@10.1.0.0/24, tcp@192.0.2.1, ethernet:eth0 or ofi:tcp@10.1.0.0/24")
    };
    let (layer, place) = text.split_once('@').map_or((text, None), |(layer, place)| (layer, Some(place.to_owned())));
    let layer: LayerChoice = layer.parse().map_err(wrong)?;
    let info = layer.transport().info();
    if layer.is_one_process() || info.name == Bonded::INFO.name || layer.info().name != info.name {
        return Err(wrong("only transports between processes can be links".into()));
    } else if layer.info().has_launcher {
        return Err(wrong("a launcher starts its processes".into()));
    }
    if let Some(place) = &place {
        LinkAddress::read(&place.replace(NODE, "0"))
            .ok_or_else(|| wrong(format!("{place:?} is neither an address nor a network")))?;
    }
    Ok(BondLink { layer, place })
}

impl BondLink {
    /// The transport, for a node.
    pub(super) fn transport(&self, node: NodeId) -> TransportChoice {
        let choice = self.layer.transport();
        let settings = choice.settings().iter();
        let settings = settings.map(|(key, value)| (key.clone(), value.replace(NODE, &node.0.to_string())));
        TransportChoice::new(choice.info(), settings.collect())
    }

    /// The address of a node on the link at this place of a bond; by default that at which the node listens. With a port,
    /// each link has the next one.
    pub(super) fn listen(&self, node: NodeId, listen: SocketAddr, place: u16) -> Result<SocketAddr, OpenError> {
        let port = if listen.port() == 0 { 0 } else { listen.port().saturating_add(place) };
        let Some(text) = &self.place else { return Ok((listen.ip(), port).into()) };
        let text = text.replace(NODE, &node.0.to_string());
        let address = match LinkAddress::read(&text) {
            Some(LinkAddress::Address(address)) => address,
            Some(LinkAddress::Network(network)) => network.own_address().ok_or_else(|| {
                OpenError::new(format!("the link {self}: this machine has no address in the network {text}"))
                    .hint("`ip address` lists its addresses; is the interface up?")
            })?,
            None => {
                return Err(OpenError::new(format!("the link {self}: {text:?} is neither an address nor a network")));
            }
        };
        Ok((address, port).into())
    }

    /// The error of this link.
    pub(super) fn explain(&self, OpenError { message, hint }: OpenError) -> OpenError {
        let hint = match self.place {
            Some(_) => {
                Some("a link names an address of this machine, or a network in which it has one: `ip address`".into())
            }
            None => hint,
        };
        OpenError { message: format!("the link {self}: {message}"), hint }
    }
}

impl fmt::Display for BondLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place.iter().map(|place| format!("@{place}")).collect::<String>();
        write!(f, "{}{place}", self.layer)
    }
}

/// The place of a node on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkAddress {
    Address(IpAddr),
    Network(Network),
}

impl LinkAddress {
    fn read(text: &str) -> Option<Self> {
        match text.split_once('/') {
            None => text.parse().ok().map(Self::Address),
            Some((address, bits)) => {
                let network = Network { address: address.parse().ok()?, bits: bits.parse().ok()? };
                (network.bits <= network.width()).then_some(Self::Network(network))
            }
        }
    }
}

/// A network of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    const fn width(self) -> u32 {
        if self.address.is_ipv4() { u32::BITS } else { u128::BITS }
    }

    /// The bits of an address that say its network.
    fn part(self, address: IpAddr) -> u128 {
        let bits = match address {
            IpAddr::V4(address) => address.to_bits().into(),
            IpAddr::V6(address) => address.to_bits(),
        };
        bits.checked_shr(self.width() - self.bits).unwrap_or(0)
    }

    /// The address of this machine in the network: the one that the system would send from. Nothing is sent.
    fn own_address(self) -> Option<IpAddr> {
        let (any, first): (IpAddr, IpAddr) = match self.address {
            IpAddr::V4(address) => (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::from_bits(address.to_bits() | 1).into()),
            IpAddr::V6(address) => (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::from_bits(address.to_bits() | 1).into()),
        };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect((first, ANY_PORT)).ok()?;
        let own = socket.local_addr().ok()?.ip();
        (own.is_ipv4() == self.address.is_ipv4() && self.part(own) == self.part(self.address)).then_some(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), 0);

    fn link(text: &str) -> BondLink {
        read(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn links_come_back() {
        for text in ["tcp", "tcp@10.1.0.0/24", "ethernet:eth0", "ofi:tcp@10.1.0.{node}", "ethernet:veth{node}", "shm"] {
            assert_eq!(link(text).to_string(), text);
        }
        let both = links("tcp@127.0.0.1 + ethernet:eth0").unwrap();
        assert_eq!(both.iter().map(ToString::to_string).collect::<Vec<_>>(), ["tcp@127.0.0.1", "ethernet:eth0"]);
    }

    #[test]
    fn invalid_links_are_rejected() {
        for wrong in ["", "threads", "udp", "bond:tcp+tcp", "mpi", "tcp@eth0", "tcp@10.0.0.0/33", "tcp@", "velo-rtl"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for wrong in ["tcp", "", "tcp+"] {
            assert!(links(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_node_has_its_place_on_each_link() {
        let at = |text: &str, node| link(text).listen(NodeId(node), LISTEN, 1).map(|address| address.to_string());
        assert_eq!(at("tcp", 1).unwrap(), "192.0.2.7:0");
        assert_eq!(at("tcp@10.1.0.{node}", 3).unwrap(), "10.1.0.3:0");
        assert_eq!(at("tcp@127.0.0.0/8", 3).unwrap(), "127.0.0.1:0");
        let with_port = link("tcp@10.0.0.1").listen(NodeId(0), SocketAddr::new(LISTEN.ip(), 7000), 1);
        assert_eq!(with_port.unwrap().port(), 7001);
        let error = at("tcp@203.0.113.0/24", 3).unwrap_err();
        assert!(error.message.contains("no address in the network 203.0.113.0/24"), "{error}");
    }

    #[test]
    fn interfaces_can_have_the_number_of_the_node() {
        let choice = link("ethernet:veth{node}").transport(NodeId(4));
        assert_eq!(choice.settings()["interface"], "veth4");
    }
}
