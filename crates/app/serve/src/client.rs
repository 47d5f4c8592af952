//! A client of a service: one request on a connection.

use crate::status::Problem;
use serde_json::Value;
use std::{
    io::{self, Read, Write},
    net::{TcpStream, ToSocketAddrs as _},
    path::Path,
    sync::Arc,
    time::Duration,
};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, InvalidDnsNameError, ServerName, pem::PemObject as _},
};

/// Longest wait for the service.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer in bytes: the status of the largest event builder.
const LONGEST: u64 = 64 << 20;

/// A service at one address.
pub struct Client {
    place: String,
    token: String,
    tls: Option<Arc<ClientConfig>>,
}

impl Client {
    /// The service at `http://HOST:PORT` or `https://HOST:PORT`; without a scheme it is the first. `authorities` is a PEM file with
    /// the certificates that vouch for a service with TLS.
    ///
    /// # Errors
    /// The token has a space in it, or the file cannot be used.
    pub fn new(address: &str, token: &str, authorities: &Path) -> Result<Self, Problem> {
        let (has_tls, rest) = match (address.strip_prefix("https://"), address.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, rest) => (false, rest.unwrap_or(address)),
        };
        let place = rest.split('/').next().unwrap_or(rest);
        // Nothing that could end a line of the request.
        if token.chars().chain(place.chars()).any(|letter| letter.is_control() || letter.is_whitespace()) {
            return Err(Problem { message: "the address or the token has a space in it".into(), hint: None });
        }
        let tls = has_tls.then(|| trusting(authorities)).transpose()?;
        Ok(Self { place: place.to_owned(), token: token.to_owned(), tls })
    }

    /// The status.
    ///
    /// # Errors
    /// The service cannot be reached, is none of evb, or refuses.
    pub fn status(&self) -> Result<Value, Problem> {
        let answer = self.get("/api/status").map_err(|error| {
            let message = format!("cannot reach the service at {}: {error}", self.place);
            Problem::new(message, "is `evb serve` running at this address, and is it http or https?")
        })?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let value: Value = serde_json::from_str(body).map_err(|_| {
            Problem::new(format!("{} is not an evb service", self.place), "check the address: is it http or https?")
        })?;
        match head.split(' ').nth(1) {
            Some("200") => Ok(value),
            _ => Err(Problem {
                message: value["error"].as_str().unwrap_or("refused").to_owned(),
                hint: value["hint"].as_str().map(str::to_owned),
            }),
        }
    }

    fn get(&self, path: &str) -> io::Result<String> {
        let address = self.place.to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let Some(config) = self.tls.clone() else { return self.ask(stream, path) };
        let host = self.place.rsplit_once(':').map_or(self.place.as_str(), |(host, _)| host);
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned());
        let name = name.map_err(|error: InvalidDnsNameError| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
        self.ask(StreamOwned::new(connection, stream), path)
    }

    fn ask(&self, mut stream: impl Read + Write, path: &str) -> io::Result<String> {
        let (place, token) = (&self.place, &self.token);
        // In 1.0 the body comes in one piece, and the connection ends behind it.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {place}\r\nAuthorization: Bearer {token}\r\n\r\n")?;
        stream.flush()?;
        let mut answer = String::new();
        stream.take(LONGEST).read_to_string(&mut answer)?;
        Ok(answer)
    }
}

/// Trusts services for which a certificate in this file vouches.
fn trusting(authorities: &Path) -> Result<Arc<ClientConfig>, Problem> {
    let hint = "`--ca FILE` names a PEM file with the certificate of the service, or of the authority that signed it";
    let broken = |error: String| Problem::new(format!("{}: {error}", authorities.display()), hint);
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authorities).map_err(|error| broken(error.to_string()))? {
        let certificate = certificate.map_err(|error| broken(error.to_string()))?;
        roots.add(certificate).map_err(|error| broken(error.to_string()))?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().map_err(|error| broken(error.to_string()))?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}
