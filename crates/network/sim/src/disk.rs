//! The disk of a computer, and the memory of the system before it.

use evb_core::Time;
use evb_experiment::DiskPlan;

pub(crate) struct Disk {
    plan: DiskPlan,
    /// When it will have written all that it was given.
    free_at: Time,
}

impl Disk {
    pub(crate) const fn new(plan: DiskPlan) -> Self {
        Self { plan, free_at: Time::ZERO }
    }

    /// Takes bytes at `now`; returns when the last of them has a place in the memory before the disk, or is written if there is
    /// none.
    pub(crate) fn write(&mut self, now: Time, bytes: u64) -> Time {
        self.free_at = self.free_at.max(now) + self.plan.latency + self.plan.rate.time_for(bytes);
        let held = self.plan.rate.time_for(self.plan.cache.0);
        now.max(Time(self.free_at.0.saturating_sub(held.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_core::{Bandwidth, ByteCount, Span};

    /// 1 MB/s, and memory for 1000 B.
    fn disk(cache: u64) -> Disk {
        let (rate, latency) = (Bandwidth(8_000_000), Span::from_micros(10));
        Disk::new(DiskPlan { rate, latency, cache: ByteCount(cache) })
    }

    const fn us(us: u64) -> Time {
        Time(us * 1_000_000)
    }

    #[test]
    fn without_memory_each_write_waits_for_the_disk() {
        let mut disk = disk(0);
        assert_eq!(disk.write(us(0), 100), us(110));
        assert_eq!(disk.write(us(50), 100), us(220));
        assert_eq!(disk.write(us(1000), 100), us(1110));
    }

    #[test]
    fn what_fits_into_the_memory_is_stored_at_once() {
        let mut disk = disk(1000);
        assert_eq!(disk.write(us(0), 600), us(0));
        assert_eq!(disk.write(us(0), 600), us(220), "200 B and two writes wait for the disk");
        assert_eq!(disk.write(us(5000), 600), us(5000), "all was written meanwhile");
    }
}
