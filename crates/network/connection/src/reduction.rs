//! Proportional rate reduction: a recovery sends in proportion to what arrives, and no bursts (RFC 6937).

/// What a recovery may send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateReduction {
    /// Bytes without an acknowledgement when it began.
    outstanding: u64,
    segment: u64,
    /// Bytes that have arrived since.
    arrived: u64,
    /// Bytes that were sent since.
    sent: u64,
    /// Bytes that may be sent now.
    allowed: u64,
}

impl RateReduction {
    /// A recovery begins with a segment that is sent at once.
    pub(crate) fn new(outstanding: u64, segment: u64) -> Self {
        Self { outstanding: outstanding.max(1), segment, arrived: 0, sent: 0, allowed: segment }
    }

    /// These bytes have arrived. The recovery is to end with `window` bytes under way.
    pub(crate) fn arrived(&mut self, bytes: u64, under_way: u64, window: u64) {
        self.arrived += bytes;
        let allowed = match window.checked_sub(under_way) {
            // More was lost than the window shrinks by, so what is under way grows again as in slow start (PRR-SSRB).
            Some(room) => room.min(self.arrived.saturating_sub(self.sent).max(bytes) + self.segment),
            None => (self.arrived * window).div_ceil(self.outstanding).saturating_sub(self.sent),
        };
        self.allowed = if self.sent == 0 { allowed.max(self.segment) } else { allowed };
    }

    pub(crate) const fn allows(&self, bytes: u64) -> bool {
        bytes <= self.allowed
    }

    pub(crate) fn sent(&mut self, bytes: u64) {
        self.sent += bytes;
        self.allowed = self.allowed.saturating_sub(bytes);
    }
}
