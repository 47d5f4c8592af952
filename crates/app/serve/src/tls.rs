//! Certificate and key of a service that speaks TLS.

use std::{fmt, path::Path, sync::Arc};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, ServerConfig,
        crypto::ring,
        pki_types::{
            CertificateDer, PrivateKeyDer,
            pem::{self, PemObject as _},
        },
    },
};

/// Certificate and key of a service.
#[derive(Clone)]
pub struct Tls(Arc<ServerConfig>);

/// Hides the key.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(..)")
    }
}

/// Certificate or key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or has nothing of use in it.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The reason.
        source: pem::Error,
    },
    /// The file has no certificate.
    #[error("{0}: no certificate in it")]
    Empty(String),
    /// Certificate and key do not belong together, or are of an unknown kind.
    #[error("certificate and key: {0}")]
    Unusable(rustls::Error),
}

impl Tls {
    /// Reads a chain of certificates and a private key in PEM.
    ///
    /// # Errors
    /// [`TlsError`]; none shows the key.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let broken = |path: &Path| {
            let path = path.display().to_string();
            move |source| TlsError::File { path, source }
        };
        let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.map_err(broken(certificate))?;
        if chain.is_empty() {
            return Err(TlsError::Empty(certificate.display().to_string()));
        }
        let key = PrivateKeyDer::from_pem_file(key).map_err(broken(key))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().map_err(TlsError::Unusable)?;
        let config = config.with_no_client_auth().with_single_cert(chain, key).map_err(TlsError::Unusable)?;
        Ok(Self(Arc::new(config)))
    }

    pub(crate) fn acceptor(self) -> TlsAcceptor {
        TlsAcceptor::from(self.0)
    }
}
