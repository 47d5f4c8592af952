//! Which number of which experiment is which item, one module for each paper.

mod cms_adaptive_routing;
mod cms_demonstrator;

use crate::Paper;

pub(crate) const ALL: &[Paper] = &[
    Paper { slug: "cms-adaptive-routing-2007", reproduce: cms_adaptive_routing::reproduce },
    Paper { slug: "cms-demonstrator-1999", reproduce: cms_demonstrator::reproduce },
];
