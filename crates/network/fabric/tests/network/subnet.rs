//! Fabrics from the files of a subnet manager.

use crate::support::*;
use evb_core::{Bandwidth, Span};
use evb_fabric::*;
use std::fmt::Write;

const D_MOD_K: Routing = Routing::Fixed { spread: Spread::Destination };

/// Two leaves with two hosts each, and two spines.
fn leaves_and_spines() -> Network {
    routed(clos(2, 2, 2, 1), D_MOD_K)
}

/// The id, description and LID of an end.
fn node(network: &Network, end: LinkEnd) -> (String, String, usize) {
    match end {
        LinkEnd::Switch(switch) => {
            let place = usize::from(switch.0);
            (format!("S-{:016x}", 0x100 + place), network.switch(switch).name.clone(), 1 + place)
        }
        LinkEnd::Endpoint(host) => {
            let place = usize::from(host.0);
            (format!("H-{:016x}", 0x200 + place), format!("node{place} mlx5_0"), 1 + network.switches.len() + place)
        }
    }
}

/// The number of the port at which a link begins: places at switches, counted from 1.
fn port(network: &Network, link: LinkId) -> usize {
    match network.link(link).from {
        LinkEnd::Switch(from) => {
            1 + network.switch(from).outputs.iter().position(|&output| output == link).expect("an output")
        }
        LinkEnd::Endpoint(_) => 1,
    }
}

/// What `ibnetdiscover` would write.
fn topology_file(network: &Network) -> String {
    let mut text = "#\n# Topology file: generated on Mon Mar  2 10:21:07 2026\n#\n".to_owned();
    let switches = (0..network.switches.len()).map(|place| LinkEnd::Switch(SwitchId(place as u16)));
    let hosts = (0..network.endpoints.len()).map(|place| LinkEnd::Endpoint(EndpointId(place as u16)));
    for end in switches.chain(hosts) {
        let (id, name, lid) = node(network, end);
        let (kind, rest, links) = match end {
            LinkEnd::Switch(switch) => {
                ("Switch\t40", format!(" base port 0 lid {lid} lmc 0"), network.switch(switch).outputs.clone())
            }
            LinkEnd::Endpoint(host) => ("Ca\t1", String::new(), vec![network.endpoint(host).up]),
        };
        writeln!(text, "\nvendid=0x2c9\ndevid=0xd2f0\n{kind} \"{id}\"\t\t# \"{name}\"{rest}").expect("a text");
        for link in links {
            let back = network.link(link).reverse.expect("a cable");
            let (peer, peer_name, peer_lid) = node(network, network.link(link).to);
            let own = if let LinkEnd::Endpoint(_) = end { format!("lid {lid} lmc 0 ") } else { String::new() };
            let ports = [link, back].map(|link| port(network, link));
            writeln!(text, "[{}]\t\"{peer}\"[{}]\t\t# {own}\"{peer_name}\" lid {peer_lid} 4xHDR", ports[0], ports[1])
                .expect("a text");
        }
    }
    text
}

/// What `dump_fts` would write if the tables were those of a network with fixed routes by destination.
fn table_file(network: &Network) -> String {
    let (routes, mut text) = (all_routes(network), String::new());
    for switch in (0..network.switches.len()).map(|place| SwitchId(place as u16)) {
        let (id, name, lid) = node(network, LinkEnd::Switch(switch));
        let guid = id.trim_start_matches("S-");
        writeln!(text, "Unicast lids [0x0-0x10] of switch Lid {lid} guid 0x{guid} ({name}):").expect("a text");
        text.push_str("  Lid  Out   Destination\n       Port     Info \n");
        writeln!(text, "0x{lid:04x} 000 : (Switch portguid 0x{guid}: '{name}')").expect("a text");
        for to in (0..network.endpoints.len()).map(|place| EndpointId(place as u16)) {
            let (id, name, lid) = node(network, LinkEnd::Endpoint(to));
            let ways = routes.candidates(switch, to);
            let way = Spread::Destination.index(network, 0, to, to, 0, ways[0]) as usize % ways.len();
            let (port, guid) = (port(network, ways[way]), id.trim_start_matches("H-"));
            writeln!(text, "0x{lid:04x} {port:03} : (Channel Adapter portguid 0x{guid}: '{name}')").expect("a text");
        }
        text.push_str("5 valid lids dumped \n");
    }
    text
}

fn files<'t>(topology: &'t str, tables: Option<&'t str>) -> SubnetFiles<'t> {
    SubnetFiles { topology, tables, hosts: &[], ports: 1 }
}

fn read(topology: &str, tables: &str) -> Network {
    routed(files(topology, Some(tables)).read().expect("good files"), Routing::Table)
}

