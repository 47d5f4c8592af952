//! Run control as a service: REST, the page, metrics, and the registry of runs.
//!
//! [`serve`] drives a session of `evb` in the thread that calls it, as `evb run` does. A second thread answers requests:
//! it hands requests of operators to run control, and shows the state that both share. So nothing
//! that happens on the web can hold up a run.

mod access;
mod client;
mod disk;
mod history;
mod hooks;
mod http;
mod journal;
mod metrics;
mod rates;
pub mod registry;
mod samples;
mod service;
mod service_state;
mod status;
mod tls;

pub use access::{Access, AccessError, Operator, Role};
pub use client::Client;
pub use hooks::Hooks;
pub use service::{Load, Loaded, ServeError};
pub use status::Problem;
pub use tls::{Tls, TlsError};

use evb::Session;
use http::Web;
use registry::{Registry, RegistryError};
use samples::SampleFile;
use service::Service;
use service_state::ServiceState;
use std::{net::SocketAddr, path::PathBuf, sync::Arc, thread};
use tokio::{net::TcpListener, runtime, sync::watch};

/// Options of a service.
pub struct Options<'a> {
    /// Address of the page; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Certificate and key, to be served by TLS.
    pub tls: Option<Tls>,
    /// The operators.
    pub access: Access,
    /// File of the registry of runs.
    pub registry: PathBuf,
    /// File of shared memory for samples of events, if they are wanted there.
    pub samples: Option<PathBuf>,
    /// Programs before and after each run.
    pub hooks: Hooks,
    /// The first experiment.
    pub loaded: Loaded,
    /// Reads other experiments.
    pub load: &'a Load<'a>,
    /// Is called with the address of the page when all is ready.
    pub ready: &'a mut dyn FnMut(SocketAddr),
    /// Number of signals that asked for the end. The first lets the run drain and ends the service after it; the second
    /// stores what there is of open events.
    pub signals: &'a dyn Fn() -> u32,
}

/// Serves until an operator or a signal ends it.
///
/// # Errors
/// The address is taken, the registry cannot be written, or run control cannot hear its nodes any more.
pub fn serve(session: &mut Session<'_>, options: Options<'_>) -> Result<(), ServeError> {
    let Options { listen, tls, access, registry, samples, hooks, loaded, load, ready, signals } = options;
    let shared = samples.map(|path| SampleFile::create(&path).map_err(|source| ServeError::Samples { path, source }));
    let registry = Registry::create(&registry).map_err(RegistryError::with_holders)?;
    let (state, requests) = ServiceState::new(registry, shared.transpose()?);
    let state = Arc::new(state);
    let mut service = Service::new(&state, loaded, load, &hooks)?;
    service.prepare(session)?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(ServeError::Start)?;
    let listener = runtime.block_on(TcpListener::bind(listen));
    let listener = listener.map_err(|source| ServeError::Listen { address: listen, source })?;
    let address = listener.local_addr().map_err(ServeError::Start)?;
    let router = http::router(Arc::new(Web { shared: state.clone(), access }));
    let (end, ended) = watch::channel(());
    let web = thread::Builder::new().name("web".into()).spawn(move || {
        runtime.block_on(http::serve(listener, router, tls.map(Tls::acceptor), ended));
    });
    let web = web.map_err(ServeError::Start)?;
    ready(address);
    let served = service.serve(session, &requests, signals);
    drop(end);
    let _panicked = web.join();
    served
}
