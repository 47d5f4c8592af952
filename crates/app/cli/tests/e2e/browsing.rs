//! The page of a service in a real browser.

use crate::support::{Browser, Group, Lab, Service, is_there, node_pid};
use rustix::process::Signal;
use std::time::{Duration, Instant};

const ENDLESS: &str = r#"
[trigger]
type = "free-running"
events = 1000000000
[readout]
units = 4
source = { type = "log-normal", mean = "2 kB", rms = "2 kB" }
[builder]
units = 3
[storage]
keep = { one_in = 1000 }
"#;

/// Longest time from the death of a node to its name on the page.
const SOON: Duration = Duration::from_secs(2);

#[test]
fn an_operator_runs_the_event_builder_from_the_page() {
    if !is_there("chromium") {
        return;
    }
    let lab = Lab::with(ENDLESS);
    let service = Service::start(&lab, &["--processes"]);
    let mut page = Browser::start(&lab.path(""));
    page.open(&format!("http://{}/#token={}", service.place, service.token));
    page.wait_for_text("#header", "initial");
    assert_eq!(page.eval("location.hash"), "", "the token goes out of sight");
    page.click("Configure");
    page.wait_for_text("#header", "configured");
    page.click("Start");
    page.wait("the question for a type", "document.activeElement.tagName === 'INPUT'");
    page.press_enter();
    page.wait_for_text("#header", "running");
    page.wait("a rate", "/[1-9][0-9.]* ?.?k?Hz/.test(document.querySelector('#panels').innerText)");
    page.colours("light");
    page.picture("run.png");

    let died = Instant::now();
    Group::signal_one(node_pid(service.evb.pid(), "ru2"), Signal::KILL);
    page.wait_for_text("#banners", "ru2");
    let seen = died.elapsed();
    println!("the page showed the death after {} ms", seen.as_millis());
    page.wait_for_text("#header", "degraded");
    page.picture("degraded.png");
    page.eval("location.hash = '#builder'");
    page.wait_for_text("#panels", "ru3");
    page.colours("dark");
    page.picture("builder.png");
    page.eval("location.hash = '#event'");
    page.wait_for_text("#panels", "bytes");

    page.click("Stop");
    page.wait(
        "the question for a comment or the end",
        "document.activeElement.tagName === 'INPUT' || document.querySelector('#header').innerText.includes('stopped')",
    );
    page.press_enter();
    page.wait_for_text("#header", "stopped");
    page.eval("location.hash = '#runs'");
    page.wait_for_text("#panels", "stopped");
    page.eval("location.hash = '#event/1'");
    page.wait_for_text("#panels", "good");
    page.picture("event.png");
    page.click("Start");
    page.wait("the question for a type", "document.activeElement.tagName === 'INPUT'");
    page.press_enter();
    page.wait_for_text("#header", "8 nodes up");

    page.resize(390, 844);
    for view in ["run", "builder", "log", "runs", "event", "experiment"] {
        page.eval(&format!("location.hash = '#{view}'"));
        let wide = page.eval("document.documentElement.scrollWidth");
        assert!(wide.as_u64() <= Some(390), "{view} is {wide} wide on a phone");
    }
    for (view, scheme) in [("run", "light"), ("builder", "dark")] {
        page.eval(&format!("location.hash = '#{view}'"));
        page.colours(scheme);
        page.picture(&format!("phone-{view}.png"));
    }
    service.evb.signal(Signal::STOP);
    page.wait_for_text("#banners", "stale");
    service.evb.signal(Signal::CONT);
    page.wait("the page is alive again", "!document.querySelector('#banners').innerText.includes('stale')");
    assert!(page.problems.is_empty(), "{:#?}", page.problems);
    assert!(seen < SOON || std::env::var_os("CI").is_some(), "shown after {seen:?}");
}
