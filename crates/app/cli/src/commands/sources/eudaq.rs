//! `evb sources try` for a file of EUDAQ: its producers.

use super::TryArgs;
use crate::{failure::Failure, terminal};
use evb_record::Outcome;
use evb_sources::{EudaqContents, EudaqProducer, EudaqSummary};
use std::path::Path;

/// Says which producers a file has. It is good if the file can be read to its end and has events of this producer.
pub(super) fn try_file(
    args: &TryArgs,
    (file, producer): (&Path, &EudaqProducer),
    data_directory: &Path,
) -> Result<Outcome, Failure> {
    let file = args.data.as_deref().unwrap_or(file);
    let contents = EudaqContents::of_file(file, data_directory).map_err(Failure::new)?;
    match args.json {
        true => println!("{}", serde_json::to_string(&contents).map_err(Failure::new)?),
        false => terminal::show_styled(&describe(&contents, producer)),
    }
    Ok((has(&contents, producer) && contents.error.is_none()).into())
}

fn has(contents: &EudaqContents, wanted: &EudaqProducer) -> bool {
    contents.producers.iter().any(|found| wanted.covers(&found.producer))
}

fn describe(contents: &EudaqContents, wanted: &EudaqProducer) -> String {
    let mut text: String = contents.producers.iter().map(line).collect();
    if let Some(error) = &contents.error {
        text += &format!("not good: {error}\n");
    } else if has(contents, wanted) {
        text += "good: the file is whole and has events of the producer\n";
    } else {
        let device = wanted.device.map(|device| format!(" and device {device}")).unwrap_or_default();
        text += &format!("not good: the file has no events of producer {:?}{device}\n", wanted.name);
    }
    text
}

fn line(EudaqSummary { producer, events, bytes, numbers, marks }: &EudaqSummary) -> String {
    let device = producer.device.map(|device| format!(", device = {device}")).unwrap_or_default();
    let marks = marks.map(|(first, last)| format!(", marks {first} to {last}")).unwrap_or_default();
    let mean = bytes / events;
    format!(
        "producer = {:?}{device}: {events} events of {mean} bytes on average, numbers {} to {}{marks}\n",
        producer.name, numbers.0, numbers.1
    )
}
