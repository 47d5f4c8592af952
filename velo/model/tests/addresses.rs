//! The address map: every target has its own address, and any other target is refused.

use evb_velo::{AddressError, AddressMap, LINE_BYTES, PAGE_BITS, Target};
use proptest::prelude::*;

/// VELO 2008, section 3: n = 28 and t = 20.
fn example() -> AddressMap {
    AddressMap::new(28, 20).expect("the example of the paper")
}

fn maps() -> impl Strategy<Value = AddressMap> {
    (PAGE_BITS..=63)
        .prop_flat_map(|n| (Just(n), PAGE_BITS..=n))
        .prop_map(|(n, t)| AddressMap::new(n, t).expect("in range"))
}

fn targets(map: AddressMap) -> impl Strategy<Value = Target> {
    let line = (1..=LINE_BYTES).prop_flat_map(|length| (Just(length), 0..length));
    (0..map.nodes(), 0..map.threads_per_node(), line).prop_map(|(node, thread, (length, offset))| Target {
        node,
        thread,
        length,
        offset,
    })
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded((map, target) in maps().prop_flat_map(|map| (Just(map), targets(map)))) {
        let address = map.encode(target).expect("in range");
        prop_assert!(address < map.bar_bytes());
        prop_assert_eq!(map.decode(address), Ok(target));
    }

    #[test]
    fn what_is_decoded_is_encoded((map, address) in maps().prop_flat_map(|map| (Just(map), 0..map.bar_bytes()))) {
        if let Ok(target) = map.decode(address) {
            prop_assert_eq!(map.encode(target), Ok(address));
        }
    }

    #[test]
    fn what_is_out_of_range_is_refused(
        (map, good) in maps().prop_flat_map(|map| (Just(map), targets(map))),
        beyond in prop_oneof![Just(0), 0..1_u64 << 32],
    ) {
        let node = Target { node: map.nodes() + beyond, ..good };
        let thread = Target { thread: map.threads_per_node() + beyond, ..good };
        let length = Target { length: LINE_BYTES + 1 + beyond, ..good };
        let offset = Target { offset: good.length + beyond, ..good };
        let refused = [node, thread, length, offset].map(|target| map.encode(target).expect_err("out of range"));
        let is_right = matches!(
            refused,
            [
                AddressError::Node { .. },
                AddressError::Thread { .. },
                AddressError::Length { .. },
                AddressError::Offset { .. },
            ]
        );
        prop_assert!(is_right, "{:?}", refused);
        let address = map.bar_bytes() + beyond;
        prop_assert_eq!(map.decode(address), Err(AddressError::Outside { address, bytes: map.bar_bytes() }));
    }
}

#[test]
fn bits_out_of_order_make_no_map() {
    let bits = || (0..80).chain([u32::MAX]);
    for (n, t) in bits().flat_map(|n| bits().map(move |t| (n, t))) {
        assert_eq!(AddressMap::new(n, t).is_ok(), (12..=n).contains(&t) && n < 64, "n = {n}, t = {t}");
    }
}

#[test]
fn the_example_of_the_paper_comes_out() {
    let map = example();
    assert_eq!((map.nodes(), map.threads_per_node(), map.threads()), (256, 256, 65_536));
    assert_eq!(map.bar_bytes(), 256 << 20);
}

#[test]
fn fields_stand_where_figure_2_has_them() {
    let target = Target { node: 0xab, thread: 0xcd, length: 0x2f, offset: 0x10 };
    assert_eq!(example().encode(target), Ok(0xab << 20 | 0xcd << 12 | 0x2e << 6 | 0x10));
}

/// The page is granted by the driver: a user who could leave it could send as somebody else.
#[test]
fn length_and_offset_never_leave_the_page() {
    let pages = |length| {
        let address = move |offset| example().encode(Target { node: 3, thread: 5, length, offset }).expect("in range");
        (0..length).map(move |offset| address(offset) >> PAGE_BITS)
    };
    assert!((1..=LINE_BYTES).flat_map(pages).all(|page| page == 3 << 8 | 5));
}

#[test]
fn errors_say_what_to_do() {
    let empty = example().encode(Target { node: 0, thread: 0, length: 0, offset: 0 });
    let texts = [
        AddressMap::new(28, 11).map(|_| 0),
        empty,
        example().decode(1 << 28).map(|_| 0),
        example().decode(7).map(|_| 0),
    ]
    .map(|result| result.expect_err("out of range").to_string());
    assert_eq!(
        texts,
        [
            "n = 28 and t = 11 make no address: use 12 <= t <= n <= 63",
            "message of 0 B: send 1 to 64 B",
            "address 0x10000000 in a BAR of 0x10000000 B: count addresses from its base",
            "offset 7 in a message of 1 B: begin within the message",
        ]
    );
}
