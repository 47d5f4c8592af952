//! The side of a filter program, over any pipes: it reads events and answers with verdicts.

use crate::{
    Hello,
    area::Events,
    wire::{
        Decided, EventBytes, MOST_VERDICTS, NO_EVENT_THERE, Order, WireError, decode_event, decode_events,
        decode_hello, decode_places, descriptor, encode_ready, encode_verdicts, order_head,
    },
};
use evb_core::EventId;
use std::{
    io::{self, ErrorKind, Read, Write},
    time::{Duration, Instant},
};

/// Time after which verdicts are sent although more events of the message wait: the builder sees that work goes on.
const SHOW_WORK: Duration = Duration::from_millis(100);

/// The decision about an event: a stream, or none to reject it.
pub(crate) type Decide<'a> = dyn FnMut(&EventBytes<'_>) -> Result<Option<u16>, ProgramError> + 'a;

/// The reason why a program ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    #[error("the pipe of the builder is broken: {0}")]
    Pipe(#[from] io::Error),
    #[error("the builder says what this filter does not understand: {0}")]
    Wire(#[from] WireError),
}

/// Reads the hello of the builder, and maps the area of memory if it announces one; `None` if the input ends before.
pub(crate) fn begin(input: &mut impl Read) -> Result<Option<(Hello, Option<Events>)>, ProgramError> {
    let mut body = Vec::new();
    match read(input, &mut body)? {
        Some(Order::Hello) => Ok(Some((decode_hello(&body)?, Events::open(descriptor(&body), &body)))),
        Some(Order::Events | Order::Places) => Err(WireError::Magic.into()),
        None => Ok(None),
    }
}

/// Tells the builder that the program is ready.
fn get_ready(in_memory: bool, output: &mut impl Write) -> io::Result<()> {
    let mut message = Vec::new();
    encode_ready(in_memory, &mut message);
    send(output, &message)
}

/// Says that the program is ready, and decides about events until the input ends.
pub(crate) fn serve(
    input: &mut impl Read,
    output: &mut impl Write,
    memory: Option<&Events>,
    decide: &mut Decide<'_>,
) -> Result<(), ProgramError> {
    let mut body = Vec::new();
    get_ready(memory.is_some(), output)?;
    while let Some(order) = read(input, &mut body)? {
        let mut verdicts = Verdicts::new(output);
        match (order, memory) {
            (Order::Events, _) => decode_events(&body)?.iter().try_for_each(|event| verdicts.add(event, decide))?,
            (Order::Places, Some(memory)) => {
                for place in decode_places(&body)? {
                    let found = memory.at(place).and_then(decode_event).ok_or(NO_EVENT_THERE)?;
                    verdicts.add(&found.0, decide)?;
                }
            }
            (Order::Hello, _) | (Order::Places, None) => return Err(order.unexpected().into()),
        }
        verdicts.flush()?;
    }
    Ok(())
}

/// The verdicts about the events of a message that are not sent yet.
struct Verdicts<'a, W> {
    output: &'a mut W,
    waiting: Vec<Decided>,
    sent: Instant,
}

impl<'a, W: Write> Verdicts<'a, W> {
    fn new(output: &'a mut W) -> Self {
        Self { output, waiting: Vec::new(), sent: Instant::now() }
    }

    /// Decides about an event. If that fails, the verdicts about the events before it are sent.
    fn add(&mut self, event: &EventBytes<'_>, decide: &mut Decide<'_>) -> Result<(), ProgramError> {
        match decide(event) {
            Ok(stream) => self.waiting.push((EventId(event.number), stream)),
            Err(failed) => return self.flush().map_err(Into::into).and(Err(failed)),
        }
        if self.waiting.len() == MOST_VERDICTS || self.sent.elapsed() > SHOW_WORK {
            self.flush()?;
            self.sent = Instant::now();
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut message = Vec::new();
        encode_verdicts(&self.waiting, &mut message);
        self.waiting.clear();
        send(self.output, &message)
    }
}

fn send(output: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    output.write_all(bytes).and_then(|()| output.flush())
}

/// Reads a message: its kind, and its body. None at the end of the input.
fn read(input: &mut impl Read, body: &mut Vec<u8>) -> Result<Option<Order>, ProgramError> {
    let mut head = [0; 8];
    match input.read_exact(&mut head) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let (order, length) = order_head(head)?;
    body.clear();
    input.take(length as u64).read_to_end(body)?;
    if body.len() < length { Ok(None) } else { Ok(Some(order)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{encode_events, encode_hello};
    use crate::{Incoming, Received};
    use bytes::Bytes;
    use evb_protocol::Built;

    #[test]
    fn a_program_answers_every_event_until_its_input_ends() {
        let hello = Hello { run: 1, builder: 2, unit: 3, streams: vec!["physics".into()] };
        let event = |number| Built::<Bytes> {
            event: EventId(number),
            opened: evb_core::Time::ZERO,
            complete: true,
            asked: evb_protocol::Region::ALL,
            fragments: vec![],
        };
        let events = [event(1), event(2), event(3)];
        let (mut input, mut output) = (Vec::new(), Vec::new());
        encode_hello(&hello, 0, &mut input);
        encode_events(events[..2].iter(), &mut input);
        encode_events(events[2..].iter(), &mut input);
        let mut input = &input[..];
        let (found, memory) = begin(&mut input).unwrap().expect("a hello");
        assert!(found == hello && memory.is_none());
        serve(&mut input, &mut output, None, &mut |event| Ok((event.number == 2).then_some(0))).unwrap();
        let mut incoming = Incoming::default();
        incoming.push(&output);
        assert_eq!(incoming.next_message(), Ok(Some(Received::Ready { in_memory: false })));
        let verdicts = [(EventId(1), None), (EventId(2), Some(0))].to_vec();
        assert_eq!(incoming.next_message(), Ok(Some(Received::Verdicts(verdicts))));
        assert_eq!(incoming.next_message(), Ok(Some(Received::Verdicts(vec![(EventId(3), None)]))));
        assert_eq!(incoming.next_message(), Ok(None));
    }

    #[test]
    fn invalid_messages_are_errors() {
        assert!(begin(&mut &b"this is not the hello of a builder"[..]).is_err());
        assert!(begin(&mut &b""[..]).unwrap().is_none());
        let mut events = Vec::new();
        encode_events([].iter(), &mut events);
        assert!(begin(&mut &events[..]).is_err(), "events before the hello");
    }
}
