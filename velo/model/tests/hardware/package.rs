//! The constants of crate `evb-velo` as a package of SystemVerilog that Verilator and Yosys accept.

use evb_velo::{
    DATA_SHIFT, ENDPOINT_BITS, FIXED, FIXED_SHIFT, LINE_BITS, LINE_BYTES, PAGE_BITS, SOURCE_SHIFT, TARGET_SHIFT, bus,
    lanes, mailbox, registers,
    registers::{Control, Window},
};
use std::fmt::Write;

const INTRODUCTION: &str = "\
// The constants of the VELO message engine. Generated from crate `evb-velo` by its test `hardware`: change them there.
/* verilator lint_off UNUSEDPARAM */
package velo_pkg;
";

/// Groups of constants: a description, and names with values.
const CONSTANTS: &[(&str, &[(&str, u64)])] = &[
    (
        "An address: bits of a page, and of length and offset in it (modules `address` and `lanes`).",
        &[
            ("PAGE_BITS", PAGE_BITS as u64),
            ("LINE_BITS", LINE_BITS as u64),
            ("LINE_BYTES", LINE_BYTES),
            ("WORD_BITS", 8 * lanes::WORD_BYTES),
        ],
    ),
    (
        "The header of a packet (module `packet`). The offset begins at bit 0.",
        &[
            ("LENGTH_SHIFT", LINE_BITS as u64),
            ("DATA_SHIFT", DATA_SHIFT as u64),
            ("TARGET_SHIFT", TARGET_SHIFT as u64),
            ("SOURCE_SHIFT", SOURCE_SHIFT as u64),
            ("ENDPOINT_BITS", ENDPOINT_BITS as u64),
            ("FIXED_SHIFT", FIXED_SHIFT as u64),
        ],
    ),
    (
        "The command of a posted write (module `bus`): a physical address, and the length of the data less one.",
        &[("COMMAND_ADDRESS_BITS", bus::ADDRESS_BITS as u64), ("COMMAND_DATA_SHIFT", bus::DATA_SHIFT as u64)],
    ),
    (
        "Mailboxes (module `mailbox`): a slot is 2^SLOT_BITS bytes, the message begins at byte SLOT_MESSAGE_AT of it.",
        &[
            ("HOST_BITS", mailbox::HOST_BITS as u64),
            ("HOST_PAGE_BITS", (mailbox::HOST_BITS - PAGE_BITS) as u64),
            ("SLOT_BITS", mailbox::SLOT_BITS as u64),
            ("SLOT_MESSAGE_AT", mailbox::MESSAGE_AT),
            ("PAGE_SLOT_BITS", (PAGE_BITS - mailbox::SLOT_BITS) as u64),
            ("RING_MASK_BITS", mailbox::MASK_BITS as u64),
            ("POINTER_BITS", mailbox::POINTER_BITS as u64),
        ],
    ),
    (
        "The mailbox table (module `registers`). The page begins at bit 0.",
        &[
            ("TABLE_MASK_SHIFT", registers::TABLE_MASK_SHIFT as u64),
            ("TABLE_ENABLE_SHIFT", registers::TABLE_ENABLE_SHIFT as u64),
            ("TABLE_BITS", registers::TABLE_BITS as u64),
        ],
    ),
    (
        "Counters (module `registers`): SENT and RECEIVED are long.",
        &[
            ("LONG_COUNTER_BITS", registers::LONG_COUNTER_BITS as u64),
            ("SHORT_COUNTER_BITS", registers::SHORT_COUNTER_BITS as u64),
        ],
    ),
];

/// The text of the package.
pub(super) fn text() -> String {
    let mut text = String::from(INTRODUCTION);
    for (about, constants) in CONSTANTS {
        let numbers = constants.iter().map(|(name, value)| format!("int {name} = {value}"));
        group(&mut text, about, numbers);
    }
    let fixed = format!("logic [{}:0] FIXED = {}'b{FIXED:b}", 63 - FIXED_SHIFT, 64 - FIXED_SHIFT);
    group(&mut text, "The bits that are the same in all headers.", [fixed]);
    let bits = registers::WINDOW_BITS;
    let windows = Window::ALL
        .iter()
        .map(|(window, name)| format!("logic [{}:0] WINDOW_{name} = {bits}'d{}", bits - 1, *window as u64));
    group(&mut text, "Windows of registers, above the index in their address.", windows);
    let controls = Control::ALL.iter().map(|(control, name)| format!("int REGISTER_{name} = {}", *control as u64));
    group(&mut text, "Indices of the first window.", controls);
    text + "endpackage\n/* verilator lint_on UNUSEDPARAM */\n"
}

fn group(text: &mut String, about: &str, constants: impl IntoIterator<Item = String>) {
    write!(text, "\n  // {about}\n").expect("a string has room");
    for constant in constants {
        writeln!(text, "  localparam {constant};").expect("a string has room");
    }
}
