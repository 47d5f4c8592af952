//! Every error message, as the user sees it.

use evb_experiment::{Diagnostics, Experiment};
use miette::{GraphicalReportHandler, GraphicalTheme};
use std::io::Write;

fn render(diagnostics: &Diagnostics) -> String {
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(100);
    let mut text = String::new();
    handler.render_report(&mut text, diagnostics).expect("writing to a string");
    // Editors take away the blanks at the ends of lines.
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn errors(text: &str, overrides: &[&str]) -> String {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    match Experiment::parse(text, "try.toml", &overrides) {
        Ok(experiment) => format!("no error:\n{}", experiment.resolved()),
        Err(diagnostics) => render(&diagnostics),
    }
}

/// A good file with one section replaced by another text.
fn with(section: &str) -> String {
    let name = section.trim_start().lines().next().unwrap_or_default().to_owned();
    let mut sections = vec![
        "[trigger]\nevents = 1000\n",
        "[readout]\nunits = 2\nsource = { type = \"fixed\", size = \"2 kB\" }\n",
        "[builder]\nunits = 2\n",
    ];
    match sections.iter().position(|good| good.starts_with(&name)) {
        Some(index) => sections[index] = section,
        None => sections.push(section),
    }
    sections.join("\n")
}

/// A histogram of a field, with a decoder of these items.
fn monitored(field: &str, items: &str, more: &str) -> String {
    format!("[[monitor]]\nfield = \"{field}\"\ndecoder = {{ items = [{items}] }}\n{more}\n")
}

/// Background traffic from the builders to hosts of its own, with other keys in place of some.
fn beside(changes: &[(&str, &str)], more: &str) -> String {
    const TABLE: &str = r#"[[background]]
name = "storage"
pattern = "random"
senders = { on = "builders" }
receivers = { on = "hosts" }
message = { type = "fixed", size = "1 MB" }
from = "1 ms"
"#;
    with(&(changes.iter().fold(TABLE.to_owned(), |text, (from, to)| text.replace(from, to)) + more))
}

/// The fabric of an example, from its folder.
fn fabric(topology: &str, routing: &str) -> String {
    format!(
        "[network]\ntopology = {{ type = \"infiniband\", file = \"fabric.topo\"{topology} }}\nrouting = {{ {routing} }}\n\
         [data]\ndirectory = \"../../../experiments/fabric\"\n[network.nic]\n"
    )
}

macro_rules! cases {
    ($($name:ident: $text:expr $(, set $overrides:expr)?;)*) => {$(
        #[test]
        fn $name() {
            let overrides: &[&str] = cases!(@ $($overrides)?);
            let mut settings = insta::Settings::clone_current();
            settings.set_omit_expression(true);
            settings.set_prepend_module_to_snapshot(false);
            settings.bind(|| insta::assert_snapshot!(stringify!($name), errors(&$text, overrides)));
        }
    )*};
    (@ $overrides:expr) => { &$overrides };
    (@) => { &[] };
}

/// Two units that name one link, each with a source id and more keys of its framing.
fn sharing(link: &str, [first, second]: [&str; 2], more: &str) -> String {
    let unit = |source: &str| {
        let framing = format!("magic = \"ab\", size = \"64 B\", {source}");
        format!("[[readout.unit]]\nsource = {{ {link}, framing = {{ {framing} }} }}\n")
    };
    format!("[trigger]\ntype = \"data\"\n{}{}[builder]\nunits = 1\n{more}", unit(first), unit(second))
}

const TCP_LINK: &str = "type = \"tcp\", listen = \"127.0.0.1:9000\"";
const ID_1: &str = "source = { at = 4, bits = 8, value = 1 }";
const ID_2: &str = "source = { at = 4, bits = 8, value = 2 }";
const ID_2_BESIDE: &str = "source = { at = 5, bits = 8, value = 2 }";

/// Two boards with this framing, and more keys of the first.
fn boards(framing: &str, more: &str) -> String {
    let unit = |more| format!("[[readout.unit]]\nsource = {{ type = \"tcp-client\", connect = \"board:1\"{more} }}\n");
    format!(
        "[trigger]\ntype = \"data\"\n[readout.framing]\n{framing}\n{}{}[builder]\nunits = 1\n",
        unit(more),
        unit("")
    )
}

/// Two boards with this framing that send datagrams.
fn datagrams(framing: &str) -> String {
    boards(framing, "").replace("\"tcp-client\", connect = \"board:1\"", "\"udp\", listen = \"board:0\"")
}

/// Two boards with hits in frames with this clock, in slices of time, and more keys of the first.
fn sliced(clock: &str, hits: &str, more: &str) -> String {
    let framing = format!("size = \"64 B\"\n{clock}\nhits = {{ at = 8, size = \"8 B\", {hits} }}");
    boards(&framing, more).replace("[readout.framing]", "[readout]\nslice = \"1 ms\"\n[readout.framing]")
}

const CLOCK: &str = "clock = { at = 0, bits = 48, frequency = \"125 MHz\" }";
const LONG: &str = "time = [{ at = 0, bits = 40, tick = \"8 ns\" }]";
const TIME: &str = "time = [{ at = 0, bits = 16, tick = \"8 ns\" }]";

/// Two boards with clocks, matched by this trigger, and more keys of the first.
fn timed(trigger: &str, more: &str) -> String {
    let framing = "size = \"16 B\"\nclock = { at = 0, bits = 32, frequency = \"125 MHz\" }";
    boards(framing, more).replace("type = \"data\"", &format!("type = \"time\"\n{trigger}"))
}

cases! {
    time_without_a_window: timed("source = 0", "");
    time_without_a_rule: timed("window = \"1 us\"", "");
    time_with_two_rules: timed("window = \"1 us\"\nsource = 0\nsources = 2", "");
    time_with_an_unknown_source: timed("window = \"1 us\"\nsource = 2", "");
    time_with_too_many_sources: timed("window = \"1 us\"\nsources = 3", "");
    time_without_a_clock: timed("window = \"1 us\"\nsources = 2", ", framing = { size = \"8 B\" }");
    framing_with_a_magic_that_is_none: boards("magic = \"0xdeadbee\"\nsize = \"8 B\"", "");
    framing_without_an_end: boards("magic = \"ab\"", "");
    framing_with_two_ends: boards("size = \"8 B\"\nend = \"0a\"", "");
    framing_with_an_unknown_checksum: boards("size = \"8 B\"\nchecksum = { type = \"crc16\", at = -2 }", "");
    framing_with_a_field_that_is_too_wide: boards("size = \"20 B\"\nclock = { at = 2, bits = 60, shift = 8, frequency = \"1 GHz\" }", "");
    framing_with_a_field_beyond_the_end: boards("size = \"20 B\"\ncounter = { at = -2, bits = 32 }", "");
    framing_with_a_length_at_the_end: boards("length = { at = -4, bits = 32 }", "");
    framing_with_frames_too_short: boards("size = \"8 B\"\nclock = { at = 4, bits = 48, frequency = \"1 GHz\" }", "");
    framing_with_a_checksum_of_nothing: boards("size = \"8 B\"\nchecksum = { type = \"crc-32\", at = 0, from = 4, to = 4 }", "");
    framing_with_another_width_of_the_counter: boards("size = \"8 B\"\ncounter = { at = 0, bits = 12 }", ", counter_bits = 32");
    link_without_source_ids: sharing("type = \"serial\", device = \"/dev/ttyUSB0\"", ["order = \"little\""; 2], "");
    link_with_equal_source_ids: sharing(TCP_LINK, [ID_1; 2], "");
    link_with_different_framings: sharing(TCP_LINK, [ID_1, ID_2_BESIDE], "");
    link_between_processes: sharing(TCP_LINK, [ID_1, ID_2], "[transport]\ntype = \"shm\"\n");
    framing_with_a_header_of_datagrams: datagrams("size = \"8 B\"\nstream_header = \"56 B\"");
    framing_across_datagrams_of_a_stream: boards("size = \"8 B\"\nacross_datagrams = true", "");
    framing_across_datagrams_without_a_magic: datagrams("size = \"8 B\"\nacross_datagrams = true");
    framing_across_datagrams_without_a_checksum: datagrams("magic = \"ab\"\nsize = \"8 B\"\nacross_datagrams = true");
    framing_across_datagrams_without_an_end: datagrams("magic = \"ab\"\nacross_datagrams = true");
    framing_without_a_place: boards("size = \"8 B\"\ncounter = { bits = 12 }", "");
    control_without_an_address: boards("size = \"8 B\"", ", control = {}");
    control_with_two_addresses: boards("size = \"8 B\"", ", control = { connect = \"a:1\", listen = \"a:2\" }");
    control_that_waits_too_long: boards("size = \"8 B\"", ", control = { connect = \"a:1\", timeout = \"10 s\" }");
    control_with_a_list_as_setting: boards("size = \"8 B\"", ", control = { connect = \"a:1\", settings = { masks = [1, 2] } }");
    control_with_an_infinite_setting: boards("size = \"8 B\"", ", control = { connect = \"a:1\", settings = { limit = inf } }");
    control_with_too_many_settings: boards("size = \"8 B\"", &format!(", control = {{ connect = \"a:1\", settings = {{ {} }} }}", (0..65).map(|n| format!("k{n} = 0")).collect::<Vec<_>>().join(", ")));
    control_with_settings_too_long: boards("size = \"8 B\"", &format!(", control = {{ connect = \"a:1\", settings = {{ mask = \"{}\" }} }}", "x".repeat(4001)));
    control_of_a_file: "[trigger]\ntype = \"data\"\n[readout]\nunits = 1\nsource = { type = \"file\", file = \"a.raw\", control = { connect = \"a:1\" } }\n[builder]\nunits = 1\n";
    unknown_key: with("[builder]\nunits = 2\nslot = 64\n");
    unknown_key_of_another_section: with("[builder]\nunits = 2\nbusy = 64\n");
    unknown_section: with("[triger]\nevents = 1000\n");
    stage_without_slices: with("[first_stage]\nprotocol = { type = \"pull\" }\n");
    stage_with_what_is_implied: with("[first_stage]\nslices = 1\nbuilder = { units = 3 }\n");
    stage_with_a_mistake_of_its_own: with("[first_stage]\nslices = 1\nprotocol = { type = \"pull\", group_timeout = \"1 ms\" }\n");
    stages_with_filters_of_a_phase: with("[first_stage]\nslices = 1\n[protocol]\ntype = \"phased\"\nfirst = 1\n[[filter.step]]\ntype = \"complete\"\n");
    stage_in_phases: with("[first_stage]\nslices = 1\nprotocol = { type = \"phased\", first = 1 }\n");
    stages_with_uneven_slices: with("[first_stage]\nslices = 3\n");
    stages_of_numbered_sources: with("[readout]\nunits = 2\nsource = { type = \"cms-fed\", file = \"x.raw\" }\n[first_stage]\nslices = 1\n");
    stages_on_cores: with("[first_stage]\nslices = 1\n[run]\nplacement = \"auto\"\n");
    control_in_threads: with("[transport]\ntype = \"in-process\"\n[control]\ntransport = { type = \"tcp\" }\n");
    control_over_the_same_mpi: with("[transport]\ntype = \"mpi\"\n[control.transport]\ntype = \"mpi\"\n");
    clock_without_rate: with("[shaping]\ntype = \"barrel-shifter\"\nstep = \"clock\"\n");
    guard_without_clock: with("[shaping]\ntype = \"barrel-shifter\"\nguard = \"1 us\"\n");
    fault_that_ends_before_it_begins: with("[[network.fault]]\ntarget = \"switch0\"\nat = \"2 s\"\nuntil = \"1 s\"\naction = \"fail\"\n");
    rate_division_over_connections: with("[shaping]\ntype = \"rate-division\"\n[network.transport]\ntype = \"tcp\"\n");
    background_without_hosts: beside(&[("{ on = \"hosts\" }", "{ on = \"hosts\", first = 8, count = 4 }")], "[network]\npreset = \"myrinet-oct-sw8\"\ntopology = { type = \"crossbar\", ports = 8 }\n");
    background_without_receivers: beside(&[("receivers = { on = \"hosts\" }\n", "")], "");
    background_on_unknown_hosts: beside(&[("\"hosts\"", "\"server\"")], "");
    background_that_ends_before_it_begins: beside(&[], "until = \"1 ms\"\n");
    background_of_two_loads: beside(&[], "load = 0.5\nrate = \"1 kHz\"\n");
    background_of_swapped_sizes: beside(&[("type = \"fixed\", size = \"1 MB\"", "type = \"uniform\", min = \"2 B\", max = \"1 B\"")], "");
    background_of_another_number_of_destinations: beside(&[("random", "assigned")], "destinations = [0]\n");
    background_to_an_unknown_destination: beside(&[("random", "assigned")], "destinations = [0, 1]\n");
    background_to_its_own_host: beside(&[("{ on = \"hosts\" }", "{ on = \"hosts\", first = 3 }")], "");
    background_lower_than_nothing: beside(&[], "priority = \"lower\"\n");
    background_called_alike: beside(&[], "[[background]]\nname = \"storage\"\nsenders = { on = \"hosts\" }\nreceivers = { on = \"builders\" }\nmessage = { type = \"fixed\", size = \"1 B\" }\n");
    background_of_too_many_nodes: beside(&[("{ on = \"hosts\" }", "{ on = \"hosts\", count = 65_535 }")], "");
    background_of_stages: beside(&[], "[first_stage]\nslices = 1\n");
    background_of_traffic_that_ends_by_number: beside(&[], "[workload]\ntype = \"pairs\"\nmessages = 10\n");
    skew_by_link: with("[shaping]\ntype = \"barrel-shifter\"\nstep = \"link\"\nskew = \"1 us\"\n");
    skew_of_no_time: with("[shaping]\ntype = \"barrel-shifter\"\nskew = \"1 kB\"\n");
    skew_without_slots: with("[shaping]\ntype = \"grouping\"\nskew = \"1 us\"\n");
    jitter_without_a_mean: with("[shaping]\ntype = \"barrel-shifter\"\njitter = {}\n");
    hits_without_slices: with("[readout]\nunits = 2\nsource = { type = \"hits\", rate = \"1 kHz\" }\n");
    hits_in_frames_without_slices: boards(&format!("size = \"64 B\"\n{CLOCK}\nhits = {{ at = 8, size = \"8 B\", {TIME} }}"), "");
    slices_of_no_length: boards(&format!("size = \"64 B\"\n{CLOCK}"), "").replace("[readout.framing]", "[readout]\noverlap = \"1 us\"\n[readout.framing]");
    slices_without_a_clock: boards("size = \"64 B\"", "").replace("[readout.framing]", "[readout]\nslice = \"1 ms\"\n[readout.framing]");
    slices_of_front_ends_without_a_clock: with("[readout]\nunits = 1\nslice = \"1 ms\"\nsource = { type = \"tcp\", listen = \"127.0.0.1:1\" }\n");
    slices_of_live_sources_and_files: sliced(CLOCK, TIME, "").replace("[builder]", "[[readout.unit]]\nsource = { type = \"hit-file\", file = \"a.hits\" }\n[builder]");
    slices_by_time: sliced(CLOCK, TIME, "").replace("type = \"data\"", "type = \"time\"\nwindow = \"1 us\"\nsource = 0");
    slices_with_too_much_overlap: sliced(CLOCK, TIME, "").replace("[readout]", "[readout]\noverlap = \"2 ms\"");
    slices_with_a_narrow_clock: sliced("clock = { at = 0, bits = 24, frequency = \"125 MHz\" }", TIME, "");
    hits_without_the_clock_of_their_frame: sliced("", TIME, "");
    hits_without_a_time: sliced(CLOCK, "time = []", "");
    hits_with_a_time_without_a_unit: sliced(CLOCK, "time = [{ at = 0, bits = 16 }]", "");
    hits_with_a_time_of_two_units: sliced(CLOCK, "time = [{ at = 0, bits = 16, tick = \"8 ns\", frequency = \"125 MHz\" }]", "");
    hits_with_a_time_beyond_them: sliced(CLOCK, "time = [{ at = 7, bits = 16, tick = \"8 ns\" }]", "");
    hits_with_two_clocks: sliced(CLOCK, &format!("{TIME}, from = \"own\", marker = {{ at = 7, bits = 1, value = 1, {LONG} }}"), "");
    hits_with_chips_in_markers_only: sliced(CLOCK, &format!("{TIME}, marker = {{ at = 7, bits = 1, value = 1, {LONG}, chip = {{ at = 6, bits = 4 }} }}"), "");
    marks_that_always_agree: with("[readout]\nunits = 2\nmark_bits = 8\nmark_tolerance = 65\nsource = { type = \"fixed\", size = \"2 kB\" }\n");
    slices_without_hits: with("[readout]\nunits = 2\nslice = \"1 ms\"\nsource = { type = \"fixed\", size = \"2 kB\" }\n");
    unknown_type: with("[shaping]\ntype = \"barrel-roll\"\n");
    unknown_type_of_a_source: with("[readout]\nunits = 2\nsource = { type = \"lognormal\", mean = \"2 kB\" }\n");
    unknown_word: with("[protocol]\nassignment = \"round robin\"\n");
    packet_timeout_too_long: with("[shaping]\ntype = \"grouping\"\npacket = \"8 kB\"\ntimeout = \"1 s\"\n");
    tag_missing: with("[readout]\nunits = 2\nsource = { typ = \"fixed\", size = \"2 kB\" }\n");
    tag_not_a_text: with("[protocol]\ntype = 1\n");
    renamed_key: with("[builder]\nunits = 2\ntimeout = \"5 s\"\n");
    removed_key: with("[transport]\ntype = \"ethernet\"\nsocket = \"xdp\"\n");
    unit_missing: with("[builder]\nunits = 2\npatience = \"5\"\n");
    unit_missing_bare: with("[trigger]\nevents = 1000\ntype = \"rate\"\nrate = 50_000\n");
    unit_wrong: with("[builder]\nunits = 2\npatience = \"5 kHz\"\n");
    quantity_without_number: with("[builder]\nunits = 2\npatience = \"soon\"\n");
    zero_units: with("[builder]\nunits = 0\n");
    negative_rate: with("[trigger]\nevents = 1000\ntype = \"rate\"\nrate = \"-50 kHz\"\n");
    zero_rate: with("[trigger]\nevents = 1000\ntype = \"rate\"\nrate = \"0 Hz\"\n");
    zero_events: with("[trigger]\nevents = 0\n");
    busy_below_free: with("[readout]\nunits = 2\nbusy = 70\nfree = 90\nsource = { type = \"fixed\", size = \"2 kB\" }\n");
    busy_is_free: with("[readout]\nunits = 2\nbusy = 70\nfree = 70\nsource = { type = \"fixed\", size = \"2 kB\" }\n");
    busy_below_default_free: with("[readout]\nunits = 2\nbusy = 60\nsource = { type = \"fixed\", size = \"2 kB\" }\n");
    group_below_builders: with("[builder]\nunits = 20\n") + "[protocol]\ngroup = 16\n";
    phased_without_first: with("[protocol]\ntype = \"phased\"\naccept = 0.2\n");
    phased_filter_of_bundles: with("[protocol]\ntype = \"phased\"\nfirst = 1\n")
        + "[trigger]\nblock = 4\nevents = 8\n[[filter.step]]\ntype = \"complete\"\n";
    region_without_least: with("[protocol]\ntype = \"phased\"\nmost = 1\naccept = 0.2\n");
    region_and_first: with("[protocol]\ntype = \"phased\"\nfirst = 1\nleast = 1\nmost = 1\naccept = 0.2\n");
    region_of_less_than_least: with("[protocol]\ntype = \"phased\"\nleast = 2\nmost = 1\naccept = 0.2\n");
    region_of_all: with("[protocol]\ntype = \"phased\"\nleast = 1\nmost = 2\naccept = 0.2\n");
    region_of_more_than_all: with("[protocol]\ntype = \"phased\"\nleast = 1\nmost = 3\nrest = false\n");
    region_of_bundles: with("[trigger]\nblock = 2\nevents = 10\n[protocol]\ntype = \"phased\"\nleast = 1\nmost = 1\nrest = false\n");
    phased_without_accept: with("[protocol]\ntype = \"phased\"\nfirst = 1\n");
    filter_word_too_wide: with("[[filter.step]]\ntype = \"word\"\nsource = 1\nbits = \"8\"\nvalue = \"0x100\"\n");
    filter_source_that_is_not_there: with("[[filter.step]]\ntype = \"size\"\nsource = 2\nat_least = \"1 kB\"\n");
    filter_source_of_the_second_phase: with("[protocol]\ntype = \"phased\"\nfirst = 1\n")
        + "[[filter.step]]\ntype = \"size\"\nsource = 1\nat_least = \"1 kB\"\n";
    filter_size_without_bound: with("[[filter.step]]\ntype = \"size\"\n");
    filter_size_swapped: with("[[filter.step]]\ntype = \"size\"\nat_least = \"2 kB\"\nat_most = \"1 kB\"\n");
    filter_unknown: with("[[filter.step]]\ntype = \"sise\"\n");
    filter_stream_named_badly: with("[[filter.step]]\ntype = \"complete\"\nstream = \"quarantine\"\n");
    filter_program_and_library: with("[filter]\nprogram = [\"./one\"]\nlibrary = \"./two.so\"\n");
    filter_copy_without_stream: with("[[filter.step]]\ntype = \"complete\"\ncopy = true\n");
    filter_copy_into_physics: with("[[filter.step]]\ntype = \"complete\"\nstream = \"physics\"\ncopy = true\n");
    filter_units_without_program: with("[filter]\nunits = 4\n");
    phased_first_is_all: with("[protocol]\ntype = \"phased\"\nfirst = 2\naccept = 0.2\n");
    phased_first_is_none: with("[protocol]\ntype = \"phased\"\nfirst = 0\naccept = 0.2\n");
    phased_of_one_unit: with("[readout]\nunits = 1\nsource = { type = \"fixed\", size = \"2 kB\" }\n")
        + "[protocol]\ntype = \"phased\"\nfirst = 1\naccept = 0.2\n";
    phased_accept_in_percent: with("[protocol]\ntype = \"phased\"\nfirst = 1\naccept = 20\n");
    accept_under_pull: with("[protocol]\ntype = \"pull\"\naccept = 0.2\n");
    group_above_slots: with("[builder]\nunits = 2\nslots = 8\n[protocol]\ntype = \"pull\"\ngroup = 16\n");
    request_window_under_push: with("[protocol]\ntype = \"push\"\nwindow = 4\n");
    request_window_of_nothing: with("[protocol]\ntype = \"pull\"\nwindow = 0\n");
    group_timeout_under_pull: with("[protocol]\ntype = \"pull\"\ngroup_timeout = \"1 ms\"\n");
    rate_and_free_running: with("[trigger]\ntype = \"free-running\"\nrate = \"50 kHz\"\nevents = 1000\n");
    rate_without_type: with("[trigger]\nrate = \"50 kHz\"\nevents = 1000\n");
    rate_missing: with("[trigger]\ntype = \"rate\"\nevents = 1000\n");
    no_end: with("[trigger]\ntype = \"free-running\"\n");
    no_end_and_no_trigger: "[readout]\nunits = 1\nsource = { type = \"fixed\", size = \"1 kB\" }\n[builder]\nunits = 1\n";
    empty_file: "";
    no_units: with("[readout]\nsource = { type = \"fixed\", size = \"1 kB\" }\n");
    number_out_of_range: with("[readout]\nunits = 1\nsource = { type = \"size-model\", file = \"a.csv\", event_size_mean = nan }\n");
    number_too_large: with("[run]\nseed = 99999999999999999999\n");
    quantity_too_large: with("[readout]\nunits = 1\nmax_fragment = \"99999999 TB\"\nsource = { type = \"fixed\", size = \"1 kB\" }\n");
    wrong_type_date: "name = 2026-01-01\n".to_owned() + &with("[builder]\nunits = 2\n");
    sweep_not_a_table: "sweep = 5\n".to_owned() + &with("[builder]\nunits = 2\n");
    transport_unknown: with("[transport]\ntype = \"infiniband\"\n");
    fault_on_no_node: with("[[fault]]\nnode = \"ru2\"\naction = \"kill\"\nat = \"1 s\"\n");
    fault_on_no_name: with("[[fault]]\nnode = \"readout 1\"\naction = \"kill\"\nat = \"1 s\"\n");
    fault_on_a_builder: with("[[fault]]\nnode = \"bu0\"\naction = \"corrupt\"\none_in = 100\n");
    slow_disk_of_a_readout_unit: with("[[fault]]\nnode = \"ru0\"\naction = \"slow-disk\"\nrate = \"5 MB/s\"\n");
    slow_disk_without_storage: with(
        "[[fault]]\nnode = \"bu0\"\naction = \"slow-disk\"\nrate = \"5 MB/s\"\n[storage]\nkeep = \"none\"\n"
    );
    fault_one_in_zero: with("[[fault]]\nnode = \"ru0\"\naction = \"corrupt\"\none_in = 0\n");
    fault_key_of_another_action: with("[[fault]]\nnode = \"ru0\"\naction = \"kill\"\none_in = 100\n");
    fault_with_single_brackets: with("[fault]\nnode = \"ru0\"\naction = \"kill\"\nat = \"1 s\"\n");
    keep_one_in_zero: with("[storage]\nkeep = { one_in = 0 }\n");
    keep_unknown: with("[storage]\nkeep = \"some\"\n");
    duplicate_key: with("[builder]\nunits = 2\nunits = 3\n");
    syntax: with("[builder]\nunits = 2\npatience = 1 s\n");
    syntax_bracket: with("[builder\nunits = 2\n");
    wrong_type_text: with("[builder]\nunits = \"2\"\n");
    wrong_type_number: with("[storage]\ndirectory = 5\n");
    wrong_type_list: with("[builder]\nunits = [2]\n");
    wrong_type_section: "readout = 5\n[builder]\nunits = 1\n";
    counter_bits_out_of_range:
        with("[readout]\nunits = 1\nsource = { type = \"tcp\", listen = \"127.0.0.1:9000\", counter_bits = 65 }\n");
    listen_without_port: with("[readout]\nunits = 1\nsource = { type = \"tcp\", listen = \"127.0.0.1\" }\n");
    listen_twice: with("[readout]\nunits = 2\nsource = { type = \"udp\", listen = \"127.0.0.1:9000\" }\n");
    zero_mean: with("[readout]\nunits = 2\nsource = { type = \"log-normal\", mean = \"0 B\", rms = \"1 kB\" }\n");
    min_above_max: with("[readout]\nunits = 2\nsource = { type = \"uniform\", min = \"2 kB\", max = \"1 kB\" }\n");
    source_above_max_fragment:
        with("[readout]\nunits = 2\nmax_fragment = \"1 kB\"\nsource = { type = \"fixed\", size = \"2 kB\" }\n");
    no_source: with("[readout]\nunits = 2\n");
    more_tables_than_units: with(
        "[readout]\nunits = 1\n[[readout.unit]]\nsource = { type = \"fixed\", size = \"2 kB\" }\n\
         [[readout.unit]]\nsource = { type = \"fixed\", size = \"2 kB\" }\n",
    );
    too_many_builders: with("[builder]\nunits = 60_001\n");
    too_many_units_together: with("[builder]\nunits = 59_999\nslots = 1\n");
    too_many_slots: with("[builder]\nunits = 50_000\nslots = 60_000\n");
    buffer_below_slots:
        with("[readout]\nunits = 2\nbuffer_events = 15\nsource = { type = \"fixed\", size = \"2 kB\" }\n");
    buffer_below_fragment:
        with("[readout]\nunits = 2\nbuffer_bytes = \"1 kB\"\nsource = { type = \"fixed\", size = \"1 B\" }\n");
    data_trigger_without_data: with("[trigger]\ntype = \"data\"\n");
    rate_with_recorded_data: with("[readout]\nunits = 1\nsource = { type = \"cms-fed\", file = \"a.raw\" }\n")
        .replace("events = 1000", "type = \"free-running\"\nduration = \"1 s\"");
    rate_with_live_data: with("[readout]\nunits = 1\nsource = { type = \"udp\", listen = \"127.0.0.1:0\" }\n")
        .replace("[trigger]", "[trigger]\ntype = \"free-running\"");
    bad_variable: with("[data]\ndirectory = \"${EVB DATA}/x\"\n");
    bad_name: "name = \"a/b\"\n".to_owned() + &with("[builder]\nunits = 2\n");
    sweep_empty: with("[sweep]\n\"builder.units\" = []\n");
    sweep_not_a_list: with("[sweep]\n\"builder.units\" = 4\n");
    sweep_unknown: with("[sweep]\n\"builder.unit\" = [2, 4]\n");
    sweep_of_the_sweep: with("[sweep]\n\"sweep\" = [2, 4]\n");
    sweep_too_large: with("[sweep]\n\"run.seed\" = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n\"builder.units\" = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n\"builder.slots\" = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]\n");
    sweep_same_key_twice: with("[sweep]\n\"shaping\" = [{ type = \"none\" }]\n\"shaping.type\" = [\"none\"]\n");
    sweep_bad_values: with("[sweep]\n\"readout.source.size\" = [\"1 kB\", \"2\", \"3 Hz\"]\n");
    sweep_past_the_list: with("[[fault]]\nnode = \"ru0\"\naction = \"lose\"\none_in = 9\n[sweep]\n\"fault.1.one_in\" = [9]\n");
    set_unknown: with("[builder]\nunits = 2\n"), set ["builder.unit=4"];
    set_unknown_type: with("[builder]\nunits = 2\n"), set ["run.seed=4", "shaping.type=bucket-brigade"];
    set_out_of_range: with("[builder]\nunits = 2\n"), set ["builder.units = 0"];
    set_without_value: with("[builder]\nunits = 2\n"), set ["builder.units="];
    set_without_equals: with("[builder]\nunits = 2\n"), set ["builder.units"];
    set_past_the_list: with("[[fault]]\nnode = \"ru0\"\naction = \"lose\"\none_in = 9\n"), set ["fault.3.one_in=4"];
    set_list_without_number: with("[[fault]]\nnode = \"ru0\"\naction = \"lose\"\none_in = 9\n"), set ["fault.one_in=4"];
    preset_unknown: with("[network]\npreset = \"myrinet-oct-sw\"\n");
    preset_not_a_text: with("[network]\npreset = 8\n");
    network_not_a_table: "network = \"ideal\"\n".to_owned() + &with("[builder]\nunits = 2\n");
    network_key_unknown: with("[network]\nlinks = { rate = \"1 Gbit/s\" }\n");
    topology_unknown: with("[network]\ntopology = { type = \"torrus\", width = 4 }\n");
    topology_of_another_type: with("[network]\ntopology = { type = \"torus\", width = 4 }\n");
    topology_not_a_table: with("[network]\ntopology = \"torus\"\n");
    topology_key_of_another_type: with("[network]\ntopology = { type = \"fat-tree\", radix = 4, spines = 2 }\n");
    control_of_tcp_as_a_table: with("[network]\ntransport = { type = \"tcp\" }\n"), set ["network.transport.control.type=\"cubic\""];
    planes_of_other_ports: with("[network]\nplanes = { count = 2 }\nnic.ports = 3\n");
    planes_of_messages_over_connections: with("[network]\nplanes = { count = 2, choice = \"message\" }\ntransport = { type = \"tcp\" }\n");
    planes_with_joined_rails: with("[network]\nplanes = { count = 2 }\nrouting = { type = \"dispersive\", patience = \"5 us\", rails = \"joined\" }\n");
    planes_of_slots: with("[network]\nplanes = { count = 2, choice = \"pair\" }\n[shaping]\ntype = \"barrel-shifter\"\n");
    planes_with_mappers: with("[network]\nplanes = { count = 2 }\n[network.mapper]\n");
    fault_of_an_unknown_plane: with("[network]\nplanes = { count = 2 }\n[[network.fault]]\ntarget = \"plane2\"\nat = \"1 ms\"\naction = \"fail\"\n");
    memory_of_another_word: with("[network]\nswitch.memory = \"shared\"\n");
    bridges_of_worms: with("[network]\nrouting = { type = \"learning\" }\nflow = { type = \"wormhole\", slack = \"1 kB\", reaction = \"1 ns\" }\n");
    mapper_without_routes_of_hosts: with("[network]\nrouting = { type = \"adaptive\" }\nmapper = {}\n");
    mapper_over_one_way_links: with("[network]\ntopology = { type = \"butterfly\", radix = 4, stages = 2 }\nmapper = {}\n");
    detours_without_groups: with("[network]\nrouting = { type = \"ugal\" }\n");
    detours_that_can_wait: with("[network]\ntopology = { type = \"dragonfly-plus\", groups = 5, leaves = 3, spines = 2, terminals = 2, global = 2 }\nrouting = { type = \"valiant\" }\n");
    lanes_without_priorities: with("[network]\nswitch.lanes = { low = [{ lane = 0, weight = 1 }] }\n");
    lane_without_weight: with("[network]\nflow = { virtual_channels = 2, channel = \"priority\" }\nswitch.lanes = { high = [{ lane = 1, weight = 0 }], low = [{ lane = 0, weight = 1 }] }\n");
    lane_beyond_the_channels: with("[network]\nflow = { virtual_channels = 2, channel = \"priority\" }\nswitch.lanes = { low = [{ lane = 2, weight = 1 }] }\n");
    flowlets_without_a_gap: with("[network]\nrouting = { type = \"flowlets\", gap = \"0 s\" }\n");
    network_impossible: with("[network]\ntopology = { type = \"fat-tree\", radix = 5 }\n");
    host_link_beyond_the_network: with("[network]\ntopology = { ports = 8 }\nhost_link = [{ first = 6, count = 3, delay = \"1 us\" }]\n");
    host_link_without_hosts: with("[[network.host_link]]\nrate = \"25 Gbit/s\"\n");
    hyperx_that_can_wait: with("[network]\ntopology = { type = \"hyperx\", sizes = [4, 4] }\n");
    hyperx_with_links_of_another: with("[network]\ntopology = { type = \"hyperx\", sizes = [4, 4], links = [1] }\n");
    headroom_without_pauses: with("[network]\nflow = { type = \"store-and-forward\", queue = \"1 MB\", full = \"drop\", reaction = \"1 us\", headroom = \"20 kB\" }\n");
    cut_through_of_worms: with("[network]\nflow = { type = \"wormhole\", slack = \"1 kB\", reaction = \"0 s\" }\nswitch.cut_through = [\"switch0\"]\n");
    cut_through_of_an_unknown_switch: with("[network.switch]\ncut_through = [\"spine*\"]\n");
    watchdog_without_pauses: with("[network]\nflow = { type = \"store-and-forward\", queue = \"1 MB\", full = \"drop\", reaction = \"1 us\", watchdog = { } }\n");
    pause_by_a_switch: with("[[network.fault]]\ntarget = \"switch0\"\nat = \"1 s\"\naction = \"pause\"\n");
    pause_without_pauses: with("[[network.fault]]\ntarget = \"switch0>h0\"\nat = \"1 s\"\naction = \"pause\"\n");
    fat_tree_of_nothing: with("[network]\ntopology = { type = \"fat-tree\" }\n");
    fat_tree_described_twice: with("[network]\ntopology = { type = \"fat-tree\", radix = 4, levels = [{ down = 4, up = 2 }, { down = 2 }] }\n");
    fat_tree_without_a_top: with("[network]\ntopology = { type = \"fat-tree\", levels = [{ down = 4, up = 2 }, { down = 2, up = 2 }] }\n");
    fat_tree_of_too_many_levels: with("[network]\ntopology = { type = \"fat-tree\", levels = [{ down = 2, up = 1 }, { down = 2, up = 1 }, { down = 2, up = 1 }, { down = 2, up = 1 }, { down = 2 }] }\n");
    bandwidth_without_unit: with("[network]\nlink = { rate = 100 }\n");
    bandwidth_wrong_unit: with("[network]\nlink = { rate = \"100 Gb\" }\n");
    link_with_three_ends: with("[network.topology]\ntype = \"explicit\"\nswitches = [\"a\"]\nlink = [{ ends = [\"a\", \"h0\", \"h1\"] }]\n");
    link_with_a_number_as_end: with("[network.topology]\ntype = \"explicit\"\nswitches = [\"a\"]\nlink = [{ ends = [\"a\", 0] }]\n");
    link_to_nowhere: with("[network.topology]\ntype = \"explicit\"\nswitches = [\"a\"]\nlink = [{ ends = [\"a\", \"h0\"] }, { ends = [\"a\", \"b\"] }]\n");
    switches_not_a_list: with("[network.topology]\ntype = \"explicit\"\nswitches = \"a\"\nlink = []\n");
    switch_without_a_name: with("[network.topology]\ntype = \"explicit\"\nswitches = [\"\"]\nlink = []\n");
    fabric_without_a_file: with("[network]\ntopology = { type = \"infiniband\" }\n");
    fabric_of_a_missing_file: with("[network]\ntopology = { type = \"infiniband\", file = \"none.topo\" }\n");
    fabric_in_another_format: with("[network]\ntopology = { type = \"infiniband\", file = \"Cargo.toml\" }\n");
    fabric_without_a_host_of_that_name: with(&fabric(", hosts = [\"daq99 mlx5_0\"]", "type = \"fixed\""));
    fabric_with_fewer_ports: with(&(fabric("", "type = \"fixed\"") + "ports = 2\n"));
    fabric_with_tables_in_another_format: with(&fabric("", "type = \"table\", file = \"fabric.topo\""));
    tables_of_no_fabric: with("[network]\nrouting = { type = \"table\", file = \"none.lfts\" }\n");
    too_few_hosts: with("[network]\ntopology = { ports = 4 }\n");
    more_ports_than_there_can_be: with("[builder]\nunits = 20_000\nslots = 1\n") + "[network]\nnic = { ports = 4 }\n";
    no_host_for_one_unit: with("[network]\ntopology = { ports = 4 }\nplacement = { manager = 4, readout = 0 }\n");
    manager_without_a_host: with("[network]\ncontrol = { type = \"separate\", delay = \"1 us\", rate = \"1 Gbit/s\" }\nplacement = { manager = 0 }\n");
    manager_of_traffic: with("[workload]\ntype = \"stream\"\nmessages = 1\n[network.placement]\nmanager = 0\n");
    network_fault_on_no_part: with("[[network.fault]]\ntarget = \"leaf0\"\nat = \"1 s\"\naction = \"fail\"\n");
    network_fault_faster: with("[[network.fault]]\ntarget = \"switch0\"\nat = \"1 s\"\naction = \"slow\"\nfactor = 0.5\n");
    warmup_too_long: with("[run]\nwarmup = \"1 s\"\n").replace("events = 1000", "duration = \"1 s\"");
    workload_unknown: with("[workload]\ntype = \"rotate\"\n");
    workload_key_of_traffic: with("[workload]\nload = 0.5\n");
    traffic_to_nobody: with("[builder]\nunits = 1\n") + "[workload]\ntype = \"random\"\nmessages = 1\n[network]\nplacement = { builder = 1 }\n";
    traffic_without_end: with("[workload]\ntype = \"random\"\n");
    traffic_with_load_and_rate: with("[workload]\ntype = \"random\"\nmessages = 1\nload = 0.5\nrate = \"1 kHz\"\n");
    traffic_without_acknowledgements: with("[workload]\ntype = \"random\"\nmessages = 1\nawaits = \"acknowledgement\"\n");
    slots_without_load: with("[workload]\ntype = \"random\"\nmessages = 1\narrivals = \"slotted\"\n");
    slots_of_a_rate: with("[workload]\ntype = \"random\"\nmessages = 1\nrate = \"1 kHz\"\narrivals = \"slotted\"\n");
    slots_more_than_full: with("[workload]\ntype = \"random\"\nmessages = 1\nload = 1.5\narrivals = \"slotted\"\n");
    slots_of_gathering: with("[workload]\ntype = \"gather\"\nmessages = 1\nleast = 1\nmost = 2\nload = 0.5\narrivals = \"slotted\"\n");
    traffic_without_load: with("[workload]\ntype = \"random\"\nmessages = 1\nload = 0\n");
    traffic_of_live_sources: with("[readout]\nunits = 1\nsource = { type = \"udp\", listen = \"127.0.0.1:0\" }\n") + "[workload]\ntype = \"random\"\nmessages = 1\n";
    ping_pong_alone: with("[builder]\nunits = 5\n") + "[workload]\ntype = \"ping-pong\"\nmessages = 1\n";
    outfarming_of_two: with("[workload]\ntype = \"outfarming\"\nmessages = 1\n");
    funnel_into_two: with("[workload]\ntype = \"funnel\"\nmessages = 1\n");
    ping_pong_with_load: with("[workload]\ntype = \"ping-pong\"\nmessages = 1\nload = 0.5\n");
    destinations_missing: with("[workload]\ntype = \"assigned\"\nmessages = 1\n");
    destinations_too_few: with("[workload]\ntype = \"assigned\"\nmessages = 1\ndestinations = [0]\n");
    destinations_unknown: with("[workload]\ntype = \"assigned\"\nmessages = 1\ndestinations = [0, 2]\n");
    destinations_negative: with("[workload]\ntype = \"assigned\"\nmessages = 1\ndestinations = [0, -1]\n");
    destinations_not_numbers: with("[workload]\ntype = \"assigned\"\nmessages = 1\ndestinations = [0, \"1\"]\n");
    gather_least_above_most: with("[workload]\ntype = \"gather\"\nmessages = 1\nleast = 2\nmost = 1\n");
    gather_more_than_senders: with("[workload]\ntype = \"gather\"\nmessages = 1\nleast = 1\nmost = 3\n");
    gather_more_than_receivers: with("[workload]\ntype = \"gather\"\nmessages = 1\nleast = 1\nmost = 2\nprocessors = 3\n");
    gather_ask_not_a_flag: with("[workload]\ntype = \"gather\"\nmessages = 1\nleast = 1\nmost = 2\nask = \"yes\"\n");
    monitor_without_range: with("[[monitor]]\nfield = \"size\"\n");
    monitor_with_channels_and_bins: with("[[monitor]]\nfield = \"size\"\nchannels = 4\nbins = 5\n");
    monitor_range_reversed: with("[[monitor]]\nfield = \"size\"\nrange = [9, 1]\n");
    monitor_range_of_texts: with("[[monitor]]\nfield = \"size\"\nrange = [0, \"1 kB\"]\n");
    monitor_without_decoder: with("[[monitor]]\nfield = \"charge\"\nrange = [0, 9]\n");
    monitor_field_unknown: with(&monitored("charg", "{ name = \"charge\", type = \"u2\" }", "range = [0, 9]"));
    monitor_field_twice: with(&monitored("a", "{ name = \"a\", type = \"u2\" }", "range = [0, 9]").replace("items", "header = [{ name = \"a\", type = \"u1\" }], items"));
    monitor_field_of_bytes: with(&monitored("magic", "{ name = \"magic\", type = \"S4\" }", "range = [0, 9]"));
    monitor_type_unknown: with(&monitored("charge", "{ name = \"charge\", type = \"u3\" }", "range = [0, 9]"));
    monitor_items_empty: with(&monitored("hits", "", "range = [0, 9]"));
    monitor_channels_with_fraction: with(&monitored("time", "{ name = \"time\", type = \"f4\" }", "channels = 9"));
    monitor_bits_too_high: with(&monitored("charge", "{ name = \"charge\", type = \"u2\" }", "range = [0, 9]\nbits = [8, 16]"));
    monitor_bits_of_signed: with(&monitored("charge", "{ name = \"charge\", type = \"i2\" }", "range = [0, 9]\nbits = [8, 9]"));
    monitor_bits_of_size: with("[[monitor]]\nfield = \"size\"\nrange = [0, 9]\nbits = [1, 2]\n");
    monitor_source_unknown: with("[[monitor]]\nfield = \"size\"\nrange = [0, 9]\nsources = [\"ru2\"]\n");
    monitor_source_masked: with("[[monitor]]\nfield = \"size\"\nrange = [0, 9]\nsources = [\"ru1\"]\n"), set ["readout.masked=[1]"];
    monitor_same_name: with("[[monitor]]\nfield = \"size\"\nrange = [0, 9]\n[[monitor]]\nfield = \"size\"\nrange = [0, 99]\n");
    monitor_too_many_bins: with("[[monitor]]\nfield = \"size\"\nbins = 4096\nrange = [0, 9]\n"), set ["readout.units=5"];
    monitor_of_traffic: with("[workload]\ntype = \"random\"\nmessages = 1\n") + "[[monitor]]\nfield = \"size\"\nrange = [0, 9]\n";
    several: with("[builder]\nunits = 0\nslotts = 4\npatience = 7\n"), set ["run.seed=-1"];
}

/// Loads a file of these bytes and renders the error, without the folder's name.
fn load(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("try.toml");
    std::fs::File::create(&path).and_then(|mut file| file.write_all(bytes)).expect("writing a temporary file");
    let diagnostics = Experiment::load(&path, &[]).expect_err("a bad file");
    let problems = diagnostics.problems().map(|problem| format!("{}\nhelp: {}\n", problem.message, problem.hint));
    problems.collect::<String>().replace(&folder.path().to_string_lossy().into_owned(), "FOLDER")
}

#[test]
fn unreadable_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let missing = Experiment::load(folder.path().join("none.toml"), &[]).expect_err("no such file");
    assert!(render(&missing).contains("cannot read "), "{}", render(&missing));
    let is_folder = Experiment::load(folder.path(), &[]).expect_err("a folder");
    assert!(is_folder.to_string().starts_with("cannot read "), "{is_folder}");

    let text = load(b"name = 'a'\n# \xff\n");
    assert!(text.starts_with("FOLDER/try.toml is not UTF-8 text: see byte 13, on line 2\nhelp: "), "{text}");
    let text = load(&vec![b'#'; (1 << 20) + 1]);
    assert!(text.starts_with("the experiment file is larger than 1 MiB\nhelp: "), "{text}");
}

