//! evb-record
