//! libfabric in a registry.

use crate::{Ofi, OfiLayer, OfiOptions, links::FRAME_BYTES};
use evb_transport::{
    EndpointOptions, Layer, LayerOptions, MemoryOfNode, NodeOptions, Nodes, OpenError, Parameter, Setting,
    SettingValue, Settings, TransportFactory, TransportInfo, UseEndpoint, UseLayer,
};

const PROVIDER: Setting = Setting {
    name: "provider",
    value: SettingValue::Text { default: "tcp" },
    doc: "the provider, such as tcp, shm, verbs, efa, cxi, psm3 or opx",
};

impl TransportFactory for Ofi {
    const INFO: TransportInfo = TransportInfo {
        settings: &[PROVIDER],
        gives_up_peers: true,
        memory: |_| MemoryOfNode {
            own: 0,
            for_each_peer: OfiOptions::SEND_QUEUE_BYTES + usize::from(OfiOptions::CREDITS) * FRAME_BYTES,
        },
        layers: &[Layer {
            usage: "ofi:PROVIDER such as ofi:tcp or ofi:shm",
            parameter: Some(Parameter { setting: &PROVIDER, read: |text| Ok(text.to_owned()), shows_default: true }),
            ..Layer::new("ofi")
        }],
        ..TransportInfo::new("ofi", "a provider of libfabric", Nodes::Processes)
    };

    fn open<V: UseEndpoint>(settings: &Settings, options: NodeOptions, use_it: V) -> Result<V::Output, V::Error> {
        let ip = options.listen.ip();
        let ofi = OfiOptions {
            provider: PROVIDER.text(settings),
            interface: (!ip.is_loopback()).then(|| ip.to_string()),
            ..OfiOptions::new(options.endpoint)
        };
        use_it.with(Self::open(options.node, ofi).map_err(OpenError::new)?)
    }

    fn open_layer<V: UseLayer>(settings: &Settings, options: LayerOptions, use_it: V) -> Result<V::Output, V::Error> {
        let ofi = OfiOptions {
            provider: PROVIDER.text(settings),
            interface: (!options.listen.is_loopback()).then(|| options.listen.to_string()),
            max_bytes: options.max_bytes,
            ..OfiOptions::new(EndpointOptions::new(options.nodes, options.token))
        };
        use_it.with(OfiLayer::open(options.node()?, ofi).map_err(OpenError::new)?)
    }
}
