//! evb-events