#[test]
fn many_problems_are_counted() {
    let lines: String = (0..50).map(|n| format!("key{n} = {n}\n")).collect();
    let diagnostics = Experiment::parse(&lines, "try.toml", &[]).expect_err("unknown keys");
    assert_eq!(diagnostics.problems().count(), 20);
    assert_eq!(diagnostics.to_string(), "52 problems in try.toml");
}

#[test]
fn too_many_and_too_long_overrides() {
    let text = with("[builder]\nunits = 2\n");
    let many = vec!["run.seed=1".to_owned(); 1001];
    let message = Experiment::parse(&text, "try.toml", &many).expect_err("too many").to_string();
    assert_eq!(message, "1001 times --set is more than 1000");
    let long = [format!("description={}", "x".repeat(1 << 16))];
    let message = Experiment::parse(&text, "try.toml", &long).expect_err("too long").to_string();
    assert!(message.ends_with("is longer than 64 KiB"), "{message}");
}

#[test]
fn a_problem_has_its_line_and_column() {
    let text = "name = \"µ\" # µ\n[triger]\nevents = 1\n";
    let wrong = |changes: &[String]| Experiment::parse(text, "some.toml", changes).unwrap_err();
    let (of_file, of_change) = (wrong(&[]), wrong(&["run.sed=1".into()]));
    let first = |diagnostics: &Diagnostics| {
        let place = diagnostics.problems().find_map(|problem| problem.place).unwrap();
        (place.file.to_owned(), place.line, place.column)
    };
    assert_eq!(first(&of_file), ("some.toml".into(), 2, 2));
    assert_eq!(first(&of_change), ("--set".into(), 1, 1));
    assert!(of_file.problems().any(|problem| problem.place.is_none()), "what is missing has no place");
}
