//! TCP in a registry: the transport, and the layers with and without multicast.

use super::{
    BindError, Tcp, TcpOptions,
    multicast::{MulticastOptions, ReliableMulticast, WithMulticast},
};
use evb_transport::{
    Layer, LayerOptions, MemoryOfNode, NodeOptions, Nodes, OpenError, OverTransport, Setting, SettingValue, Settings,
    TransportFactory, TransportInfo, UseEndpoint, UseLayer,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The layer whose broadcasts go by UDP multicast, which may lose them.
const MULTICAST: &str = "udp";

/// The setting for broadcasts by multicast in event building.
const INTERFACE: Setting = Setting {
    name: "multicast",
    value: SettingValue::Text { default: OFF },
    doc: "interface on which broadcasts go by UDP multicast: `off` for none, `listen` for that of the address at which a \
          node listens, or its IPv4 address",
};
/// The setting that seals all frames.
const ENCRYPT: Setting = Setting {
    name: "encrypt",
    value: SettingValue::Text { default: OFF },
    doc: "`on` encrypts all messages of this transport, so that they cannot be read or changed on their way; `off` sends them as \
          they are, once both sides have proved that they have the token",
};
/// The setting for the congestion control of the system's TCP.
const CONGESTION: Setting = Setting {
    name: "congestion_control",
    value: SettingValue::Text { default: SYSTEM },
    doc: "the congestion control of the connections, such as `cubic` or `dctcp`; `system` leaves it to the system, which has it in \
          `net.ipv4.tcp_congestion_control`",
};
const SYSTEM: &str = "system";
const ON: &str = "on";
const OFF: &str = "off";
const LISTEN: &str = "listen";

impl TransportFactory for Tcp {
    const INFO: TransportInfo = TransportInfo {
        settings: &[INTERFACE, ENCRYPT, CONGESTION],
        gives_up_peers: true,
        memory: |_| MemoryOfNode { own: 0, for_each_peer: TcpOptions::SEND_QUEUE_BYTES },
        layers: &[Layer::new("tcp"), Layer { note: "tcp with multicast", ..Layer::new(MULTICAST) }],
        ..TransportInfo::new("tcp", "TCP between processes and machines", Nodes::Processes)
    };

    fn open<V: UseEndpoint>(settings: &Settings, options: NodeOptions, use_it: V) -> Result<V::Output, V::Error> {
        let encrypt = encrypt(settings)?;
        let Some(interface) = interface(settings, options.listen)? else {
            return use_it.with(bind(settings, options, encrypt)?);
        };
        if encrypt {
            return Err(no_multicast_encrypted().into());
        }
        let multicast =
            MulticastOptions { interface, ..MulticastOptions::new(options.endpoint.nodes, options.endpoint.max_body) };
        use_it.with(ReliableMulticast::over_tcp(bind(settings, options, false)?, multicast))
    }

    fn open_layer<V: UseLayer>(settings: &Settings, options: LayerOptions, use_it: V) -> Result<V::Output, V::Error> {
        let encrypt = encrypt(settings)?;
        if encrypt && options.layer == MULTICAST {
            return Err(no_multicast_encrypted().into());
        }
        let layer = OverTransport::new(bind(settings, options.of_transport()?, encrypt)?, options.max_bytes);
        if options.layer != MULTICAST {
            return use_it.with(layer);
        }
        let multicast = WithMulticast::new(layer, Ipv4Addr::LOCALHOST);
        use_it.with(multicast.map_err(|error| OpenError::new(format!("no multicast on this machine: {error}")))?)
    }
}

/// The interface of the setting; `None` without multicast.
fn interface(settings: &Settings, listen: SocketAddr) -> Result<Option<Ipv4Addr>, OpenError> {
    let text = INTERFACE.text(settings);
    match (text.as_str(), listen.ip()) {
        (OFF, _) => Ok(None),
        (LISTEN, IpAddr::V4(address)) => Ok(Some(address)),
        (LISTEN, IpAddr::V6(address)) => Err(OpenError::new(format!("there is no multicast at {address}"))
            .hint("`--listen` with an IPv4 address, or `--set transport.multicast=off`")),
        (address, _) => address.parse().map(Some).map_err(|_| {
            OpenError::new(format!("the setting `multicast` of the transport cannot be {address:?}"))
                .hint("`off`, `listen`, or the IPv4 address of an interface, such as \"127.0.0.1\"")
        }),
    }
}

fn encrypt(settings: &Settings) -> Result<bool, OpenError> {
    match ENCRYPT.text(settings).as_str() {
        ON => Ok(true),
        OFF => Ok(false),
        other => Err(OpenError::new(format!("the setting `encrypt` of the transport cannot be {other:?}"))
            .hint("`encrypt = \"on\"` or `encrypt = \"off\"`")),
    }
}

fn no_multicast_encrypted() -> OpenError {
    OpenError::new("datagrams of multicast are not encrypted").hint("leave out `multicast`, or `encrypt`")
}

fn bind(settings: &Settings, options: NodeOptions, encrypt: bool) -> Result<Tcp, OpenError> {
    let congestion_control = Some(CONGESTION.text(settings)).filter(|name| name != SYSTEM);
    let tcp = TcpOptions { listen: options.listen, encrypt, congestion_control, ..TcpOptions::new(options.endpoint) };
    Tcp::bind(options.node, tcp).map_err(|error| {
        let hint = match error {
            BindError::Address { .. } => {
                "`--listen HOST:PORT` chooses another address for this node; port 0 takes any free one"
            }
            BindError::CongestionControl { .. } => {
                "`sysctl net.ipv4.tcp_available_congestion_control` lists what the system has, and \
                 `net.ipv4.tcp_allowed_congestion_control` what everybody may choose"
            }
        };
        OpenError::new(error).hint(hint)
    })
}
