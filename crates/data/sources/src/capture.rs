//! The UDP datagrams of a capture file, PCAP or PCAPNG.

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader, traits::PcapReaderIterator};
use std::{
    fs::File,
    io::{self, ErrorKind},
    net::{IpAddr, SocketAddr},
    path::Path,
};

/// Bytes of the file in memory; a block is at most this long.
const BUFFER: usize = 1 << 20;
const NANOSECONDS: u64 = 1_000_000_000;

/// The datagrams of a capture file, in their order.
pub struct Capture {
    reader: Box<dyn PcapReaderIterator + Send>,
    port: Option<u16>,
    interfaces: Vec<Interface>,
    unreadable: u64,
}

/// The way of a datagram: its sender, and the port that it was sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The sender.
    pub from: SocketAddr,
    /// The port that the datagram was sent to; 0 where there is one only.
    pub to: u16,
}

/// The interface of a packet: its kind of link, and the ticks per second of its times.
#[derive(Clone, Copy)]
struct Interface {
    link: Linktype,
    resolution: u64,
}

impl Capture {
    /// Opens a capture file. With a port, only datagrams to that port are read.
    ///
    /// # Errors
    /// If the file cannot be read or is no capture.
    pub fn open(path: &Path, port: Option<u16>) -> io::Result<Self> {
        let reader = create_reader(BUFFER, File::open(path)?).map_err(|error| to_io(&error))?;
        Ok(Self { reader, port, interfaces: Vec::new(), unreadable: 0 })
    }

    /// Number of packets that could not be read: of another kind of link, in fragments, or cut off when they were
    /// captured.
    pub const fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Calls `take` with the time of capture in nanoseconds, the way and the payload of the next datagram; returns false at
    /// the end of the file.
    ///
    /// # Errors
    /// If the file cannot be read further.
    pub fn next(&mut self, take: impl FnOnce(u64, Flow, &[u8])) -> io::Result<bool> {
        let mut take = Some(take);
        loop {
            let size = match self.reader.next() {
                Ok((size, block)) => {
                    let packet = packet(&block, &mut self.interfaces);
                    if let Some((time, interface, data, is_whole)) = packet {
                        match datagram(interface.link, data).filter(|_| is_whole) {
                            None => self.unreadable += 1,
                            Some(Datagram::Udp(flow, payload)) if self.port.is_none_or(|own| own == flow.to) => {
                                take.take().into_iter().for_each(|take| take(time, flow, payload));
                            }
                            Some(Datagram::Udp(..) | Datagram::Other) => {}
                        }
                    }
                    size
                }
                Err(PcapError::Eof) => return Ok(false),
                Err(PcapError::Incomplete(_)) => {
                    if self.reader.reader_exhausted() {
                        return Err(io::Error::new(ErrorKind::UnexpectedEof, "the file ends within a packet"));
                    }
                    self.reader.refill().map_err(|error| to_io(&error))?;
                    continue;
                }
                Err(error) => return Err(to_io(&error)),
            };
            self.reader.consume(size);
            if take.is_none() {
                return Ok(true);
            }
        }
    }
}

/// The time in nanoseconds, interface and bytes of the packet of a block, and whether it was captured whole.
fn packet<'a>(block: &PcapBlockOwned<'a>, interfaces: &mut Vec<Interface>) -> Option<(u64, Interface, &'a [u8], bool)> {
    let time = |ticks: u64, resolution: u64| {
        u64::try_from(u128::from(ticks) * u128::from(NANOSECONDS) / u128::from(resolution.max(1))).unwrap_or(u64::MAX)
    };
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let resolution = if header.is_nanosecond_precision() { NANOSECONDS } else { 1_000_000 };
            interfaces.push(Interface { link: header.network, resolution });
            None
        }
        PcapBlockOwned::Legacy(packet) => {
            let interface = *interfaces.first()?;
            let ticks = u64::from(packet.ts_sec) * interface.resolution + u64::from(packet.ts_usec);
            Some((time(ticks, interface.resolution), interface, packet.data, packet.caplen == packet.origlen))
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            None
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
            let resolution = interface.ts_resolution().unwrap_or(1_000_000);
            interfaces.push(Interface { link: interface.linktype, resolution });
            None
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let interface = *interfaces.get(packet.if_id as usize)?;
            let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            let data = packet.data.get(..packet.caplen as usize)?;
            Some((time(ticks, interface.resolution), interface, data, packet.caplen == packet.origlen))
        }
        PcapBlockOwned::NG(_) => None,
    }
}

enum Datagram<'a> {
    /// Its way and its payload.
    Udp(Flow, &'a [u8]),
    Other,
}

/// The datagram in a packet; `None` if the packet cannot be read.
fn datagram(link: Linktype, packet: &[u8]) -> Option<Datagram<'_>> {
    let packet = match link {
        Linktype::ETHERNET => SlicedPacket::from_ethernet(packet),
        Linktype::LINUX_SLL => SlicedPacket::from_linux_sll(packet),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 => SlicedPacket::from_ip(packet),
        _ => return None,
    };
    let packet = packet.ok()?;
    if packet.is_ip_payload_fragmented() {
        return None;
    }
    let source = match &packet.net {
        Some(NetSlice::Ipv4(ip)) => Some(IpAddr::V4(ip.header().source_addr())),
        Some(NetSlice::Ipv6(ip)) => Some(IpAddr::V6(ip.header().source_addr())),
        _ => None,
    };
    Some(match (packet.transport, source) {
        (Some(TransportSlice::Udp(udp)), Some(source)) => {
            let flow = Flow { from: SocketAddr::new(source, udp.source_port()), to: udp.destination_port() };
            Datagram::Udp(flow, udp.payload())
        }
        _ => Datagram::Other,
    })
}

fn to_io<T: std::fmt::Debug>(error: &PcapError<T>) -> io::Error {
    let (kind, message) = match error {
        PcapError::HeaderNotRecognized => (ErrorKind::InvalidData, "it is neither PCAP nor PCAPNG".to_owned()),
        PcapError::BufferTooSmall => (ErrorKind::InvalidData, format!("a packet is larger than {BUFFER} bytes")),
        PcapError::UnexpectedEof => (ErrorKind::UnexpectedEof, "the file ends within a packet".to_owned()),
        PcapError::ReadError => (ErrorKind::Other, "it cannot be read".to_owned()),
        _ => (ErrorKind::InvalidData, "a block of it is damaged".to_owned()),
    };
    io::Error::new(kind, message)
}
