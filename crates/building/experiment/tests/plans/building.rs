//! Assignment, shaping, blocks and what goes on beside.

use crate::{SHORT, assert_resolves, parse, plan};
use evb_core::{ByteCount, NodeId, Span};
use evb_experiment::SlotErrors;
use evb_fabric::{Jitter, JitterPer, JitterSpread, Topology};
use evb_filter::Selection;
use evb_patterns::Pattern;
use evb_protocol::{FirstPhase, Protocol, RequestOrder, Shaping, ShapingStep};

/// Hosts of the background come after those of the units, and a crossbar has ports for them.
#[test]
fn background_traffic_has_hosts_of_its_own() {
    let text = r#"
[[background]]
name = "storage"
senders = { on = "builders" }
receivers = { on = "hosts", count = 3 }
message = { type = "fixed", size = "1 MB" }
[[background]]
name = "transfer"
pattern = "assigned"
senders = { on = "hosts", count = 3 }
receivers = { on = "hosts", first = 9, count = 2 }
message = { type = "fixed", size = "1 MB" }
"#;
    let text = format!("{SHORT}{text}");
    let plan = plan(&text, &[]);
    let [storage, transfer] = &*plan.background else { panic!("two tables") };
    assert_eq!(plan.network.config.topology, Topology::Crossbar { ports: 11 });
    assert_eq!((storage.sender_host, storage.receiver_host), (3, 5));
    assert_eq!((transfer.sender_host, transfer.receiver_host), (5, 9));
    assert_eq!(transfer.traffic.config.pattern, Pattern::Assigned { destinations: vec![0, 1, 0] });
    let names: Vec<_> =
        (5..plan.all_nodes()).map(|node| (plan.node_name(NodeId(node)), plan.host(NodeId(node)))).collect();
    assert_eq!(names[1], ("sender 1 of storage".into(), Some(4)));
    assert_eq!(names[4], ("receiver 2 of storage".into(), Some(7)));
    assert_eq!(names.last(), Some(&("receiver 1 of transfer".into(), Some(10))));
    assert_resolves(&parse(&text, &[]));
}

#[test]
fn shapings_in_slots() {
    let shaping = |overrides: &[&str]| plan(SHORT, overrides).building.shaping;
    let slip = Span::from_millis(100);
    let barrel = |bucket, step| Shaping::BarrelShifter { bucket: ByteCount(bucket), step, lead: ByteCount(8192), slip };
    assert_eq!(shaping(&["shaping.type=barrel-shifter"]), barrel(8192, ShapingStep::Credit));
    assert_eq!(shaping(&["shaping.type=rate-division"]), Shaping::RateDivision { packet: ByteCount(512) });
    let small = shaping(&["shaping.type=barrel-shifter", "shaping.bucket=2 kB", "shaping.step=link"]);
    assert_eq!(small, barrel(2000, ShapingStep::Link));
}

#[test]
fn the_times_of_slots_have_errors_in_a_simulation() {
    let errors = |keys: &str| plan(SHORT, &[&format!("shaping={{type=\"barrel-shifter\"{keys}}}")]).network.slot_errors;
    let jitter = |spread| Some(Jitter { mean: Span::from_micros(1), spread, per: JitterPer::Message });
    assert_eq!(errors(""), SlotErrors::default());
    assert_eq!(errors(",skew=\"0 s\",jitter={mean=\"0 s\"}"), SlotErrors::default());
    let exponential = errors(",skew=\"3 us\",jitter={mean=\"1 us\"}");
    assert_eq!(exponential, SlotErrors { skew: Span::from_micros(3), jitter: jitter(JitterSpread::Exponential) });
    let rms = Span::from_micros(5);
    assert_eq!(errors(",jitter={mean=\"1 us\",rms=\"5 us\"}").jitter, jitter(JitterSpread::LogNormal { rms }));
    assert_eq!(plan(SHORT, &["shaping={type=\"grouping\"}"]).network.slot_errors, SlotErrors::default());
}