#[test]
fn files_of_a_fat_tree_make_the_same_network_with_the_same_routes() {
    for built in
        [leaves_and_spines(), routed(clos(3, 4, 2, 2), D_MOD_K), routed(Topology::FatTree { radix: 4 }, D_MOD_K)]
    {
        let read = read(&topology_file(&built), &table_file(&built));
        let graph = |network: &Network| {
            let links = network.switches.iter().flat_map(|switch| switch.outputs.iter().chain(&switch.inputs));
            let of_switches: Vec<_> = links.map(|&link| network.link(link).name.clone()).collect();
            (of_switches, network.endpoints.iter().map(|end| network.link(end.up).name.clone()).collect::<Vec<_>>())
        };
        assert_eq!(graph(&read), graph(&built));
        assert!(read.links.iter().all(|link| link.rate == Bandwidth(200_000_000_000)));
        let (tables, routes) = (all_routes(&read), all_routes(&built));
        tables.check(&read).expect("all routes");
        for switch in (0..built.switches.len()).map(|place| SwitchId(place as u16)) {
            for to in (0..built.endpoints.len()).map(|place| EndpointId(place as u16)) {
                let ways = routes.candidates(switch, to);
                let way = Spread::Destination.index(&built, 0, to, to, 0, ways[0]) as usize % ways.len();
                // Tables say nothing of switches that no route leads over.
                match tables.candidates(switch, to) {
                    [] => assert!(!built.switch(switch).name.starts_with("leaf"), "{switch:?} {to:?}"),
                    found => assert_eq!(names(&read, found), names(&built, &ways[way..=way])),
                }
            }
        }
    }
}

#[test]
fn other_routings_need_no_tables() {
    let topology = files(&topology_file(&leaves_and_spines()), None).read().expect("a good file");
    assert_eq!(routed(topology.clone(), D_MOD_K).hosts(), 4);
    let error = Network::build(&NetworkConfig { routing: Routing::Table, ..config(topology) }).expect_err("no tables");
    assert_eq!(error.to_string(), "table routing in a infiniband topology");
}

#[test]
fn a_failed_link_ends_the_routes_over_it() {
    let network = leaves_and_spines();
    let network = read(&topology_file(&network), &table_file(&network));
    let failed = link_id(&network, "leaf0>spine0");
    let routes = Routes::find(&network, &|link| link != failed);
    let ways = |to: u16| names(&network, routes.candidates(switch_id(&network, "leaf0"), EndpointId(to)));
    assert_eq!([ways(2), ways(3)], [vec![], vec!["leaf0>spine1".to_owned()]]);
}

#[test]
fn hosts_have_the_order_of_the_list_and_keep_cables_of_their_own() {
    let text = topology_file(&leaves_and_spines());
    let hosts = ["node3 mlx5_0", "H-0000000000000200"].map(str::to_owned);
    let topology = SubnetFiles { hosts: &hosts, ..files(&text, None) }.read().expect("a good file");
    let own = HostLinks { first: 1, count: 1, rate: Some(Bandwidth(8_000)), delay: Some(Span(7)) };
    let network = Network::build(&NetworkConfig { host_links: vec![own], ..config(topology) }).expect("a good network");
    let cables =
        network.endpoints.iter().map(|end| network.link(end.up)).map(|link| (&*link.name, link.rate.0, link.delay.0));
    let usual = network.config.link.delay.0;
    assert_eq!(cables.collect::<Vec<_>>(), [("h0>leaf1", 200_000_000_000, usual), ("h1>leaf0", 8_000, 7)]);
    // Two adapters of one port are the interface of a host with two.
    let pair = SubnetFiles { hosts: &hosts, ports: 2, ..files(&text, None) }.read().expect("a good file");
    assert_eq!(with_ports(pair, 2).hosts(), 1);
}

#[test]
fn a_cable_back_to_its_switch_is_left_out() {
    let network = leaves_and_spines();
    let text = topology_file(&network);
    // It lies before all other ports of the switch.
    let back = |from, to| format!("[{from}]\t\"S-0000000000000100\"[{to}]\t\t# \"leaf0\" lid 1 4xHDR\n");
    let at = text.find("[1]").expect("a port");
    let text = format!("{}{}{}{}", &text[..at], back(0, 9), back(9, 0), &text[at..]);
    assert_eq!(read(&text, &table_file(&network)), read(&topology_file(&network), &table_file(&network)));
}

