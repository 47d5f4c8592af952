//! Requests to a service.

use serde_json::Value;
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

/// Longest wait for a change of the service.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The HTTP interface of a service.
pub struct Api<'a> {
    /// Host and port.
    pub address: String,
    /// The operator's token.
    pub token: &'a str,
}

impl Api<'_> {
    /// Requests a page.
    ///
    /// # Errors
    /// The service does not answer, or not with JSON.
    pub fn get(&self, path: &str) -> Result<Value, String> {
        self.ask("GET", path, "")
    }

    /// Sends a command of run control.
    ///
    /// # Errors
    /// The service refuses the command or does not answer.
    pub fn command(&self, command: &str) -> Result<(), String> {
        let answer = self.ask("POST", "/api/command", &format!("{{\"command\": \"{command}\"}}"))?;
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(()),
        }
    }

    /// Sends a command, and repeats it while the configuration fails because nodes have not joined yet.
    ///
    /// # Errors
    /// The command still fails after [`PATIENCE`].
    pub fn command_again(&self, command: &str) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        loop {
            // Refused if the state has changed since it was read: then the command already runs.
            let given = self.command(command);
            let settled = self.wait("the next run", |status| {
                ["running", "failed", "initial"].map(Value::from).contains(&status["state"])
            })?;
            if settled["state"] == "running" {
                return Ok(());
            }
            if Instant::now() > end {
                return given;
            }
        }
    }

    /// Waits for a status with a property. `what` names it in the error.
    ///
    /// # Errors
    /// The status does not have the property within [`PATIENCE`]; the error contains the last one.
    pub fn wait(&self, what: &str, has_property: impl Fn(&Value) -> bool) -> Result<Value, String> {
        let end = Instant::now() + PATIENCE;
        let mut last = Value::Null;
        while Instant::now() < end {
            if let Ok(status) = self.get("/api/status") {
                if has_property(&status) {
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