#[test]
fn requests_have_an_order_and_a_window_where_builders_send_them() {
    let requests = |protocol: &str| {
        let config = plan(SHORT, &[&format!("protocol={{{protocol}}}")]).building;
        (config.request_order, config.request_window.map(std::num::NonZeroU32::get))
    };
    assert_eq!(requests("type=\"push\""), (RequestOrder::Rotated, None));
    assert_eq!(requests("type=\"pull\""), (RequestOrder::Rotated, None));
    assert_eq!(requests("type=\"pull\",order=\"same\",window=4"), (RequestOrder::Same, Some(4)));
    assert_eq!(requests("type=\"phased\",first=1,accept=0.5,window=2"), (RequestOrder::Rotated, Some(2)));
}

#[test]
fn phased_sets_the_first_units_and_the_accepted_part() {
    let found = plan(SHORT, &["protocol={type='phased',first=1,accept=0.2}", "run.seed=7"]);
    assert_eq!(found.building.protocol, Protocol::Phased { first: FirstPhase::Units(1), rest: true });
    let region = plan(SHORT, &["protocol={type='phased',least=1,most=2,rest=false}", "run.seed=7"]);
    let first = FirstPhase::Region { least: 1, most: 2, seed: 7 };
    assert_eq!(region.building.protocol, Protocol::Phased { first, rest: false });
    assert_eq!(region.filter, Selection::all(7));
    assert_eq!(region.with_seed(8).building.protocol, Protocol::Phased { first, rest: false }.with_seed(8));
    assert_eq!(found.filter, Selection { phased: true, drawn: Some(0.2), ..Selection::all(7) });
    assert_eq!(plan(SHORT, &["protocol={type='phased',first=1,accept=1}"]).filter.drawn, Some(1.0));
    assert_resolves(&parse(SHORT, &["protocol={type='phased',first=1,accept=0}"]));
}

/// What `block = "auto"` makes of a file: events in a block at first, and most of them where their number follows the load.
#[test]
fn blocks_fit_sources_and_triggers() {
    let blocks = |trigger: &str, source: &str, more: &str| {
        let text = format!(
            "[trigger]\nblock = 'auto'\n{trigger}\n[readout]\nunits = 8\nsource = {{ {source} }}\n[builder]\nunits = 8\n{more}"
        );
        let plan = plan(&text, &[]);
        (plan.bundling.block, plan.bundling.largest, plan.events())
    };
    let (free, rate) = ("events = 30_000", "type = 'rate'\nrate = '1 kHz'\nevents = 1201");
    let (small, large) = ("type = 'fixed', size = '2 kB'", "type = 'log-normal', mean = '60 kB', rms = '1 kB'");
    assert_eq!(blocks(free, small, ""), (64, None, Some(30_000)), "the last one is smaller");
    assert_eq!(blocks("events = 1200", small, ""), (18, None, Some(1200)), "eight for each builder");
    assert_eq!(blocks("duration = '1 s'", small, ""), (64, None, None));
    assert_eq!(blocks(rate, small, ""), (1, Some(64), Some(1201)));
    assert_eq!(blocks(rate, large, ""), (1, Some(2), Some(1201)), "128 KiB in a bundle");
    assert_eq!(blocks(rate, "type = 'fixed', size = '200 kB'", ""), (1, None, Some(1201)));
    assert_eq!(blocks(rate, small, "[first_stage]\nslices = 1"), (1, None, Some(1201)));
    assert_eq!(blocks(free, small, "[protocol]\ntype = 'phased'\nfirst = 2\naccept = 0.1"), (1, None, Some(30_000)));
    assert_eq!(blocks("events = 10", "type = 'cms-fed', file = 'a.raw'", ""), (1, None, Some(10)));
    // Blocks never make an event builder too large that is possible in single events.
    let text = "[trigger]\nevents = 1_000_000\n[readout]\nunits = 1000\nsource = { type = 'fixed', size = '64 B' }\n[builder]\nunits = 600";
    assert_eq!(plan(text, &[]).bundling.block, 6, "6 events in 64 slots, 600,000 fragments each, are below 2^28");
    assert_eq!(plan(text, &["builder.slots=400"]).bundling.block, 1);
    // The file decides on the largest fragment, and bundles of such fragments are not too large.
    let largest = "[readout]\nmax_fragment = '4 MiB'\nunits = 8\nsource = { type = 'fixed', size = '2 kB' }\n";
    let text = format!("[trigger]\nblock = 'auto'\nduration = '1 s'\n{largest}[builder]\nunits = 1");
    assert_eq!(plan(&text, &[]).bundling.block, 7);
}
