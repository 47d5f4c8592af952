use crate::samples;
use evb_record::{Latency, Record};
use evb_report::{Plot, is_axis, plots, plots_along};

fn names(records: &[Record]) -> Vec<String> {
    plots(records).into_iter().map(|plot| plot.name).collect()
}

fn plot(records: &[Record], name: &str) -> Plot {
    plots(records).into_iter().find(|plot| plot.name == name).unwrap_or_else(|| panic!("no {name}"))
}

/// Marks that are filled with this colour.
fn marks(svg: &str, fill: &str) -> usize {
    svg.lines().filter(|line| line.starts_with("<polygon") && line.contains(&format!("fill=\"{fill}\""))).count()
}

fn bars(svg: &str, fill: &str) -> usize {
    let is_bar = |line: &&str| line.starts_with("<rect") && line.contains(fill) && !line.contains("width=\"0\"");
    svg.lines().filter(is_bar).count() - 1
}

fn texts(svg: &str) -> Vec<&str> {
    let mut lines = svg.lines();
    let mut texts = Vec::new();
    while let Some(line) = lines.next() {
        if line.starts_with("<text") {
            texts.push(lines.next().unwrap_or_default());
        }
    }
    texts
}

/// Every tag is closed in order and no text breaks out.
fn assert_well_formed(svg: &str) {
    let mut open = Vec::new();
    for (n, piece) in svg.split('<').enumerate().skip(1) {
        let (tag, text) = piece.split_once('>').unwrap_or_else(|| panic!("tag {n} does not end: {piece}"));
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        assert!(!text.contains('>'), "{text}");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        let name = tag.split([' ', '/']).next().unwrap_or_default();
        match tag.strip_prefix('/') {
            Some(closed) => assert_eq!(open.pop(), Some(closed), "{svg}"),
            None if tag.ends_with('/') => {}
            None => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{svg}");
}

#[test]
fn a_sweep_of_sizes_gives_all_plots() {
    let records = samples::sweep();
    assert_eq!(names(&records), ["throughput", "latency", "efficiency", "links"]);
    let svg = plot(&records, "throughput").svg;
    // Eight points and the one in the legend, for each of two protocols.
    assert_eq!((marks(&svg, "#0072B2"), marks(&svg, "#D55E00"), marks(&svg, "#009E73")), (9, 9, 0));
    let found = texts(&svg);
    for text in ["demonstrator", "mean fragment size (bytes)", "builder.protocol", "push", "pull", "256 B", "32 kB"] {
        assert!(found.contains(&text), "{text}: {found:?}");
    }
    let svg = plot(&records, "latency").svg;
    assert_eq!((marks(&svg, "#0072B2"), marks(&svg, "#D55E00")), (9, 9));
    // The hollow points of the 99th percentile, and the one in the legend.
    assert_eq!(marks(&svg, "#FFFFFF"), 17);
    assert!(texts(&svg).contains(&"throughput per destination (MB/s)"));
}

#[test]
fn a_sweep_of_loads_shows_latency_against_load() {
    let records = samples::loads();
    let svg = plot(&records, "latency").svg;
    assert!(texts(&svg).contains(&"load (part of the rate of a link)"));
    assert_eq!((marks(&svg, "#0072B2"), marks(&svg, "#FFFFFF")), (10, 10));
    let svg = plot(&records, "efficiency").svg;
    assert_eq!(marks(&svg, "#0072B2"), 9, "one curve needs no legend");
    // The latency keeps its load even when a size is swept too.
    let two_sizes = ["1 kB", "2 kB"].into_iter().flat_map(|size| {
        samples::loads().into_iter().map(move |mut record| {
            record.sweep.insert("workload.size".into(), size.into());
            record
        })
    });
    let two_sizes: Vec<_> = two_sizes.collect();
    assert!(texts(&plot(&two_sizes, "latency").svg).contains(&"load (part of the rate of a link)"));
    assert!(texts(&plot(&two_sizes, "throughput").svg).contains(&"workload size (bytes)"));
}

#[test]
fn plots_that_make_no_sense_are_left_out() {
    assert_eq!(names(&[]), [""; 0]);
    assert_eq!(names(&[samples::run()]), [""; 0]);
    assert_eq!(names(&[samples::simulation()]), ["links"]);
    // One point, the same point twice, and a key that is not a number.
    assert_eq!(names(&samples::loads()[..1]), ["links"]);
    let twice = [samples::loads().remove(0), samples::loads().remove(0)];
    assert_eq!(names(&twice), ["links"]);
    let mut records = samples::loads();
    for (n, record) in records.iter_mut().enumerate() {
        record.sweep = [("network.routing".to_owned(), format!("way {n}"))].into();
    }
    assert_eq!(names(&records), ["links"]);
    // A real run has no efficiency and no links.
    let real = samples::loads().into_iter().map(|record| Record { simulation: None, ..record });
    assert_eq!(names(&real.collect::<Vec<_>>()), ["throughput", "latency"]);
}

#[test]
fn connections_over_time_have_a_panel_for_each_figure_that_says_something() {
    let mut record = samples::lossy_simulation();
    let svg = plot(&[record.clone()], "connections").svg;
    assert_well_formed(&svg);
    let found = texts(&svg);
    let panels = ["goodput (MB/s)", "outstanding", "window (kB)", "sent again", "timeouts"];
    for text in panels.iter().chain(&["demonstrator", "time, in steps of 5.1 ms"]) {
        assert_eq!(found.iter().filter(|other| other == &text).count(), 1, "{text}: {found:?}");
    }
    for text in ["rate (MB/s)", "marked (MB)", "notices"] {
        assert!(!found.contains(&text), "{text}: {found:?}");
    }
    // One stair for each panel.
    let stairs =
        |svg: &str| svg.lines().filter(|line| line.starts_with("<polyline") && line.contains("#0072B2")).count();
    assert_eq!(stairs(&svg), panels.len());

    let connections = record.simulation.as_mut().unwrap().network.connections.as_mut().unwrap();
    // Nothing is outstanding in one step: the stair of the windows is interrupted.
    connections.over_time.as_mut().unwrap().window_bytes[10] = None;
    assert_eq!(stairs(&plot(&[record.clone()], "connections").svg), panels.len() + 1);
    record.simulation.as_mut().unwrap().network.connections.as_mut().unwrap().over_time = None;
    assert_eq!(names(&[record]), ["links"]);
}

#[test]
fn the_map_shows_the_busiest_links_in_the_order_of_their_names() {
    let svg = plot(&[samples::simulation()], "links").svg;
    let found = texts(&svg);
    let order = ["from hosts", "h0&gt;switch0", "h3&gt;switch0", "to hosts", "switch0&gt;h0", "switch0&gt;h3"];
    let places: Vec<_> = order.iter().map(|text| found.iter().position(|other| other == text)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} in {found:?}");
    assert_eq!((bars(&svg, "#0072B2"), bars(&svg, "#D55E00")), (8, 4));

    let svg = plot(&[samples::clos()], "links").svg;
    let found = texts(&svg);
    assert_eq!(bars(&svg, "#0072B2"), 64);
    assert!(found.contains(&"192 links that did less are left out"), "{found:?}");
    let place = |name| found.iter().position(|text| *text == name).unwrap_or_else(|| panic!("no {name} in {found:?}"));
    assert!(place("h9&gt;leaf1") < place("h10&gt;leaf1"), "h9 comes before h10");
    assert!(place("h127&gt;leaf15") < place("leaf0&gt;spine3"), "hosts come before switches");
}

#[test]
fn the_same_records_give_the_same_bytes() {
    for records in [samples::sweep(), samples::loads(), vec![samples::clos()]] {
        assert_eq!(plots(&records), plots(&records.clone()));
    }
}

#[test]
fn all_plots_are_well_formed() {
    let mut wild = samples::sweep();
    wild[0].experiment = "<script>alert(\"1\")</script> & \u{1}\u{7f}\n]]>".repeat(20);
    for (n, record) in wild.iter_mut().enumerate() {
        record.sweep.insert("<a&b>".into(), format!("\"{n}' \u{0}").repeat(40));
        for link in &mut record.simulation.as_mut().unwrap().network.links {
            link.name = format!("<{}>\u{2}", link.name).repeat(30);
        }
    }
    for records in [samples::sweep(), samples::loads(), vec![samples::clos()], many_curves(), wild] {
        let plots = plots(&records);
        assert!(!plots.is_empty());
        plots.iter().for_each(|plot| assert_well_formed(&plot.svg));
    }
}

#[test]
fn many_curves_are_all_drawn() {
    let svg = plot(&many_curves(), "throughput").svg;
    let points = svg.lines().filter(|line| line.starts_with("<polygon")).count();
    // A mark for each of 60 x 3 points, and for each of 39 in the legend below its heading.
    assert_eq!(points, 180 + 39);
    assert!(texts(&svg).contains(&"and 21 more"), "{:?}", texts(&svg));
}

fn many_curves() -> Vec<Record> {
    let point = |n: u32| {
        let mut record = samples::simulation();
        let size = ["1 kB", "2 kB", "1 MB"][n as usize % 3];
        record.sweep = [("run.workers".into(), (n / 3).to_string()), ("size".into(), size.into())].into();
        record.per_destination_bytes_per_s = vec![1e6 * f64::from(n + 1)];
        record
    };
    (0..180).map(point).collect()
}

#[test]
fn impossible_numbers_do_no_harm() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, f64::MIN_POSITIVE, f64::MAX] {
        for part in [1, 3, usize::MAX] {
            let mut records = samples::loads();
            for record in records.iter_mut().take(part) {
                record.per_destination_bytes_per_s = vec![value; 3];
                record.latency_us = Latency { mean: None, p50: value, p99: value, p999: value, max: value };
                let simulation = record.simulation.as_mut().unwrap();
                simulation.efficiency = value;
                for link in &mut simulation.network.links {
                    (link.used, link.blocked) = (value, value);
                }
            }
            plots(&records).iter().for_each(|plot| assert_well_formed(&plot.svg));
        }
    }
}

