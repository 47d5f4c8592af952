//! The reproduced items of each paper, one module for each paper.

mod atlas_communication;
mod atlas_ethernet;
mod cms_adaptive_routing;
mod cms_demonstrator;
mod velo;

use crate::Paper;

pub(crate) const ALL: &[Paper] = &[
    Paper { slug: "atlas-communication-1997", reproduce: atlas_communication::reproduce },
    Paper { slug: "atlas-ethernet-1998", reproduce: atlas_ethernet::reproduce },
    Paper { slug: "cms-adaptive-routing-2007", reproduce: cms_adaptive_routing::reproduce },
    Paper { slug: "cms-demonstrator-1999", reproduce: cms_demonstrator::reproduce },
    Paper { slug: "velo-2008", reproduce: velo::reproduce },
];
