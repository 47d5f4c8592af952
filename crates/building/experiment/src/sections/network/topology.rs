//! `network.topology`: switches and links.

use super::{
    preset_keys::{ONE, PRESET, of_preset},
    queues,
};
use crate::{choice::*, diagnostics::Problem, limits::*, schema::*, tree::Node, view::View};
use evb_fabric::{ExplicitLink, Topology, TreeLevel};

pub(super) static TOPOLOGY: Choice<Make<Topology>> = choice(
    "topology",
    PRESET,
    &[
        variant(
            CROSSBAR,
            "one switch with all hosts",
            &[key(
                "ports",
                integer(1, MAX_COUNT),
                KeyDefault::Derived("the preset's; else, and under `ideal`, as many as the hosts need"),
                "ports of the switch, one per port of a host",
            )],
            |view| Topology::Crossbar { ports: view.integer("ports") },
        ),
        variant(
            "clos",
            "two layers: every leaf is linked to every spine",
            &[
                LEAVES,
                PORTS_PER_LEAF,
                count("spines", PRESET, "spine switches"),
                count("links", ONE, "parallel links between two switches"),
                UPLINK,
            ],
            |view| Topology::Clos {
                leaves: view.integer("leaves"),
                ports_per_leaf: view.integer("ports_per_leaf"),
                spines: view.integer("spines"),
                links: view.integer("links"),
                uplink: view.maybe_quantity("uplink"),
            },
        ),
        variant(
            "composite",
            "a composite of crossbars, such as the M2M-OCT-SW8: a `clos` whose leaves are called edges and whose \
             spines middles",
            &[
                count("edges", PRESET, "crossbars with hosts"),
                count("ports_per_edge", PRESET, "ports for hosts on each of them"),
                count("middles", PRESET, "crossbars between them"),
                count("links", ONE, "parallel links between each edge and each middle"),
            ],
            |view| Topology::Clos {
                leaves: view.integer("edges"),
                ports_per_leaf: view.integer("ports_per_edge"),
                spines: view.integer("middles"),
                links: view.integer("links"),
                uplink: None,
            },
        ),
        variant(
            FAT_TREE,
            "`radix` makes three layers of switches with that many ports each, for `radix`^3 / 4 host ports; `levels` \
             lists the levels of any fat tree, for as many host ports as the product of all `down`",
            &[
                optional("radix", integer(2, MAX_COUNT), "ports per switch, even"),
                optional(
                    "levels",
                    KeyKind::List { item: &KeyKind::Section(TREE_LEVEL), most: MAX_LEVELS },
                    "instead of `radix`, one table for each level of switches, that of the hosts first: \
                     `[{ down = 20, up = 10 }, { down = 8 }]`",
                ),
            ],
            |view| match view.maybe_integer("radix") {
                Some(radix) => Topology::FatTree { radix },
                None => Topology::FatTreeLevels {
                    levels: view.list("levels").iter().map(|node| tree_level(View(node))).collect(),
                },
            },
        ),
        variant(
            "butterfly",
            "stages of crossbars, a k-ary n-fly: hosts send into the first stage and receive from the last",
            &[
                of_preset("radix", integer(2, MAX_COUNT), "inputs, and outputs, of one crossbar"),
                of_preset("stages", integer(1, 16), "number of stages"),
            ],
            |view| Topology::Butterfly { radix: view.integer("radix"), stages: view.integer("stages") },
        ),
        variant(
            "grid",
            "switches in rows and columns, or in several layers of them, linked to their neighbours",
            MESH,
            |view| Topology::Grid {
                width: view.integer("width"),
                height: view.integer("height"),
                depth: view.integer("depth"),
                terminals: view.integer("terminals"),
                links: view.integer("links"),
            },
        ),
        variant("torus", "a grid whose lines of switches are closed to rings in each dimension", MESH, |view| {
            Topology::Torus {
                width: view.integer("width"),
                height: view.integer("height"),
                depth: view.integer("depth"),
                terminals: view.integer("terminals"),
                links: view.integer("links"),
            }
        }),
        variant(
            "dragonfly",
            "groups of switches: each switch is linked to all others of its group, and each group to every other one",
            &[
                count("groups", PRESET, "groups"),
                count("routers", PRESET, "switches in a group"),
                count("terminals", PRESET, "ports for hosts on each switch"),
                count("global", PRESET, "links of each switch to other groups, the same number to each of these"),
                GLOBAL_RATE,
                GLOBAL_DELAY,
            ],
            |view| Topology::Dragonfly {
                groups: view.integer("groups"),
                routers: view.integer("routers"),
                terminals: view.integer("terminals"),
                global: view.integer("global"),
                global_rate: view.maybe_quantity("global_rate"),
                global_delay: view.maybe_quantity("global_delay"),
            },
        ),
        variant(
            "dragonfly-plus",
            "groups of leaves and spines, every leaf linked to all spines of its group; each group is linked to every other \
             one, between spines",
            &[
                count("groups", PRESET, "groups"),
                count("leaves", PRESET, "leaf switches in a group"),
                count("spines", PRESET, "spine switches in a group"),
                count("terminals", PRESET, "ports for hosts on each leaf"),
                count("global", PRESET, "links of each spine to other groups, the same number to each of these"),
                GLOBAL_RATE,
                GLOBAL_DELAY,
            ],
            |view| Topology::DragonflyPlus {
                groups: view.integer("groups"),
                leaves: view.integer("leaves"),
                spines: view.integer("spines"),
                terminals: view.integer("terminals"),
                global: view.integer("global"),
                global_rate: view.maybe_quantity("global_rate"),
                global_delay: view.maybe_quantity("global_delay"),
            },
        ),
        variant(
            "hyperx",
            "switches in up to three dimensions, each linked to all others that differ from it in one coordinate; a flattened \
             butterfly if all sizes are equal",
            &[
                of_preset("sizes", ONE_PER_DIMENSION, "switches along each dimension"),
                count("terminals", ONE, "ports for hosts on each switch"),
                optional(
                    "links",
                    ONE_PER_DIMENSION,
                    "parallel links between two switches that differ in one coordinate, for each dimension; 1 by default",
                ),
            ],
            |view| {
                let sizes = integers(view, "sizes");
                let links = if view.has("links") { integers(view, "links") } else { vec![1; sizes.len()] };
                Topology::HyperX { sizes, terminals: view.integer("terminals"), links }
            },
        ),
        variant(
            "tree",
            "a root switch and leaves below it, each joined to the root by a trunk",
            &[LEAVES, PORTS_PER_LEAF, count("trunk", ONE, "parallel links from each leaf to the root"), UPLINK],
            |view| Topology::Tree {
                leaves: view.integer("leaves"),
                ports_per_leaf: view.integer("ports_per_leaf"),
                trunk: view.integer("trunk"),
                uplink: view.maybe_quantity("uplink"),
            },
        ),
        variant(
            "explicit",
            "the listed switches and links",
            &[
                of_preset("switches", KeyKind::Names { least: 1, most: MAX_LISTED }, "names of the switches"),
                of_preset(
                    "link",
                    KeyKind::List { item: &KeyKind::Section(EXPLICIT_LINK), most: MAX_LISTED },
                    "one table `[[network.topology.link]]` for each cable, or several parallel ones",
                ),
            ],
            |view| Topology::Explicit {
                switches: view.list("switches").iter().filter_map(Node::text).map(str::to_owned).collect(),
                links: view.list("link").iter().map(|node| explicit_link(View(node))).collect(),
            },
        ),
        variant(
            INFINIBAND,
            "the fabric that `ibnetdiscover` found; links have the data rate of their width and speed there, unless a host has \
             one by `network.host_link`",
            &[
                required(
                    "file",
                    KeyKind::Path,
                    "output of `ibnetdiscover`; a relative path starts from `data.directory`",
                ),
                optional(
                    "hosts",
                    KeyKind::Names { least: 1, most: MAX_LISTED },
                    "channel adapters of the hosts, by description or id, in the order of the hosts; all but those in \
                     switches by default, in the order of the file",
                ),
            ],
            // The check puts in what is in the file.
            |_| Topology::Infiniband { switches: Vec::new(), hosts: Vec::new(), cables: Vec::new() },
        ),
    ],
);