#[test]
fn parts_of_switches_and_routers_are_no_hosts_and_names_are_unique() {
    let text = topology_file(&leaves_and_spines())
        .replace("node1 mlx5_0", "Mellanox Technologies Aggregation Node")
        .replace("\"spine0\"", "\"Quantum Mellanox Technologies\"")
        .replace("\"spine1\"", "\"Quantum Mellanox Technologies\"")
        .replace("H-0000000000000203", "R-0000000000000203")
        .replace("Ca\t1 \"R-", "Rt\t1 \"R-");
    let network = build(files(&text, None).read().expect("a good file"));
    assert_eq!(network.hosts(), 2);
    let switches: Vec<_> = network.switches.iter().map(|switch| &*switch.name).collect();
    assert_eq!(switches, ["leaf0", "leaf1", "S-0000000000000102", "S-0000000000000103"]);
}

/// `ibnetdiscover --full --grouping` has more words in its lines, and a file may have caught the warnings of the tools.
#[test]
fn words_beside_the_cables_change_nothing() {
    let network = leaves_and_spines();
    let (topology, tables) = (topology_file(&network), table_file(&network));
    let warning = "ibwarn: [4711] sim_connect: attached as client 1 at node \"leaf0\"\n";
    let wordy = topology
        .replace("4xHDR", "4xHDR s=4 w=2 v=4 e=8")
        .replace("[1]\t\"S-", "[1][ext 17]\t\"S-")
        .replace("\nvendid=", "\n# Spine Nodes\nvendid=")
        + "\nChassis 1 (guid 0x100)\nNon-Chassis Nodes\n";
    let warned = [format!("{warning}{wordy}"), tables.replace("Unicast", &format!("{warning}Unicast"))];
    assert_eq!(read(&warned[0], &warned[1]), read(&topology, &tables));
}

/// A bad cable runs at a lower rate than the others beside it.
#[test]
fn each_cable_has_the_rate_at_which_it_runs() {
    let text = topology_file(&leaves_and_spines());
    let slow = |line: &str| match line.contains("\"S-0000000000000102\"[") {
        true => line.replace("HDR", "DDR"),
        false => line.to_owned(),
    };
    let text: Vec<_> = text.lines().map(slow).collect();
    let network = routed(files(&text.join("\n"), None).read().expect("a good file"), D_MOD_K);
    let rate = |name: &str| network.link(link_id(&network, name)).rate.0;
    assert_eq!([rate("leaf0>spine0"), rate("leaf0>spine1")], [16_000_000_000, 200_000_000_000]);
}

/// The error about the files after each change, of the topology or of the tables.
fn error(of_topology: [&str; 2], of_tables: [&str; 2]) -> String {
    let network = leaves_and_spines();
    let change = |text: String, [from, to]: [&str; 2]| {
        assert!(from.is_empty() || text.contains(from), "{from} is not in\n{text}");
        if from.is_empty() { text + to } else { text.replacen(from, to, 1) }
    };
    let (topology, tables) = (change(topology_file(&network), of_topology), change(table_file(&network), of_tables));
    let error = files(&topology, Some(&tables)).read().expect_err("a bad file");
    format!("{:?} {error}", error.file)
}

#[test]
fn errors_of_the_topology_have_line_and_cause() {
    let found = |from, to| error([from, to], ["", ""]);
    assert_eq!(found("devid=", "CA 1 2 "), "Topology line 6: unknown line \"CA 1 2 0xd2f0\"");
    assert_eq!(found("4xHDR", "4xQQR"), "Topology line 8: unknown width and speed \"4xQQR\" of a link");
    assert_eq!(found("[2]\t", "[1]\t"), "Topology line 9: port 1 of S-0000000000000100 has two cables");
    assert_eq!(
        found("[1]\t\"H-0000000000000200\"", "[1]\t\"H-0000000000000700\""),
        "Topology line 8: a cable ends at H-0000000000000700, which is not in the file"
    );
    assert_eq!(
        found("[1]\t\"H-0000000000000200\"", "[1]\t\"H-0000000000000201\""),
        "Topology line 8: a cable ends at port 1 of H-0000000000000201, whose own line does not say so"
    );
    assert_eq!(
        found("Switch\t40 \"S-0000000000000101", "Switch\t40 \"S-0000000000000100"),
        "Topology line 15: S-0000000000000100 is described twice"
    );
    let text = topology_file(&leaves_and_spines());
    let wanted = ["node9".to_owned()];
    let error = SubnetFiles { hosts: &wanted, ..files(&text, None) }.read().expect_err("no such host");
    assert_eq!(error.to_string(), "no channel adapter has the name or id \"node9\"");
    let twice = ["node0 mlx5_0", "H-0000000000000200"].map(str::to_owned);
    let error = SubnetFiles { hosts: &twice, ..files(&text, None) }.read().expect_err("one host");
    assert_eq!(error.to_string(), "node0 mlx5_0 is listed twice among the hosts");
    let error = SubnetFiles { ports: 2, ..files(&text, None) }.read().expect_err("hosts with one port");
    assert_eq!(error.to_string(), "line 35: ports with a cable at node0 mlx5_0: 1; at the interface of a host: 2");
}

