//! Words of bus, network, mailbox and registers: they survive a round trip, have their documented layout, and invalid
//! ones are refused.

use evb_velo::{
    AddressError, AddressMap, Answer, Completer, Endpoint, FIXED_SHIFT, Fault, Faults, Header, HeaderError, LINE_BYTES,
    Packet, PacketError, Requester, Target,
    bus::{self, BusError, Command},
    lanes::{self, CountError},
    mailbox::{self, MOST_SLOTS, Ring, RingError, SLOT_WORDS},
    registers::{Control, TableEntry, Window},
};
use proptest::prelude::*;

/// VELO 2008, section 3: n = 28 and t = 20.
fn map() -> AddressMap {
    AddressMap::new(28, 20).unwrap()
}

/// A target of `map()`, and the bytes that are stored there.
fn stores() -> impl Strategy<Value = (Target, Vec<u8>)> {
    let place = (1..=LINE_BYTES).prop_flat_map(|length| (Just(length), 0..length));
    let place = place.prop_flat_map(|(length, offset)| (Just((length, offset)), 1..=length - offset));
    (0..256_u64, 0..256_u64, place).prop_flat_map(|(node, thread, ((length, offset), data))| {
        let bytes = prop::collection::vec(any::<u8>(), data as usize);
        (Just(Target { node, thread, length, offset }), bytes)
    })
}

/// The words of a transaction with ones in all unused bits.
fn with_noise(mut words: Vec<u64>) -> Vec<u64> {
    let command = Command::decode(words[0], map()).unwrap();
    for (word, mask) in words[1..].iter_mut().zip(lanes::masks(command.address, command.data)) {
        *word |= !mask;
    }
    words
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A store goes from bytes over the bus and the network into a slot and back, whatever the unused bits of the bus
    /// are.
    #[test]
    fn a_store_arrives_in_a_slot((target, bytes) in stores(), thread in 0..256_u64, count in 0..20_000_u64) {
        let address = map().encode(target).unwrap();
        let words = with_noise(bus::store(map(), thread, address, &bytes).unwrap());
        let packet = Requester::new(map(), 7).post(&words).unwrap();
        prop_assert_eq!(packet.header.source, Endpoint { node: 7, thread });
        prop_assert_eq!(packet.bytes(), &bytes[..]);
        let words = packet.words(map()).unwrap();
        prop_assert_eq!(Packet::from_words(&words, map()), Ok(packet));
        let ring = Ring::new(0x40_0000, 4).unwrap();
        let mut memory = vec![0; (ring.slots() as usize) * SLOT_WORDS];
        let slot = ring.slot(count);
        for (at, word) in mailbox::writes(slot, &words) {
            prop_assert!((slot..slot + 128).contains(&at) && at % 8 == 0);
            memory[(at - 0x40_0000) as usize / 8] = word;
        }
        let start = (slot - 0x40_0000) as usize / 8;
        let slot: [u64; SLOT_WORDS] = memory[start..start + SLOT_WORDS].try_into().unwrap();
        prop_assert_eq!(mailbox::read(&slot, map()), Ok(Some(packet)));
        let in_slot: Vec<_> = slot.iter().flat_map(|word| word.to_le_bytes()).collect();
        prop_assert_eq!(&in_slot[8 + target.offset as usize..][..bytes.len()], &bytes[..], "the message begins at byte 8");
        prop_assert!(slot.iter().filter(|word| **word != 0).count() <= words.len(), "nothing else is written");
    }

    #[test]
    fn commands_are_one_to_one(word in any::<u64>()) {
        let low = word & !(0x3ff << 48);
        for word in [word, low, low & !(0xfff << 36)] {
            match Command::decode(word, map()) {
                Ok(command) => prop_assert_eq!(command.encode(map()), Ok(word)),
                Err(_) => prop_assert_ne!(word >> 36 & 0x3f_ffff, 0, "bits above the windows"),
            }
        }
    }

    /// The completer takes any words, and drops packets for the first reason that applies.
    #[test]
    fn any_words_are_delivered_or_dropped(words in prop::collection::vec(any::<u64>(), 0..12), good in any::<u16>()) {
        let mut completer = Completer::new(map(), 0);
        (0..128).for_each(|thread| assert!(completer.open(thread, 32)));
        for mask in [u64::MAX, !(0x3fff << 26), !(0x20_3f << 18)] {
            let mut words = words.clone();
            words.iter_mut().take(1).for_each(|word| {
                *word = if good % 2 == 0 { *word & mask & !(1 << 62) | 1 << 63 } else { *word & mask };
            });
            let word = words.first().copied().unwrap_or(0);
            let (offset, length, data) = (word & 63, (word >> 6 & 63) + 1, (word >> 12 & 63) + 1);
            let wanted = match word {
                _ if word >> 26 & 0x3fff != 0 => Answer::Dropped(Fault::Node),
                _ if word >> 18 & 0xff >= 128 => Answer::Dropped(Fault::Closed),
                _ if word >> 62 != 2 || offset + data > length || words.len() == 1 => Answer::Dropped(Fault::Data),
                _ => Answer::Delivered,
            };
            prop_assert_eq!(completer.accept_words(&words), wanted, "{:#x}", word);
        }
    }
}

