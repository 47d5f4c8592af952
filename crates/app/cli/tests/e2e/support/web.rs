//! The page of a service as a program sees it.

use super::{Evb, Lab, Running, wait_until};
use serde_json::Value;
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

/// What takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A service that runs.
pub(crate) struct Service {
    pub(crate) evb: Running,
    pub(crate) place: String,
    pub(crate) token: String,
}

/// An answer of a service.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

impl Service {
    /// Starts a service of the lab's experiment, at a port that the system chooses.
    pub(crate) fn start(lab: &Lab, arguments: &[&str]) -> Self {
        Self::of(Self::command_of(lab, arguments))
    }

    /// The command that starts a service of the lab's experiment.
    pub(crate) fn command_of(lab: &Lab, arguments: &[&str]) -> Evb {
        lab.evb(&["serve", "experiment.toml", "--http", "127.0.0.1:0"]).args(arguments)
    }

    /// Starts a service by this command.
    pub(crate) fn of(evb: Evb) -> Self {
        let mut evb = evb.start();
        evb.wait_for("run control is at http://");
        let said = evb.stderr();
        let address = said.split("http://").nth(1).and_then(|rest| rest.split_whitespace().next()).expect("an address");
        let (place, token) = address.split_once("/#token=").unwrap_or((address.trim_end_matches('/'), ""));
        Self { place: place.to_owned(), token: token.to_owned(), evb }
    }

    /// Sends a request, with the headers of a page.
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Reply {
        let token = format!("Authorization: Bearer {}", self.token);
        self.send(method, path, &[&token, "X-Evb: 1"], body)
    }

    /// Sends a request with these headers.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[&str], body: Option<&Value>) -> Reply {
        let mut stream = self.open();
        let body = body.map(Value::to_string).unwrap_or_default();
        let headers = headers.iter().map(|header| format!("{header}\r\n")).collect::<String>();
        let length = body.len();
        let place = &self.place;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {place}\r\nContent-Type: application/json\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(format!("{head}{body}").as_bytes()).expect("the service listens");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the service answers");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Reply { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    pub(crate) fn open(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.place).expect("the service listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let reply = self.ask("GET", path, None);
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        reply.json()
    }

    pub(crate) fn command(&self, command: &str) -> Reply {
        self.ask("POST", "/api/command", Some(&serde_json::json!({ "command": command, "type": "test" })))
    }

    /// Waits for a status that is as it should be.
    pub(crate) fn wait(&self, what: &str, is_such: impl Fn(&Value) -> bool) -> Value {
        wait_until(what, || Some(self.get("/api/status")).filter(|status| is_such(status)))
    }

    pub(crate) fn wait_for_state(&self, state: &str) -> Value {
        self.wait(state, |status| status["state"] == state)
    }

    /// The names of the next events of the stream of changes.
    pub(crate) fn listen(&self, count: usize) -> Vec<String> {
        let mut stream = self.open();
        let (place, token) = (&self.place, &self.token);
        let head = format!("GET /api/events HTTP/1.1\r\nHost: {place}\r\nAuthorization: Bearer {token}\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("the service listens");
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        lines.filter_map(|line| line.strip_prefix("event: ").map(str::to_owned)).take(count).collect()
    }
}
