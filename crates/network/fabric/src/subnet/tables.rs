//! Linear forwarding tables, as OpenSM (`opensm-lfts.dump`), `dump_fts` and `ibroute` write them: for each switch a line with
//! its GUID, then a line for each LID with the port to which packets for it go.
//!
//! ```text
//! Unicast lids [0x0-0x8] of switch Lid 1 guid 0x0002c90000000100 (leaf0):
//!   Lid  Out   Destination
//!        Port     Info
//! 0x0005 001 : (Channel Adapter portguid 0x0002c90000000201: 'node0 mlx5_0')
//! 1 valid lids dumped
//! ```

use super::{SubnetError, SubnetFile, SubnetProblem};
use std::collections::HashMap;

/// The forwarding table of one switch.
pub(super) struct Table {
    /// The line that names the switch, counted from 1.
    pub(super) line: usize,
    /// For each LID the port, and the line that says so.
    pub(super) entries: HashMap<u16, (u8, usize)>,
}

/// The tables, by the GUID of the switch.
pub(super) fn tables(text: &str) -> Result<HashMap<u64, Table>, SubnetError> {
    let mut tables: HashMap<u64, Table> = HashMap::new();
    let mut switch = None;
    for (line, written) in (1..).zip(text.lines()) {
        let unknown = || fail(line, SubnetProblem::UnknownLine { text: super::brief(written) });
        if written.starts_with("Unicast lids ") {
            let guid = guid(written).ok_or_else(unknown)?;
            if tables.insert(guid, Table { line, entries: HashMap::new() }).is_some() {
                return Err(fail(line, SubnetProblem::TableTwice { guid }));
            }
            switch = Some(guid);
        } else if written.starts_with("0x") {
            let (lid, port) = entry(written).ok_or_else(unknown)?;
            let table = switch.and_then(|guid| tables.get_mut(&guid)).ok_or_else(unknown)?;
            if table.entries.insert(lid, (port, line)).is_some() {
                return Err(fail(line, SubnetProblem::LidTwice { lid }));
            }
        } else if !says_nothing(written) {
            return Err(unknown());
        }
    }
    Ok(tables)
}

/// Comments, warnings of the tool, the heads of columns, and the number of lines of a table.
fn says_nothing(line: &str) -> bool {
    let line = line.trim();
    let is_head = ["#", super::WARNING, "Lid ", "Port "].iter().any(|head| line.starts_with(head));
    line.is_empty() || is_head || line.ends_with("lids dumped")
}

fn guid(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once(" guid 0x")?;
    u64::from_str_radix(rest.split(|c: char| !c.is_ascii_hexdigit()).next()?, 16).ok()
}

fn entry(line: &str) -> Option<(u16, u8)> {
    let mut words = line.split_whitespace();
    let lid = words.next()?.strip_prefix("0x")?;
    Some((u16::from_str_radix(lid, 16).ok()?, words.next()?.parse().ok()?))
}

pub(super) fn fail(line: usize, problem: SubnetProblem) -> SubnetError {
    SubnetError { file: SubnetFile::Tables, line: Some(line), problem }
}
