//! The simulated hardware in a registry.

use crate::{LINKS, NODES, PROTOTYPE_LINK, Pace, RtlLayer, RtlOptions, cluster, prepare};
use evb_core::Span;
use evb_transport::{
    HEAD_BYTES, Layer, LayersOptions, Nodes, OpenError, OverLayer, Parameter, Setting, SettingValue, Settings,
    ThreadOptions, TransportFactory, TransportInfo, UseEndpoints, UseLayers,
};

const WIRES: Setting = Setting {
    name: "wires",
    value: SettingValue::Integer {
        min: LINKS[0] as i64,
        max: LINKS[LINKS.len() - 1] as i64,
        default: PROTOTYPE_LINK as i64,
    },
    doc: "wires of a link in one direction: 16, 32 or 96",
};

/// 16 wires carry 64 bits in 6 cycles.
const BYTE_TIME: Span = Span(10_000);

impl TransportFactory for RtlLayer {
    // The hardware holds what its mailboxes hold; its simulator is not counted.
    const INFO: TransportInfo = TransportInfo {
        settings: &[WIRES],
        prepare: |nodes, settings, notice| prepare(nodes.into(), &options(settings)?, notice).map_err(OpenError::new),
        layers: &[Layer {
            usage: "velo-rtl or velo-rtl:WIRES",
            note: "the VELO hardware, simulated cycle by cycle",
            parameter: Some(Parameter { setting: &WIRES, read: read_wires, shows_default: false }),
            most_nodes: Some(*NODES.end() as u16),
            simulated_byte: Some(BYTE_TIME),
            ..Layer::new("velo-rtl")
        }],
        ..TransportInfo::new(
            "velo-rtl",
            "threads of one process through the VELO hardware, simulated cycle by cycle; needs Verilator, and is slow",
            Nodes::Threads("simulated hardware is one process, with threads for its nodes"),
        )
    };

    /// The clock goes on with each look of any node.
    fn open_threads<V: UseEndpoints>(
        settings: &Settings,
        threads: ThreadOptions,
        use_them: V,
    ) -> Result<V::Output, V::Error> {
        let max_bytes = threads.max_body + HEAD_BYTES;
        let options = RtlOptions { max_bytes, pace: Pace::Free, ..options(settings)? };
        let layers = cluster(threads.doorbells.len(), &options).map_err(OpenError::new)?;
        use_them.with(layers.into_iter().map(OverLayer::new).collect())
    }

    fn open_layers<V: UseLayers>(
        settings: &Settings,
        LayersOptions { nodes, .. }: LayersOptions,
        use_them: V,
    ) -> Result<V::Output, V::Error> {
        use_them.with(cluster(nodes.into(), &options(settings)?).map_err(OpenError::new)?)
    }
}

fn options(settings: &Settings) -> Result<RtlOptions, OpenError> {
    Ok(RtlOptions { link: WIRES.read(settings)?, ..RtlOptions::default() })
}

fn read_wires(text: &str) -> Result<String, String> {
    let found = text.parse().ok().filter(|link| LINKS.contains(link));
    let link = found.ok_or_else(|| format!("no link of the hardware has {text:?} wires: use one of {LINKS:?}"))?;
    Ok(link.to_string())
}
