//! The transports of evb by name: the one list that experiment files, nodes and benchmarks take them from.

mod bond;
mod choice;
mod layer;

pub use bond::Bonded;
pub use choice::TransportChoice;
pub use evb_transport::{Setting, SettingValue, Settings, TransportInfo};
pub use layer::LayerChoice;

use evb_transport::{
    LayerOptions, LayersOptions, NodeOptions, OpenError, ThreadOptions, TransportFactory, UseEndpoint, UseEndpoints,
    UseLayer, UseLayers,
};

/// Lists transports, and finds the one that opens endpoints by its name.
macro_rules! transports {
    ($($transport:ty),+ $(,)?) => {
        /// All transports, in the order in which people see them. The first is the default.
        pub const ALL: &[&TransportInfo] = &[$(&<$transport as TransportFactory>::INFO),+];

        transports!(@open open, UseEndpoint, NodeOptions, TransportInfo::between_processes, $($transport),+);
        transports!(@open open_threads, UseEndpoints, ThreadOptions, name_of, $($transport),+);
        transports!(@open open_layer, UseLayer, LayerOptions, name_of, $($transport),+);
        transports!(@open open_layers, UseLayers, LayersOptions, name_of, $($transport),+);
    };
    (@open $open:ident, $user:ident, $options:ty, $name:path, $($transport:ty),+) => {
        #[doc = concat!("Calls [`TransportFactory::", stringify!($open), "`] of a transport.")]
        ///
        /// # Errors
        /// As that.
        pub fn $open<V: $user>(
            transport: &TransportChoice,
            options: $options,
            user: V,
        ) -> Result<V::Output, V::Error> {
            let (name, settings) = ($name(transport.info()), transport.settings());
            $(if name == <$transport as TransportFactory>::INFO.name {
                return <$transport as TransportFactory>::$open(settings, options, user);
            })+
            Err(OpenError::new(format!("there is no transport {name:?}")).into())
        }
    };
}

transports![
    evb_transport_shm::in_process::InProcess,
    evb_transport_shm::Shm,
    evb_transport_tcp::Tcp,
    evb_transport_mpi::Endpoint,
    evb_transport_ofi::Ofi,
    evb_transport_ethernet::Ethernet,
    Bonded,
    evb_velo_rtl::RtlLayer,
];

const fn name_of(transport: &TransportInfo) -> &'static str {
    transport.name
}

/// The transport of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static TransportInfo> {
    ALL.iter().copied().find(|info| info.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_there_once_and_those_between_processes_exist() {
        let mut seen = BTreeSet::new();
        for info in ALL {
            assert!(seen.insert(info.name), "{} twice", info.name);
            let other = find(info.between_processes()).expect("a transport");
            assert!(!other.is_one_process() || other.name == info.name, "{}", info.name);
        }
        let mut seen = BTreeSet::new();
        for layer in ALL.iter().flat_map(|info| info.layers) {
            assert!([layer.name].iter().chain(layer.aliases).all(|name| seen.insert(*name)), "{} twice", layer.name);
        }
    }
}
