//! The work of the processors, by item.

use evb_core::Span;
use evb_record::WorkRecord;

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkItem {
    Poll,
    PollPeer,
    SendCall,
    SendMessage,
    SendByte,
    ReceiveCall,
    ReceiveMessage,
    ReceiveByte,
    CrossingMessage,
    CrossingByte,
    ManagerBlock,
    ManagerEvent,
    ReadoutBlock,
    ReadoutFragment,
    ReadoutByte,
    ReadoutDraw,
    BuilderBlock,
    BuilderFragment,
    BuilderByte,
    StorageEvent,
    StorageByte,
    FilterEvent,
    FilterByte,
    FilterTime,
    CacheByte,
    WakeCall,
    ContextSwitch,
    Refill,
}

/// The items, with the keys of their costs in `network.cpu`.
const ITEMS: [(WorkItem, &str); 28] = [
    (WorkItem::Poll, "poll"),
    (WorkItem::PollPeer, "poll_peer"),
    (WorkItem::SendCall, "send.call"),
    (WorkItem::SendMessage, "send.message"),
    (WorkItem::SendByte, "send.byte"),
    (WorkItem::ReceiveCall, "receive.call"),
    (WorkItem::ReceiveMessage, "receive.message"),
    (WorkItem::ReceiveByte, "receive.byte"),
    (WorkItem::CrossingMessage, "crossing.message"),
    (WorkItem::CrossingByte, "crossing.byte"),
    (WorkItem::ManagerBlock, "manager.block"),
    (WorkItem::ManagerEvent, "manager.event"),
    (WorkItem::ReadoutBlock, "readout.block"),
    (WorkItem::ReadoutFragment, "readout.fragment"),
    (WorkItem::ReadoutByte, "readout.byte"),
    (WorkItem::ReadoutDraw, "readout.draw"),
    (WorkItem::BuilderBlock, "builder.block"),
    (WorkItem::BuilderFragment, "builder.fragment"),
    (WorkItem::BuilderByte, "builder.byte"),
    (WorkItem::StorageEvent, "storage.event"),
    (WorkItem::StorageByte, "storage.byte"),
    (WorkItem::FilterEvent, "filter.event"),
    (WorkItem::FilterByte, "filter.byte"),
    (WorkItem::FilterTime, "filter.time"),
    (WorkItem::CacheByte, "cache.byte"),
    (WorkItem::WakeCall, "wake.call"),
    (WorkItem::ContextSwitch, "context_switch"),
    (WorkItem::Refill, "refill"),
];

/// Work that was done: pieces or bytes, and the time that they took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work([(u64, Span); ITEMS.len()]);

impl Work {
    /// Adds pieces of work that take `each`; returns the time of all.
    pub(crate) fn add(&mut self, item: WorkItem, count: u64, each: Span) -> Span {
        let (counted, spent) = &mut self.0[item as usize];
        let time = Span(each.0.saturating_mul(count));
        *counted += count;
        *spent = *spent + time;
        time
    }

    /// The items of which there was some.
    pub(crate) fn records(&self) -> Vec<WorkRecord> {
        let all = ITEMS.iter().map(|&(item, name)| (name, self.0[item as usize]));
        let done = all.filter(|(_, (count, _))| *count > 0);
        done.map(|(name, (count, spent))| WorkRecord { item: name.into(), count, spent_seconds: spent.as_secs_f64() })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_has_its_own_place() {
        for (place, (item, _)) in ITEMS.iter().enumerate() {
            assert_eq!(*item as usize, place);
        }
    }

    #[test]
    fn work_is_counted_by_item() {
        let mut work = Work::default();
        assert_eq!(work.add(WorkItem::SendByte, 100, Span(3)), Span(300));
        work.add(WorkItem::SendByte, 100, Span(3));
        let records = work.records();
        assert_eq!((records.len(), &*records[0].item, records[0].count), (1, "send.byte", 200));
        assert!((records[0].spent_seconds - 600e-12).abs() < 1e-18);
    }
}
