//! The live sources of `full.toml`.

use evb_core::{EventCounter, FirstCounter, Frequency, Span};
use evb_sources::{
    ByteOrder, ClockField, ControlLink, ControlSpec, EudaqProducer, Field, FrameChecksum, FrameEnd, Framing,
    FrontEndLink, LiveSpec, Setting, SourceSpec,
};

/// The file of EUDAQ of `full.toml`.
pub(super) fn full_eudaq() -> SourceSpec {
    let producer = EudaqProducer { name: "TluRawDataEvent".into(), device: Some(9) };
    let link = FrontEndLink::Eudaq { file: "run.raw".into(), producer: producer.into() };
    let counter = EventCounter { bits: 32, first: FirstCounter::Known(0) };
    SourceSpec::Live(Box::new(LiveSpec {
        link,
        counter,
        framing: None,
        slices: None,
        control: None,
        shared: Vec::new(),
    }))
}

/// The board of `full.toml` that listens.
pub(super) fn full_board() -> SourceSpec {
    let little = |at, bits| Field::new(at, bits, ByteOrder::Little);
    let framing = Framing {
        magic: vec![0xef, 0xbe, 0xad, 0xde],
        magic_at: 0,
        end: FrameEnd::Length { field: little(4, 16), unit: 4, adds: -8 },
        counter: Some(Field { at: 8, bits: 12, shift: 4, order: ByteOrder::Big }),
        clock: Some(ClockField { field: little(12, 48), frequency: Frequency(125_000_000_000) }),
        mark: Some(little(18, 8)),
        source: Some((little(6, 16), 7)),
        damaged: Some(little(19, 1)),
        checksum: Some(FrameChecksum {
            kind: "crc-16/ccitt-false".parse().expect("a kind"),
            at: -2,
            from: 0,
            to: -2,
            order: ByteOrder::Little,
        }),
        stream_header: 0,
        across_datagrams: false,
        hits: None,
    };
    let counter = EventCounter { bits: 12, first: FirstCounter::Any };
    let link = FrontEndLink::TcpClient("board:9000".into());
    let settings = [
        ("threshold", Setting::Integer(12)),
        ("gain", Setting::Text("high".into())),
        ("tau", Setting::Number(0.5)),
        ("veto", Setting::Flag(true)),
    ];
    let control = ControlSpec {
        link: ControlLink::Listen("0.0.0.0:9400".into()),
        timeout: Span::from_secs(1),
        settings: settings.map(|(name, value)| (name.to_owned(), value)).into(),
    };
    SourceSpec::Live(Box::new(LiveSpec {
        link,
        counter,
        framing: Some(framing),
        slices: None,
        control: Some(control),
        shared: Vec::new(),
    }))
}

/// The framing of the file of `full.toml`.
pub(super) fn full_lines() -> Framing {
    let kind = "xor-8".parse().expect("a kind");
    Framing {
        magic: Vec::new(),
        magic_at: 0,
        end: FrameEnd::Marker(b"\r\n".to_vec()),
        counter: None,
        clock: None,
        mark: None,
        source: None,
        damaged: None,
        checksum: Some(FrameChecksum { kind, at: -3, from: 1, to: -3, order: ByteOrder::Big }),
        stream_header: 56,
        across_datagrams: false,
        hits: None,
    }
}

/// The framing of the capture of `full.toml`.
pub(super) fn full_packets() -> Framing {
    let kind = "crc-32".parse().expect("a kind");
    Framing {
        magic: b"VM3".to_vec(),
        magic_at: 4,
        end: FrameEnd::Size(1400),
        counter: Some(Field::new(0, 32, ByteOrder::Big)),
        checksum: Some(FrameChecksum { kind, at: -4, from: 0, to: -4, order: ByteOrder::Big }),
        stream_header: 0,
        across_datagrams: true,
        ..full_lines()
    }
}
