//! Bonding in a registry: a transport whose links are other transports of the list.

mod link;

use crate::Endpoint;
use evb_transport::{
    Layer, LayerOptions, MemoryOfNode, NodeOptions, Nodes, OpenError, OverTransport, Parameter, Setting, SettingValue,
    Settings, TransportFactory, TransportInfo, UseEndpoint, UseLayer,
};
use evb_transport_bond::{Bond, BondOptions, Stripe};
use link::{BondLink, links};

/// Several links as one.
#[derive(Debug)]
pub struct Bonded;

type AnyBond = Bond<Box<dyn Endpoint>>;

const LINKS: Setting = Setting {
    name: "links",
    value: SettingValue::Text { default: "tcp@127.0.0.1+tcp@127.0.0.2" },
    doc: "the links, with `+` between them, each a message layer and, for tcp and ofi, `@` with the node's address there, or \
          with a network in which it has one: `tcp@10.1.0.0/24+tcp@10.2.0.0/24`, `ethernet:eth0+ethernet:eth1`, \
          `ofi:tcp@10.1.0.0/24+ofi:tcp@10.2.0.0/24`; `{node}` is replaced by the number of the node",
};
const STRIPE: Setting = Setting {
    name: "stripe",
    value: SettingValue::Text { default: "message" },
    doc: "what is spread: `message`, each message over the link that delivers it first; `size`, short messages to a node over \
          one link and long ones in segments over all; `destination`, all messages to a node over one link",
};
/// Memory of a link for a peer, which is that of TCP and Ethernet, and the usual number of links.
const LINK_BYTES: usize = 4 << 20;
const USUAL_LINKS: usize = 2;

const LAYER: Layer = Layer {
    usage: "bond:LINK+LINK such as bond:ethernet:eth0+ethernet:eth1",
    parameter: Some(Parameter { setting: &LINKS, read: read_links, shows_default: true }),
    ..Layer::new("bond")
};
/// Layers with another rule than the default.
const BY_SIZE: Layer = Layer {
    usage: "bond-size:..",
    note: "long messages in segments over all links",
    parameter: LAYER.parameter,
    stands_for: Some((&STRIPE, Stripe::Size.name())),
    ..Layer::new("bond-size")
};
const BY_DESTINATION: Layer = Layer {
    usage: "bond-destination:..",
    note: "a link for each destination",
    parameter: LAYER.parameter,
    stands_for: Some((&STRIPE, Stripe::Destination.name())),
    ..Layer::new("bond-destination")
};

impl TransportFactory for Bonded {
    const INFO: TransportInfo = TransportInfo {
        settings: &[LINKS, STRIPE],
        gives_up_peers: true,
        memory: |_| MemoryOfNode { own: 0, for_each_peer: 2 * BondOptions::WINDOW_BYTES + USUAL_LINKS * LINK_BYTES },
        layers: &[LAYER, BY_SIZE, BY_DESTINATION],
        ..TransportInfo::new("bond", "several links as one, each over one of the other transports", Nodes::Processes)
    };

    fn open<V: UseEndpoint>(settings: &Settings, options: NodeOptions, use_it: V) -> Result<V::Output, V::Error> {
        use_it.with(open(settings, &options)?)
    }

    fn open_layer<V: UseLayer>(settings: &Settings, options: LayerOptions, use_it: V) -> Result<V::Output, V::Error> {
        let bond = open(settings, &options.of_transport()?)?;
        use_it.with(OverTransport::new(bond, options.max_bytes))
    }
}

fn read_links(text: &str) -> Result<String, String> {
    links(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

fn stripe_of(settings: &Settings) -> Result<Stripe, OpenError> {
    let hint = format!("use one of {}", Stripe::ALL.map(Stripe::name).join(", "));
    STRIPE.read(settings).map_err(|error| error.hint(hint))
}

fn open(settings: &Settings, options: &NodeOptions) -> Result<AnyBond, OpenError> {
    let stripe = stripe_of(settings)?;
    let links = links(&LINKS.text(settings))?;
    let names = links.iter().map(ToString::to_string).collect();
    let members =
        links.iter().zip(0..).map(|(link, place)| open_link(link, place, options)).collect::<Result<_, _>>()?;
    let bond = BondOptions { stripe, ..BondOptions::new(names, options.endpoint.max_body) };
    Bond::new(members, bond).map_err(OpenError::new)
}

/// The endpoint of a node on a link.
fn open_link(link: &BondLink, place: u16, options: &NodeOptions) -> Result<Box<dyn Endpoint>, OpenError> {
    let listen = link.listen(options.node, options.listen, place)?;
    let endpoint = crate::open_boxed(&link.transport(options.node), NodeOptions { listen, ..options.clone() });
    endpoint.map_err(|error| link.explain(error))
}