#[test]
fn wild_values_of_keys_do_no_harm() {
    let sets: [&[&str]; 8] = [
        &["0", "0.000001", "100000000000000000"],
        &["-5", "5", "50"],
        &["1e17", "1.0000000000000002e17"],
        &["1", "1.0000000000000002"],
        &["0 B", "18446744073709551615 B"],
        &["", "2"],
        &["1 kB", "2 us"],
        &["-0.0", "0"],
    ];
    for values in sets {
        let records = values.iter().map(|value| {
            let sweep = [("key".to_owned(), (*value).to_owned())].into();
            Record { sweep, ..samples::simulation() }
        });
        plots(&records.collect::<Vec<_>>()).iter().for_each(|plot| assert_well_formed(&plot.svg));
    }
}

/// A bar from the slowest to the fastest destination at each point where they differ: upright, with two ends, and one in the
/// legend.
#[test]
fn bars_show_how_far_destinations_differ() {
    let thin = |svg: &str, colour: &str| {
        let is_thin =
            |line: &&str| line.contains(&format!("stroke=\"{colour}\"")) && line.contains("stroke-width=\"1\"");
        svg.lines().filter(|line| line.starts_with("<polyline")).filter(is_thin).count()
    };
    let mut records = samples::loads();
    assert_eq!(thin(&plot(&records, "throughput").svg, "#0072B2"), 0, "they are all the same");
    records[2].per_destination_bytes_per_s = vec![10e6, 20e6, 30e6];
    let svg = plot(&records, "throughput").svg;
    assert_eq!(thin(&svg, "#0072B2"), 3);
    assert!(texts(&svg).contains(&"slowest to fastest destination"));
    records[2].per_destination_bytes_per_s = vec![10e6, 200e6, 30e6];
    assert!(texts(&plot(&records, "throughput").svg).contains(&"200"), "the axis has room for the bar");
}