/// Its ports follow from the hosts.
pub(super) const CROSSBAR: &str = "crossbar";

/// It is described in other files.
pub(super) const INFINIBAND: &str = "infiniband";

const FAT_TREE: &str = "fat-tree";

/// Most levels of a fat tree.
const MAX_LEVELS: usize = 4;

const LEAVES: Key = count("leaves", PRESET, "leaf switches");
const PORTS_PER_LEAF: Key = count("ports_per_leaf", PRESET, "ports for hosts on each leaf");
const UPLINK: Key = optional("uplink", bandwidth(), "rate of the links between switches; that of all links by default");

const GLOBAL_RATE: Key =
    optional("global_rate", bandwidth(), "rate of the links between groups; that of all links by default");
const GLOBAL_DELAY: Key =
    optional("global_delay", delay(), "delay of the links between groups; that of all links by default");

const MESH: &[Key] = &[
    count("width", PRESET, "switches in a row"),
    count("height", PRESET, "switches in a column"),
    count("depth", ONE, "layers of such rows and columns"),
    count("terminals", ONE, "ports for hosts on each switch"),
    count("links", ONE, "parallel links between two switches"),
];

const TREE_LEVEL: &[Key] = &[
    required(
        "down",
        integer(1, MAX_COUNT),
        "switches of the level below that each is joined to; host ports at the first",
    ),
    key(
        "up",
        integer(0, MAX_COUNT),
        KeyDefault::Integer(0),
        "switches of the level above that each is joined to; only the last level has none",
    ),
    count("links", ONE, "parallel links to each of those above"),
    optional("rate", bandwidth(), "rate of the links to the level above; that of all links by default"),
    optional("delay", delay(), "delay of these links; that of all links by default"),
];

