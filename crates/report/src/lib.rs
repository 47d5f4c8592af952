//! evb-report