/// Each colour of a plot has another one on dark pages, or is fit for both.
#[test]
fn plots_follow_the_choice_of_light_or_dark() {
    const FOR_BOTH: [&str; 4] = ["#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
    for plot in plots(&samples::sweep()) {
        let (style, rest) = plot.svg.split_once("</style>").expect("a style");
        assert!(style.contains("@media (prefers-color-scheme:dark)"), "{style}");
        let colours = rest.split("=\"#").skip(1).map(|rest| format!("#{}", &rest[..6]));
        for colour in colours.filter(|colour| !FOR_BOTH.contains(&colour.as_str())) {
            assert!(style.contains(&format!("[fill='{colour}']{{fill:#")), "{}: {colour}", plot.name);
        }
    }
}

/// Three replicates of each load.
fn replicates() -> Vec<Record> {
    let of_load = |(n, record): (usize, Record)| {
        (1..=3).map(move |seed| {
            let mut record = record.clone();
            record.sweep.insert("run.seed".into(), seed.to_string());
            record.per_destination_bytes_per_s = vec![1e6 * (10 * n + seed) as f64];
            record
        })
    };
    samples::loads().into_iter().enumerate().flat_map(of_load).collect()
}

#[test]
fn replicates_are_points_with_their_interval() {
    let records = replicates();
    let svg = plot(&records, "throughput").svg;
    assert_eq!(marks(&svg, "#0072B2"), marks(&plot(&samples::loads(), "throughput").svg, "#0072B2"));
    assert!(texts(&svg).contains(&"95 % of the mean of replicates") && !texts(&svg).contains(&"run.seed"));
    // Only the seed is swept: nothing to draw but the links.
    let only_seeds = records.into_iter().take(3).map(|mut record| {
        record.sweep.retain(|key, _| key == "run.seed");
        record
    });
    assert_eq!(names(&only_seeds.collect::<Vec<_>>()), ["links"]);
}

/// Replicates that scatter so much that their interval reaches below zero.
#[test]
fn bars_end_at_the_axis() {
    let mut records = replicates();
    for (record, time) in records.iter_mut().zip([1.0, 10.0, 100.0].into_iter().cycle()) {
        (record.latency_us.p50, record.latency_us.p99) = (time, 2.0 * time);
        record.per_destination_bytes_per_s = vec![time * 1e6];
    }
    plots(&records).iter().for_each(|plot| assert_well_formed(&plot.svg));
    let svg = plot(&records, "latency").svg;
    assert!(texts(&svg).contains(&"95 % of the mean of replicates"), "{svg}");
}

#[test]
fn the_axis_can_be_chosen() {
    let records = many_curves();
    let title =
        |plots: &[Plot], text: &str| plots.iter().all(|plot| plot.name == "links" || texts(&plot.svg).contains(&text));
    assert!(title(&plots_along(&records, "run.workers"), "run workers"));
    assert!(title(&plots_along(&records, "size"), "size (bytes)"));
    assert_eq!(plots_along(&records, "nothing").iter().map(|plot| &*plot.name).collect::<Vec<_>>(), ["links"]);
    assert!(is_axis("a", &["1 kB", "2 kB"]) && is_axis("a", &["1", "1", "2"]));
    for values in [&["1"][..], &["1", "1"], &["1", "2 kB"], &["push", "pull"], &[]] {
        assert!(!is_axis("a", values), "{values:?}");
    }
    assert!(!is_axis("run.seed", &["1", "2"]));
}
