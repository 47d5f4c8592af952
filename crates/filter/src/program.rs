//! The side of a filter program, over any pipes: it reads events and answers with verdicts.

use crate::{
    Hello,
    wire::{
        Decided, EventBytes, MOST_VERDICTS, WireError, decode_events, decode_hello, encode_ready, encode_verdicts,
        order_head,
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
    /// The code that decides has failed.
    #[cfg(feature = "wasm")]
    #[error("{0}")]
    Failed(String),
}

/// Reads the hello of the builder; none if the input ends before.
pub(crate) fn begin(input: &mut impl Read) -> Result<Option<Hello>, ProgramError> {
    let mut body = Vec::new();
    let Some(is_hello) = read(input, &mut body)? else { return Ok(None) };
    if !is_hello {
        return Err(WireError::Magic.into());
    }
    Ok(Some(decode_hello(&body)?))
}

/// Tells the builder that the program is ready.
fn get_ready(output: &mut impl Write) -> io::Result<()> {
    let mut message = Vec::new();
    encode_ready(&mut message);
    send(output, &message)
}

/// Says that the program is ready, and decides about events until the input ends.
pub(crate) fn serve(
    input: &mut impl Read,
    output: &mut impl Write,
    decide: &mut Decide<'_>,
) -> Result<(), ProgramError> {
    let (mut body, mut message) = (Vec::new(), Vec::new());
    get_ready(output)?;
    while let Some(is_hello) = read(input, &mut body)? {
        if is_hello {
            return Err(WireError::Kind(1).into());
        }
        let (mut verdicts, mut sent) = (Vec::<Decided>::new(), Instant::now());
        for event in decode_events(&body)? {
            match decide(&event) {
                Ok(stream) => verdicts.push((EventId(event.number), stream)),
                Err(failed) => return flush(output, &mut verdicts, &mut message).map_err(Into::into).and(Err(failed)),
            }
            if verdicts.len() == MOST_VERDICTS || sent.elapsed() > SHOW_WORK {
                flush(output, &mut verdicts, &mut message)?;
                sent = Instant::now();
            }
        }
        flush(output, &mut verdicts, &mut message)?;
    }
    Ok(())
}

fn flush(output: &mut impl Write, verdicts: &mut Vec<Decided>, message: &mut Vec<u8>) -> io::Result<()> {
    if verdicts.is_empty() {
        return Ok(());
    }
    message.clear();
    encode_verdicts(verdicts, message);
    verdicts.clear();
    send(output, message)
}

fn send(output: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    output.write_all(bytes).and_then(|()| output.flush())
}

/// Reads a message: whether it is a hello, and its body. None at the end of the input.
fn read(input: &mut impl Read, body: &mut Vec<u8>) -> Result<Option<bool>, ProgramError> {
    let mut head = [0; 8];
    match input.read_exact(&mut head) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let (is_hello, length) = order_head(head)?;
    body.clear();
    input.take(length as u64).read_to_end(body)?;
    if body.len() < length { Ok(None) } else { Ok(Some(is_hello)) }
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
            complete: true,
            asked: evb_protocol::Region::ALL,
            fragments: vec![],
        };
        let events = [event(1), event(2), event(3)];
        let (mut input, mut output) = (Vec::new(), Vec::new());
        encode_hello(&hello, &mut input);
        encode_events(events[..2].iter(), &mut input);
        encode_events(events[2..].iter(), &mut input);
        let mut input = &input[..];
        assert_eq!(begin(&mut input).unwrap(), Some(hello));
        serve(&mut input, &mut output, &mut |event| Ok((event.number == 2).then_some(0))).unwrap();
        let mut incoming = Incoming::default();
        incoming.push(&output);
        assert_eq!(incoming.next_message(), Ok(Some(Received::Ready)));
        let verdicts = [(EventId(1), None), (EventId(2), Some(0))].to_vec();
        assert_eq!(incoming.next_message(), Ok(Some(Received::Verdicts(verdicts))));
        assert_eq!(incoming.next_message(), Ok(Some(Received::Verdicts(vec![(EventId(3), None)]))));
        assert_eq!(incoming.next_message(), Ok(None));
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        assert!(begin(&mut &b"this is no hello of a builder"[..]).is_err());
        assert!(begin(&mut &b""[..]).unwrap().is_none());
        let mut events = Vec::new();
        encode_events([].iter(), &mut events);
        assert!(begin(&mut &events[..]).is_err(), "events before the hello");
    }
}