const EXPLICIT_LINK: &[Key] = &[
    required(
        "ends",
        KeyKind::Names { least: 2, most: 2 },
        "each the name of a switch, or `h0`, `h1`, ... for the ports of hosts, in order",
    ),
    count("count", ONE, "parallel links"),
    optional("rate", bandwidth(), "rate of each; that of all links by default"),
    optional("delay", delay(), "delay of each; that of all links by default"),
    optional(
        "marking",
        KeyKind::Section(queues::MARKING),
        "marks on packets that find a long queue before it; `network.switch.marking` by default",
    ),
];

const ONE_PER_DIMENSION: KeyKind = KeyKind::Integers { min: 1, max: MAX_COUNT, most: 3 };

fn integers(view: View<'_>, path: &str) -> Vec<u16> {
    view.list(path).iter().filter_map(Node::integer).filter_map(|number| number.try_into().ok()).collect()
}

const fn count(name: &'static str, default: KeyDefault, doc: &'static str) -> Key {
    key(name, integer(1, MAX_COUNT), default, doc)
}

/// A fat tree is described in one of two ways.
pub(super) fn check(view: View<'_>) -> Option<Problem> {
    let topology = view.below("network.topology");
    if topology.text("type") != FAT_TREE || topology.has("radix") != topology.has("levels") {
        return None;
    }
    let help = "write `radix` for three layers of equal switches, or `levels` for any fat tree";
    let message = match topology.has("radix") {
        true => "a fat tree has both `radix` and `levels`",
        false => "a fat tree has neither `radix` nor `levels`",
    };
    let place = ["levels", "type"].into_iter().find_map(|key| topology.origin(key));
    Some(Problem::new(message, help).at(place, "this tree"))
}

/// The wanted channel adapters of an `infiniband` topology.
pub(super) fn hosts(topology: View<'_>) -> Vec<String> {
    topology.list("hosts").iter().filter_map(Node::text).map(str::to_owned).collect()
}

fn tree_level(view: View<'_>) -> TreeLevel {
    TreeLevel {
        down: view.integer("down"),
        up: view.integer("up"),
        links: view.integer("links"),
        rate: view.maybe_quantity("rate"),
        delay: view.maybe_quantity("delay"),
    }
}

fn explicit_link(view: View<'_>) -> ExplicitLink {
    ExplicitLink {
        ends: ["ends.0", "ends.1"].map(|end| view.text(end).to_owned()),
        count: view.integer("count"),
        rate: view.maybe_quantity("rate"),
        delay: view.maybe_quantity("delay"),
        marking: queues::marking(view, "marking"),
    }
}
