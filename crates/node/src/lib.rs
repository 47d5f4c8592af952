//! evb-node