#[test]
fn data_stay_in_their_lanes() {
    assert_eq!(lanes::pack(6, &[1, 2, 3]), [0x0201 << 48, 3]);
    assert_eq!(lanes::masks(6, 3), [0xffff << 48, 0xff]);
    assert_eq!(lanes::MOST_WORDS, 9);
    assert_eq!(lanes::unpack(6, 3, &[0]), Err(CountError { found: 1, expected: 2 }));
    let address = map().encode(Target { node: 3, thread: 5, length: 10, offset: 6 }).unwrap();
    let words = bus::store(map(), 9, address, &[1, 2, 3]).unwrap();
    assert_eq!(words, [2 << 58 | 9 << 28 | address, 0x0201 << 48, 3]);
    let packet = Requester::new(map(), 1).post(&words).unwrap().words(map()).unwrap();
    assert_eq!(packet, [1 << 63 | 0x109 << 40 | 0x305 << 18 | 2 << 12 | 9 << 6 | 6, 0x0201 << 48, 3]);
    let writes: Vec<_> = mailbox::writes(0x1000, &packet).collect();
    assert_eq!(writes, [(0x1008, 0x0201 << 48), (0x1010, 3), (0x1000, packet[0])], "the header last");
}

#[test]
fn rings_have_whole_pages_and_aligned_bases() {
    let ring = Ring::new(0xff_ffff_8000, 8).unwrap();
    assert_eq!((ring.page(), ring.mask(), ring.slots()), (0xfff_fff8, 7, 256));
    assert_eq!(ring.slot(257), 0xff_ffff_8080, "it wraps");
    assert_eq!(Ring::new(0, 128).unwrap().slots(), MOST_SLOTS);
    let entry = TableEntry { ring, enabled: true };
    assert_eq!(entry.encode(), 1 << 35 | 7 << 28 | 0xfff_fff8);
    assert_eq!(TableEntry::decode(entry.encode()), Ok(entry));
    assert_eq!(TableEntry::decode(0), Ok(TableEntry::default()));
    assert_eq!(TableEntry::decode(6 << 28), Err(RingError::Pages { pages: 7 }));
    assert_eq!(Ring::new(0x1000, 2), Err(RingError::Base { base: 0x1000, bytes: 0x2000 }));
    assert_eq!(Ring::new(0, 256), Err(RingError::Pages { pages: 256 }));
    assert!(Ring::new(1 << 40, 1).is_err());
}

#[test]
fn registers_stand_where_they_are_said_to() {
    assert_eq!(Window::Tail.address(map(), 0xab), Ok(0x3ab));
    assert_eq!(Control::LinkRepeats.address(map()), Ok(8));
    let small = AddressMap::new(20, 13).unwrap();
    assert_eq!(Control::Sent.address(small), Ok(1));
    assert_eq!(Control::Received.address(small), Err(AddressError::Thread { thread: 2, threads: 2 }));
    assert!(Window::ALL.iter().zip(0..).all(|((window, _), index)| *window as u64 == index));
    assert!(Control::ALL.iter().zip(0..).all(|((control, _), index)| *control as u64 == index));
}

