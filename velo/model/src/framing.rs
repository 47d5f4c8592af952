//! Cost of a message beside its bytes, and frequency of cut messages.

/// Bytes of the command that HyperTransport puts before the data of each transaction (VELO 2008, section 3, atomic PIO).
pub const COMMAND_BYTES: u64 = 8;

/// Most bytes of one transaction, and so of one message: a cache line, which is a write-combining buffer (VELO 2008,
/// section 3, atomic PIO).
pub const LINE_BYTES: u64 = 64;

/// Part of a transaction that is its command, from 0 to 1, for `payload` bytes (VELO 2008, section 3, atomic PIO: 50 %
/// of a word of 8 B, 11.1 % of a cache line). A payload of more than [`LINE_BYTES`] takes several transactions.
pub fn overhead(payload: u64) -> f64 {
    let commands = (payload.div_ceil(LINE_BYTES).max(1) * COMMAND_BYTES) as f64;
    commands / (commands + payload as f64)
}

/// Mean number of messages for each one that a scheduler cuts in two. The thread sends `rate` messages per second
/// without a pause and is taken from its processor every `tick` seconds (VELO 2008, footnote 1: one of 30,000 at 3
/// million per second and 10 ms).
pub fn messages_for_each_cut(rate: f64, tick: f64) -> f64 {
    rate * tick
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_cost_what_the_paper_says() {
        assert_eq!(overhead(8), 0.5);
        assert!((overhead(64) - 0.111).abs() < 0.0005);
    }

    #[test]
    fn each_transaction_has_a_command() {
        assert_eq!(overhead(0), 1.0, "a command alone");
        assert_eq!(overhead(128), overhead(64));
        assert_eq!(overhead(65), 16.0 / 81.0);
    }

    #[test]
    fn one_message_of_a_tick_is_cut() {
        assert!((messages_for_each_cut(3.0e6, 10e-3) - 30_000.0).abs() < 1e-6);
    }
}
