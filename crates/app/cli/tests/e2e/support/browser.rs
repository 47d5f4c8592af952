//! A real browser, driven through its DevTools protocol.

use super::wait_until;
use data_encoding::BASE64;
use serde_json::{Value, json};
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};
use tungstenite::{Message, WebSocket, client};

/// What takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one page.
pub(crate) struct Browser {
    process: Child,
    socket: WebSocket<TcpStream>,
    asked: u64,
    /// Errors of scripts, and what the browser refused to load.
    pub(crate) problems: Vec<String>,
}

impl Browser {
    /// Starts Chromium without a window; its profile is in this folder.
    pub(crate) fn start(folder: &Path) -> Self {
        let profile = folder.join("profile");
        let mut command = Command::new("chromium");
        command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
        command.args(["--remote-debugging-port=0", "--remote-allow-origins=*", "--window-size=1440,900"]);
        command.arg(format!("--user-data-dir={}", profile.display())).arg("about:blank");
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("chromium starts");
        let port = wait_until("the port of the browser", || {
            std::fs::read_to_string(profile.join("DevToolsActivePort")).ok()?.lines().next()?.parse::<u16>().ok()
        });
        let path = wait_until("the page of the browser", || page_of(port));
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the browser listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let (socket, _) = client(format!("ws://127.0.0.1:{port}{path}"), stream).expect("the browser answers");
        let mut browser = Self { process, socket, asked: 0, problems: Vec::new() };
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        browser
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.asked += 1;
        let question = json!({ "id": self.asked, "method": method, "params": parameters });
        self.socket.send(Message::text(question.to_string())).expect("the browser listens");
        loop {
            let Message::Text(text) = self.socket.read().expect("the browser answers") else { continue };
            let answer: Value = serde_json::from_str(&text).expect("JSON");
            match answer["method"].as_str() {
                Some("Runtime.exceptionThrown" | "Log.entryAdded") => self.problems.push(answer["params"].to_string()),
                _ if answer["id"] == self.asked => return answer["result"].clone(),
                _ => {}
            }
        }
    }

    pub(crate) fn open(&mut self, address: &str) {
        self.call("Page.navigate", &json!({ "url": address }));
    }

    /// The size of the page, as on a phone or on a desk.
    pub(crate) fn resize(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Shows the page as people see it who prefer dark or light colours.
    pub(crate) fn colours(&mut self, scheme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call("Emulation.setEmulatedMedia", &json!({ "features": [feature] }));
    }

    /// Stores a picture of the page for the documentation, in the folder that `EVB_SCREENSHOTS` names, if it does. Plots have some
    /// seconds of a run by then.
    pub(crate) fn picture(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("EVB_SCREENSHOTS") else { return };
        std::thread::sleep(Duration::from_secs(4));
        let picture = self.call("Page.captureScreenshot", &json!({ "format": "png" }));
        let bytes = BASE64.decode(picture["data"].as_str().expect("a picture").as_bytes()).expect("base64");
        std::fs::write(Path::new(&folder).join(name), bytes).expect("the folder of EVB_SCREENSHOTS is there");
    }

    /// The value of an expression in the page.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let question = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        self.call("Runtime.evaluate", &question)["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub(crate) fn wait(&mut self, what: &str, expression: &str) {
        wait_until(what, || (self.eval(expression) == true).then_some(()));
    }

    /// Waits until a part of the page has this text.
    pub(crate) fn wait_for_text(&mut self, part: &str, text: &str) {
        let expression = format!("document.querySelector({part:?})?.innerText.includes({text:?}) === true");
        self.wait(&format!("{text:?} in {part}"), &expression);
    }

    /// Clicks the button that begins with this text.
    pub(crate) fn click(&mut self, text: &str) {
        let find = format!(
            "[...document.querySelectorAll('button')].find(b => b.innerText.startsWith({text:?}) && b.offsetParent)"
        );
        self.wait(
            &format!("the button {text:?}"),
            &format!("Boolean({find}) && !{find}.disabled && {find}.ariaDisabled !== 'true'"),
        );
        self.eval(&format!("{find}.click()"));
    }

    pub(crate) fn press_enter(&mut self) {
        for kind in ["keyDown", "keyUp"] {
            let mut key = json!({ "type": kind, "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13 });
            if kind == "keyDown" {
                key["text"] = "\r".into();
            }
            self.call("Input.dispatchKeyEvent", &key);
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _reaped = self.process.wait();
    }
}

/// The path of the protocol for the first page.
fn page_of(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_millis(500))).ok()?;
    write!(stream, "GET /json HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    // The connection stays open behind the answer.
    let _ends_by_the_timeout = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer).into_owned();
    let pages: Value = serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()?;
    let page = pages.as_array()?.iter().find(|page| page["type"] == "page")?;
    let (_, path) = page["webSocketDebuggerUrl"].as_str()?.split_once(&format!(":{port}"))?;
    Some(path.to_owned())
}
