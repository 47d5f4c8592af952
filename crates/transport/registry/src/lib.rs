//! The transports of evb by name: the one list that experiment files, nodes and benchmarks take them from.

mod bond;
mod choice;
mod layer;

pub use bond::Bonded;
pub use choice::TransportChoice;
pub use evb_transport::{Setting, SettingValue, Settings, TransportInfo};
pub use layer::LayerChoice;

use evb_transport::{
    Connect, LayerOptions, LayersOptions, NodeOptions, OpenError, ThreadOptions, Transport, TransportFactory,
    UseEndpoint, UseEndpoints, UseLayer, UseLayers,
};
use evb_transport_shm::Shm;
use evb_transport_tcp::Tcp;

/// Lists transports, and finds the one that opens endpoints by its name.
macro_rules! transports {
    ($($transport:ty),+ $(,)?) => {
        /// All transports, in the order in which people see them. The first is the default.
        pub const ALL: &[&TransportInfo] = &[$(&<$transport as TransportFactory>::INFO),+];

        transports!(@open open_threads, UseEndpoints, ThreadOptions, $($transport),+);
        transports!(@open open_layer, UseLayer, LayerOptions, $($transport),+);
        transports!(@open open_layers, UseLayers, LayersOptions, $($transport),+);

        /// The endpoint of a node that is a process, whatever its transport.
        fn open_boxed(transport: &TransportChoice, options: NodeOptions) -> Result<Box<dyn Endpoint>, OpenError> {
            let (name, settings) = (transport.info().between_processes(), transport.settings());
            $(if name == <$transport as TransportFactory>::INFO.name {
                return <$transport as TransportFactory>::open(settings, options, Boxed);
            })+
            Err(unknown(name))
        }
    };
    (@open $open:ident, $user:ident, $options:ty, $($transport:ty),+) => {
        #[doc = concat!("Calls [`TransportFactory::", stringify!($open), "`] of a transport.")]
        ///
        /// # Errors
        /// As that.
        pub fn $open<V: $user>(
            transport: &TransportChoice,
            options: $options,
            user: V,
        ) -> Result<V::Output, V::Error> {
            let (name, settings) = (transport.info().name, transport.settings());
            $(if name == <$transport as TransportFactory>::INFO.name {
                return <$transport as TransportFactory>::$open(settings, options, user);
            })+
            Err(unknown(name).into())
        }
    };
}

transports![
    evb_transport_shm::in_process::InProcess,
    Shm,
    Tcp,
    evb_transport_mpi::Endpoint,
    evb_transport_ofi::Ofi,
    evb_transport_ethernet::Ethernet,
    Bonded,
    evb_velo_rtl::RtlLayer,
];

/// Calls [`TransportFactory::open`] of a transport. What the visitor does is compiled for shared memory and TCP, which move
/// most messages per second; the endpoints of all others come behind a pointer, and share one compiled copy of it.
///
/// # Errors
/// As that.
pub fn open<V: UseEndpoint>(transport: &TransportChoice, options: NodeOptions, user: V) -> Result<V::Output, V::Error> {
    let (name, settings) = (transport.info().between_processes(), transport.settings());
    if name == Shm::INFO.name {
        Shm::open(settings, options, user)
    } else if name == Tcp::INFO.name {
        Tcp::open(settings, options, user)
    } else {
        user.with(open_boxed(transport, options)?)
    }
}

/// An endpoint of any transport.
trait Endpoint: Transport + Connect {}

impl<T: Transport + Connect> Endpoint for T {}

/// A visitor that keeps the endpoint.
struct Boxed;

impl UseEndpoint for Boxed {
    type Output = Box<dyn Endpoint>;
    type Error = OpenError;

    fn with<T: Transport + Connect + 'static>(self, endpoint: T) -> Result<Box<dyn Endpoint>, OpenError> {
        Ok(Box::new(endpoint))
    }
}

fn unknown(name: &str) -> OpenError {
    OpenError::new(format!("unknown transport {name:?}"))
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
