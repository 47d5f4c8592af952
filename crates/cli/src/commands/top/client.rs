//! A client of a service: one request on a connection.

use crate::failure::Failure;
use serde_json::Value;
use std::{
    io::{Read as _, Write as _},
    net::{TcpStream, ToSocketAddrs as _},
    time::Duration,
};

/// Longest wait for the service.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer in bytes: the status of the largest event builder.
const LONGEST: u64 = 64 << 20;

/// The service at one address.
pub(super) struct Client {
    place: String,
    token: String,
}

impl Client {
    /// The service at `http://HOST:PORT/#token=TOKEN`, of which all but host and port may be left out.
    pub(super) fn new(address: &str, token: Option<&str>) -> Result<Self, Failure> {
        let rest = address.strip_prefix("http://").unwrap_or(address);
        let (place, behind) = rest.split_once('/').unwrap_or((rest, ""));
        let token = behind.strip_prefix("#token=").or(token);
        let token = token.ok_or_else(|| {
            let hint = "give the address as `evb serve` printed it, or a token with EVB_HTTP_TOKEN";
            Failure::with_hint("a token is needed", hint)
        })?;
        // Nothing that could end a line of the request.
        if token.chars().chain(place.chars()).any(|letter| letter.is_control() || letter.is_whitespace()) {
            return Err(Failure::new("the address or the token has a space in it"));
        }
        Ok(Self { place: place.to_owned(), token: token.to_owned() })
    }

    /// The status.
    pub(super) fn status(&self) -> Result<Value, Failure> {
        let answer = self.get("/api/status").map_err(|error| {
            let hint = "is `evb serve` running, and is this its address?";
            Failure::with_hint(format!("cannot reach the service at {}: {error}", self.place), hint)
        })?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let value: Value = serde_json::from_str(body)
            .map_err(|_| Failure::with_hint(format!("{} is no service of evb", self.place), "check the address"))?;
        match head.split(' ').nth(1) {
            Some("200") => Ok(value),
            _ => Err(Failure::with_hint(
                value["error"].as_str().unwrap_or("refused"),
                value["hint"].as_str().unwrap_or(""),
            )),
        }
    }

    fn get(&self, path: &str) -> std::io::Result<String> {
        let address = self.place.to_socket_addrs()?.next().ok_or(std::io::ErrorKind::NotFound)?;
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (place, token) = (&self.place, &self.token);
        // In 1.0 the body comes in one piece, and the connection ends behind it.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {place}\r\nAuthorization: Bearer {token}\r\n\r\n")?;
        let mut answer = String::new();
        stream.take(LONGEST).read_to_string(&mut answer)?;
        Ok(answer)
    }
}
