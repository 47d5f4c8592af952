//! The reproduced items of each paper, one module for each paper.

mod atlas_communication;
mod atlas_ethernet;
mod cms_adaptive_routing;
mod cms_demonstrator;
mod dctcp;
mod geoffray_hoefler;
mod hluchyj_karol;
mod htsim;
mod karol;
mod merlin;
mod patel;
mod pollaczek;
mod uet_htsim;
mod velo;

use crate::Paper;
use include_dir::include_dir;

/// A paper: the name of its folder, the files in it, and the function that reproduces it.
macro_rules! paper {
    ($slug:literal, $folder:tt, $module:ident) => {
        Paper { slug: $slug, folder: include_dir!($folder), reproduce: $module::reproduce }
    };
}

pub(crate) static ALL: &[Paper] = &[
    paper!("atlas-communication-1997", "$CARGO_MANIFEST_DIR/../atlas-communication-1997", atlas_communication),
    paper!("atlas-ethernet-1998", "$CARGO_MANIFEST_DIR/../atlas-ethernet-1998", atlas_ethernet),
    paper!("cms-adaptive-routing-2007", "$CARGO_MANIFEST_DIR/../cms-adaptive-routing-2007", cms_adaptive_routing),
    paper!("cms-demonstrator-1999", "$CARGO_MANIFEST_DIR/../cms-demonstrator-1999", cms_demonstrator),
    paper!("dctcp-2010", "$CARGO_MANIFEST_DIR/../dctcp-2010", dctcp),
    paper!("geoffray-hoefler-2008", "$CARGO_MANIFEST_DIR/../geoffray-hoefler-2008", geoffray_hoefler),
    paper!("hluchyj-karol-1988", "$CARGO_MANIFEST_DIR/../hluchyj-karol-1988", hluchyj_karol),
    paper!("htsim-2021", "$CARGO_MANIFEST_DIR/../htsim-2021", htsim),
    paper!("karol-1987", "$CARGO_MANIFEST_DIR/../karol-1987", karol),
    paper!("merlin-2018", "$CARGO_MANIFEST_DIR/../merlin-2018", merlin),
    paper!("patel-1981", "$CARGO_MANIFEST_DIR/../patel-1981", patel),
    paper!("pollaczek-1930", "$CARGO_MANIFEST_DIR/../pollaczek-1930", pollaczek),
    paper!("uet-htsim-2025", "$CARGO_MANIFEST_DIR/../uet-htsim-2025", uet_htsim),
    paper!("velo-2008", "$CARGO_MANIFEST_DIR/../velo-2008", velo),
];
