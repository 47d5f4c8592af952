//! The reproduced items of each paper, one module for each paper.

mod atlas_communication;
mod atlas_ethernet;
mod cms_adaptive_routing;
mod cms_demonstrator;
mod hluchyj_karol;
mod karol;
mod patel;
mod pollaczek;
mod velo;

use crate::Paper;

pub(crate) const ALL: &[Paper] = &[
    Paper { slug: "atlas-communication-1997", reproduce: atlas_communication::reproduce },
    Paper { slug: "atlas-ethernet-1998", reproduce: atlas_ethernet::reproduce },
    Paper { slug: "cms-adaptive-routing-2007", reproduce: cms_adaptive_routing::reproduce },
    Paper { slug: "cms-demonstrator-1999", reproduce: cms_demonstrator::reproduce },
    Paper { slug: "hluchyj-karol-1988", reproduce: hluchyj_karol::reproduce },
    Paper { slug: "karol-1987", reproduce: karol::reproduce },
    Paper { slug: "patel-1981", reproduce: patel::reproduce },
    Paper { slug: "pollaczek-1930", reproduce: pollaczek::reproduce },
    Paper { slug: "velo-2008", reproduce: velo::reproduce },
];