#[test]
fn head_and_tail_wrap_and_go_on_when_a_mailbox_is_opened_again() {
    let map = AddressMap::new(13, 12).unwrap();
    let mut completer = Completer::new(map, 0);
    assert!(completer.open(0, 32));
    let packet = Requester::new(map, 0).store(0, 0, &[1]).unwrap();
    for count in 0..8192 + 5 {
        assert_eq!((completer.tail(0), completer.waiting(0)), (count % 8192, 0));
        assert_eq!(completer.accept(&packet), Answer::Delivered);
        assert_eq!(completer.take(0), Some(packet));
    }
    completer.set_head(0, 5 + 8192 - 32);
    assert_eq!(completer.accept(&packet), Answer::Full, "32 slots, counted across the wrap");
    completer.set_head(0, 5 + 8192 - 31);
    assert_eq!(completer.accept(&packet), Answer::Delivered);
    assert!(completer.open(0, 64));
    assert_eq!((completer.tail(0), completer.waiting(0), completer.take(0)), (6, 0, None));
    assert!(!completer.open(0, 48) && !completer.open(0, 8192) && !completer.open(1, 32));
    assert_eq!(completer.received(), 8192 + 5 + 1);
}

#[test]
fn the_first_fault_counts() {
    let mut completer = Completer::new(map(), 3);
    let word = |node: u64, length: u64| 1 << 63 | node << 26 | 5 << 12 | (length - 1) << 6;
    assert_eq!(completer.accept_words(&[word(4, 2), 0]), Answer::Dropped(Fault::Node));
    assert_eq!(completer.accept_words(&[word(3 | 1 << 13, 8), 0]), Answer::Dropped(Fault::Node), "beyond the map");
    assert_eq!(completer.accept_words(&[word(3, 2), 0]), Answer::Dropped(Fault::Closed));
    assert!(completer.open(0, 32));
    assert_eq!(completer.accept_words(&[word(3, 2), 0]), Answer::Dropped(Fault::Data));
    assert_eq!(completer.accept_words(&[word(3, 8) | 1 << 62, 0]), Answer::Dropped(Fault::Data));
    assert_eq!(completer.accept_words(&[word(3, 8), 0]), Answer::Delivered);
    assert_eq!(completer.faults(), Faults { node: 2, closed: 1, data: 2 });
}

#[test]
fn errors_say_what_to_do() {
    let requester = Requester::new(map(), 0);
    let post = |words: &[u64]| requester.post(words).expect_err("it means nothing").to_string();
    let packet = |words: &[u64]| Packet::from_words(words, map()).expect_err("it is none").to_string();
    let small = AddressMap::new(63, 40).unwrap();
    let texts = [
        post(&[]),
        post(&[1 << 36, 0]),
        post(&[0]),
        post(&[1 << 58, 0]),
        packet(&[]),
        packet(&[1 << 63]),
        Command::decode(0, small).unwrap_err().to_string(),
        Command { thread: 0, address: 0, data: 65 }.encode(map()).unwrap_err().to_string(),
        Ring::new(0, 3).unwrap_err().to_string(),
        Ring::new(0x1000, 2).unwrap_err().to_string(),
    ];
    assert_eq!(
        texts,
        [
            "a transaction without words: begin with its command",
            "address 0x1000000000 in a BAR of 0x1000000000 B: count addresses from its base",
            "0 data words where offset and length ask for 1: send a word for each 8 B that the data touch",
            "2 B of data at offset 0 of a message of 1 B: send 1 B at least, and end within the message",
            "a packet without words: begin with its header",
            "0 data words where offset and length ask for 1: send a word for each 8 B that the data touch",
            "windows of 91 bits: commands have 58, so use n + t <= 70",
            "a store of 65 B: store 1 to 64 B",
            "a ring of 3 pages: use a power of two up to 128",
            "a ring of 0x2000 B at 0x1000: align it to its size, below 0x10000000000",
        ]
    );
    assert_eq!(requester.post(&[]), Err(BusError::Empty));
    assert_eq!(Packet::from_words(&[1 << FIXED_SHIFT], map()), Err(HeaderError::Fixed { word: 1 << 62 }.into()));
    assert_eq!(Packet::from_words(&[], map()), Err(PacketError::Empty));
    assert!(Header::has_fixed_bits(1 << 63));
}
