//! Ethernet in a registry.

use crate::{
    Endpoint, EndpointLayer, EthernetOptions, Interface, InterfaceError, RING_BYTES, open_interface,
    options::HIGHEST_PRIORITY,
};
use evb_core::NodeId;
use evb_transport::{
    Layer, LayerOptions, MemoryOfNode, NodeOptions, Nodes, OpenError, Parameter, Setting, SettingValue, Settings,
    TransportFactory, TransportInfo, UseEndpoint, UseLayer,
};

/// The endpoint of one node on an interface of its machine.
pub type Ethernet = Endpoint<Interface>;

const INTERFACE: Setting = Setting {
    name: "interface",
    value: SettingValue::Text { default: "lo" },
    doc: "the interface, such as eth0; `{node}` in it is replaced by the number of the node",
};
const PRIORITY: Setting = Setting {
    name: "priority",
    value: SettingValue::Integer { min: 0, max: HIGHEST_PRIORITY as i64, default: 0 },
    doc: "priority of all frames in a VLAN tag, 0 for no tag",
};
const MEGABITS: Setting = Setting {
    name: "megabits",
    value: SettingValue::Integer { min: 0, max: 1_000_000, default: 0 },
    doc: "most megabits that a node sends to a peer in a second, 0 for no limit",
};

const LAYER: Layer = Layer {
    usage: "ethernet:INTERFACE such as ethernet:eth0",
    parameter: Some(Parameter { setting: &INTERFACE, read: |text| Ok(text.to_owned()), shows_default: true }),
    ..Layer::new("ethernet")
};
impl TransportFactory for Ethernet {
    const INFO: TransportInfo = TransportInfo {
        settings: &[INTERFACE, PRIORITY, MEGABITS],
        gives_up_peers: true,
        memory: |_| MemoryOfNode { own: 2 * RING_BYTES, for_each_peer: EthernetOptions::SEND_QUEUE_BYTES },
        layers: &[LAYER],
        ..TransportInfo::new("ethernet", "frames of Ethernet with their own protocol", Nodes::Processes)
    };

    fn open<V: UseEndpoint>(settings: &Settings, options: NodeOptions, use_it: V) -> Result<V::Output, V::Error> {
        let (node, ethernet, wire) = parts(settings, options)?;
        use_it.with(Endpoint::open(node, ethernet, wire).map_err(OpenError::new)?)
    }

    fn open_layer<V: UseLayer>(settings: &Settings, options: LayerOptions, use_it: V) -> Result<V::Output, V::Error> {
        let (node, ethernet, wire) = parts(settings, options.of_transport()?)?;
        use_it.with(EndpointLayer::open(node, ethernet, wire).map_err(OpenError::new)?)
    }
}

fn parts(settings: &Settings, options: NodeOptions) -> Result<(NodeId, EthernetOptions, Interface), OpenError> {
    let interface = interface_of(&INTERFACE.text(settings), options.node);
    let wire = open_interface(&interface, options.node, &options.endpoint.token).map_err(explain)?;
    let (priority, megabits) = (PRIORITY.read(settings)?, MEGABITS.read(settings)?);
    let ethernet = EthernetOptions { priority, megabits, ..EthernetOptions::new(options.endpoint) };
    Ok((options.node, ethernet, wire))
}

/// The interface of a node.
fn interface_of(name: &str, node: NodeId) -> String {
    name.replace("{node}", &node.0.to_string())
}

fn explain(error: InterfaceError) -> OpenError {
    let hint = match &error {
        InterfaceError::NotPermitted => "`sudo setcap cap_net_raw+ep` with the path of `evb`, or start it as root",
        InterfaceError::System { .. } => "`ip link` lists the interfaces; `--set transport.interface=NAME` chooses one",
        InterfaceError::ShortFrames { .. } => "`ip link set NAME mtu 1500`",
    };
    OpenError::new(&error).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_can_have_an_interface_of_its_own() {
        assert_eq!(interface_of("eth0", NodeId(3)), "eth0");
        assert_eq!(interface_of("veth{node}", NodeId(3)), "veth3");
    }
}
