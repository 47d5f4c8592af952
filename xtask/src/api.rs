//! Requests to a service.

use serde_json::Value;
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

/// Longest wait for anything that must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The interface of a service.
pub(crate) struct Api<'a> {
    pub(crate) address: String,
    pub(crate) token: &'a str,
}

impl Api<'_> {
    pub(crate) fn get(&self, path: &str) -> Result<Value, String> {
        self.ask("GET", path, "")
    }

    pub(crate) fn command(&self, command: &str) -> Result<(), String> {
        let answer = self.ask("POST", "/api/command", &format!("{{\"command\": \"{command}\"}}"))?;
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(()),
        }
    }

    /// Gives a command, and again when the configuration that it leads to fails: nodes may still be on their way.
    pub(crate) fn command_again(&self, command: &str) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        loop {
            // A state that was seen before may be over: then the command is under way, and is refused.
            let given = self.command(command);
            let settled = self.wait("the next run", |status| {
                ["running", "failed", "initial"].map(Value::from).contains(&status["state"])
            })?;
            match (settled["state"] == "running", Instant::now() > end) {
                (true, _) => return Ok(()),
                (false, true) => return given,
                (false, false) => {}
            }
        }
    }

    /// Waits for a status that is as it should be.
    pub(crate) fn wait(&self, what: &str, is_such: impl Fn(&Value) -> bool) -> Result<Value, String> {
        let end = Instant::now() + PATIENCE;
        let mut last = Value::Null;
        while Instant::now() < end {
            if let Ok(status) = self.get("/api/status") {
                if is_such(&status) {
                    return Ok(status);
                }
                last = status;
            }
            thread::sleep(Duration::from_millis(100));
        }
        last["record"] = Value::Null;
        Err(format!("waited in vain for {what}: {last}"))
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Result<Value, String> {
        let (address, token) = (&self.address, self.token);
        let wrong = |error: std::io::Error| format!("{address}: {error}");
        let mut stream = TcpStream::connect(address).map_err(wrong)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(wrong)?;
        let head =
            format!("{method} {path} HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nX-Evb: 1\r\n");
        let length = body.len();
        write!(stream, "{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
            .map_err(wrong)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map_err(wrong)?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        serde_json::from_str(body).map_err(|error| format!("{address}{path}: {error}: {body}"))
    }
}