#[test]
fn errors_of_the_tables_have_line_and_cause() {
    let found = |from, to| error(["", ""], [from, to]);
    assert_eq!(
        found("0x0005 001", "0x5 port 1"),
        "Tables line 5: unknown line \"0x5 port 1 : (Channel Adapter portguid 0x0000000000000200: '...\""
    );
    assert_eq!(found("0x0006 002", "0x0005 002"), "Tables line 6: the table has two ports for LID 0x0005");
    assert_eq!(
        found("guid 0x0000000000000101 (", "guid 0x0000000000000100 ("),
        "Tables line 10: the switch with GUID 0x0000000000000100 has two tables"
    );
    assert_eq!(
        found("guid 0x0000000000000101 (", "guid 0x0000000000000109 ("),
        "Tables line 10: no switch has the GUID 0x0000000000000109"
    );
    assert_eq!(
        found("0x0007 003", "0x0017 003"),
        "Tables line 1: the table of leaf0 has no port for LID 0x0007 (node2 mlx5_0), where a route leads"
    );
    assert_eq!(
        found("0x0007 003", "0x0007 009"),
        "Tables line 7: leaf0 sends packets for LID 0x0007 (node2 mlx5_0) to port 9, which has no cable to a switch or host"
    );
    assert_eq!(
        found("0x0007 003", "0x0007 002"),
        "Tables line 7: leaf0 sends packets for LID 0x0007 (node2 mlx5_0) to another host, at port 2"
    );
    // The spine sends back what the leaf sends up.
    let circle = found(
        "0x0007 002 : (Channel Adapter portguid 0x0000000000000202: 'node2 mlx5_0')\n0x0008 002",
        "0x0007 001\n0x0008 002",
    );
    assert_eq!(
        circle,
        "Tables line 7: packets for LID 0x0007 (node2 mlx5_0) go round in a circle: leaf0 > spine0 > leaf0"
    );
    let (topology, mut tables) = (topology_file(&leaves_and_spines()), table_file(&leaves_and_spines()));
    tables.truncate(tables.find("Unicast lids [0x0-0x10] of switch Lid 4").expect("the table of a spine"));
    let error = files(&topology, Some(&tables)).read().expect_err("no table");
    assert_eq!(error.to_string(), "spine1 has no table");
}

#[test]
fn tables_that_can_wait_in_a_circle_are_found() {
    let ring = explicit(
        &["a", "b", "c", "d"],
        &[["h0", "a"], ["h1", "b"], ["h2", "c"], ["h3", "d"], ["a", "b"], ["b", "c"], ["c", "d"], ["d", "a"]],
    );
    let built = routed(ring, D_MOD_K);
    // Every route goes the same way round: each switch sends by the port towards the next one.
    let mut tables = String::new();
    for (switch, ahead) in [2, 3, 3, 3].into_iter().enumerate() {
        writeln!(tables, "Unicast lids [0-8] of switch Lid {} guid 0x{:016x} ('s'):", switch + 1, 0x100 + switch)
            .expect("a text");
        for host in 0..4 {
            let port = if host == switch { 1 } else { ahead };
            writeln!(tables, "0x{:04x} {port:03} # Channel Adapter", 5 + host).expect("a text");
        }
        tables.push_str("8 lids dumped\n");
    }
    let network = read(&topology_file(&built), &tables);
    let cycle = network.cyclic_dependency(&all_routes(&network)).expect("a ring");
    assert_eq!(names(&network, &cycle), ["a>b", "b>c", "c>d", "d>a"]);
}

proptest::proptest! {
    #[test]
    fn no_text_is_too_odd(text in ".{0,200}", at in 0_usize..2000, length in 0_usize..40) {
        let network = leaves_and_spines();
        let change = |whole: String| {
            let chars: Vec<char> = whole.chars().collect();
            let at = at.min(chars.len());
            let end = (at + length).min(chars.len());
            chars[..at].iter().chain(&text.chars().collect::<Vec<_>>()).chain(&chars[end..]).collect::<String>()
        };
        let (topology, tables) = (topology_file(&network), table_file(&network));
        for (topology, tables) in [(change(topology.clone()), tables.clone()), (topology, change(tables))] {
            if let Ok(topology) = files(&topology, Some(&tables)).read() {
                let _ = Network::build(&config(topology));
            }
        }
    }
}
