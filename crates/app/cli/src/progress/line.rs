//! One line of progress: redrawn on a terminal, or written from time to time otherwise.

use super::screen::{Screen, columns};
use clap::{Args, ValueEnum};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    io::IsTerminal,
    sync::{LazyLock, Mutex, Once},
    thread,
    time::{Duration, Instant},
};

/// Time between two written lines.
const EVERY: Duration = Duration::from_secs(10);
/// Time between two written lines by default, so that short commands stay silent.
const SELDOM: Duration = Duration::from_secs(30);
/// Time between two drawings of a line on a terminal.
const TICK: Duration = Duration::from_millis(250);
/// Columns of a line beside its message: bar, part and time left.
const AROUND: usize = 38;

/// All lines on the terminal, so that other output can be written between them.
static LINES: LazyLock<MultiProgress> = LazyLock::new(|| {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::term_like(Box::new(Screen::default())),
        false => ProgressDrawTarget::hidden(),
    };
    MultiProgress::with_draw_target(target)
});

/// The options of progress.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ProgressArgs {
    /// How to show progress on standard error. `auto` is a bar on a terminal, and otherwise a line every 30 s
    #[arg(long, value_enum, value_name = "HOW", default_value_t = How::Auto)]
    progress: How,
    /// Show neither progress nor notes
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum How {
    /// A bar on a terminal; otherwise a line every 30 s
    Auto,
    /// A line every 10 s, and one at the end
    Plain,
    /// Nothing
    None,
}

impl ProgressArgs {
    /// The same options, but nothing is shown unless `shown`.
    pub(crate) fn only_if(self, shown: bool) -> Self {
        Self { quiet: self.quiet || !shown, ..self }
    }

    /// The same options, but nothing is shown without a bar.
    pub(crate) fn drawn_only(self) -> Self {
        self.only_if(self.draws())
    }

    fn draws(self) -> bool {
        self.progress == How::Auto && !self.quiet && std::io::stderr().is_terminal()
    }

    fn every(self) -> Duration {
        if self.progress == How::Plain { EVERY } else { SELDOM }
    }

    fn writes(self) -> bool {
        !self.quiet && self.progress != How::None && !self.draws()
    }
}

/// Writes a line to standard error, above all lines of progress.
pub(crate) fn say(text: &str) {
    suspend(|| eprintln!("evb: {text}"));
}

/// Calls a function that writes to the terminal, with the lines of progress hidden.
pub(crate) fn suspend(write: impl FnOnce()) {
    LINES.suspend(write);
}

/// Removes all lines of progress from the terminal.
pub(crate) fn clear() {
    let _no_terminal = LINES.clear();
}

/// A line of progress. Dropping it removes it.
pub(crate) struct Line {
    bar: ProgressBar,
    /// The first drawing, made when there is something to show.
    drawn: Once,
    written: Option<Mutex<Written>>,
}

/// The state of a line that is written from time to time.
struct Written {
    start: Instant,
    last: Instant,
    every: Duration,
    /// The newest message that was not written.
    pending: String,
    /// The end is written, too.
    ends: bool,
}

impl Line {
    /// A line with a bar of this length; without one it only turns.
    pub(crate) fn new(length: Option<u64>, how: ProgressArgs) -> Self {
        let bar = match how.draws() {
            true => LINES.add(ProgressBar::no_length()),
            false => ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()),
        };
        bar.set_style(style(length.is_some()));
        length.into_iter().for_each(|length| bar.set_length(length));
        let now = Instant::now();
        let written = || {
            Mutex::new(Written {
                start: now,
                last: now,
                every: how.every(),
                pending: String::new(),
                ends: how.progress == How::Plain,
            })
        };
        Self { bar, drawn: Once::new(), written: how.writes().then(written) }
    }

    pub(crate) fn set_length(&self, length: u64) {
        self.bar.set_length(length);
    }

    /// Shows the position and a message.
    pub(crate) fn show(&self, position: u64, message: &str) {
        self.bar.set_position(position);
        self.bar.set_message(self.fitting(message));
        self.drawn.call_once(|| self.tick());
        let Some(written) = &self.written else { return };
        let mut written = written.lock().expect("no thread panics while it holds the lock");
        written.pending = format!("{}{message}", self.part(written.start));
        if written.last.elapsed() >= written.every {
            written.write();
            written.ends = true;
        }
    }

    /// Lets a bar move by itself if it is visible and the system gives a thread for it.
    fn tick(&self) {
        let has_thread = || thread::Builder::new().spawn(|| ()).is_ok_and(|thread| thread.join().is_ok());
        if !self.bar.is_hidden() && has_thread() {
            self.bar.enable_steady_tick(TICK);
        }
    }

    /// The part of a message that fits beside the bar: a wrapped line would leave pieces behind.
    fn fitting(&self, message: &str) -> String {
        message.chars().take(usize::from(columns()).saturating_sub(AROUND)).collect()
    }

    /// The part that is done, and the time left.
    fn part(&self, start: Instant) -> String {
        let Some(length) = self.bar.length().filter(|&length| length > 0) else { return String::new() };
        let part = (self.bar.position() as f64 / length as f64).min(1.0);
        let left = start.elapsed().as_secs_f64() * (1.0 - part) / part;
        let left = if left.is_finite() { format!(", {left:.0} s left") } else { String::new() };
        format!("{:.0} %{left}: ", part * 100.0)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        if let Some(written) = &self.written {
            let mut written = written.lock().expect("no thread panics while it holds the lock");
            if written.ends {
                written.write();
            }
        }
    }
}

impl Written {
    fn write(&mut self) {
        let text = std::mem::take(&mut self.pending);
        if !text.is_empty() {
            say(&text);
        }
        self.last = Instant::now();
    }
}

fn style(bounded: bool) -> ProgressStyle {
    let template = match bounded {
        true => "{bar:16} {percent:>3} %  {msg}  {eta} left",
        false => "{spinner} {msg}  {elapsed}",
    };
    ProgressStyle::with_template(template).expect("the template is valid").progress_chars("=> ")
}
