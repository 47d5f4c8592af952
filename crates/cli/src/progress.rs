//! What is shown while a run goes on, on standard error and only when that is a terminal.

use evb_experiment::Plan;
use evb_node::{Observer, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{io::IsTerminal, sync::atomic::AtomicBool, time::Duration};

/// Draws a bar with events, rate, throughput and the time left.
pub(crate) struct RunProgress<'a> {
    bar: ProgressBar,
    /// Length of the run in seconds, when it ends by time.
    duration: Option<f64>,
    stop: &'a AtomicBool,
    last: Progress,
    quiet: bool,
}

impl<'a> RunProgress<'a> {
    pub(crate) fn new(plan: &Plan, stop: &'a AtomicBool, quiet: bool) -> Self {
        let duration = plan.trigger.duration.map(evb_core::Span::as_secs_f64);
        let length = match (plan.building.events, duration) {
            (Some(events), _) => Some(events),
            (None, Some(seconds)) => Some((seconds * 1000.0) as u64),
            (None, None) => None,
        };
        let target = match std::io::stderr().is_terminal() && !quiet {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(length, target).with_style(style(length.is_some()));
        bar.enable_steady_tick(Duration::from_millis(250));
        Self {
            bar,
            duration: duration.filter(|_| plan.building.events.is_none()),
            stop,
            last: Progress::default(),
            quiet,
        }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn style(bounded: bool) -> ProgressStyle {
    let template = match bounded {
        true => "{bar:30} {percent:>3} %  {msg}  {eta} left",
        false => "{spinner} {msg}  {elapsed}",
    };
    ProgressStyle::with_template(template).expect("the template is valid").progress_chars("=> ")
}

impl Observer for RunProgress<'_> {
    fn progress(&mut self, now: &Progress) {
        let seconds = now.seconds - self.last.seconds;
        if seconds < 0.2 {
            return;
        }
        let rate = (now.ended - self.last.ended) as f64 / seconds;
        let throughput = now.bytes.saturating_sub(self.last.bytes) as f64 / seconds;
        let incomplete = match now.incomplete {
            0 => String::new(),
            count => format!("  {count} incomplete"),
        };
        let state = if now.stopping { "  draining" } else { "" };
        self.bar.set_message(format!(
            "{} events  {}Hz  {}B/s{incomplete}{state}",
            now.ended,
            evb_report::metric(rate),
            evb_report::metric(throughput)
        ));
        self.bar.set_position(self.duration.map_or(now.ended, |_| (now.seconds * 1000.0) as u64));
        self.last = *now;
    }

    fn note(&mut self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| eprintln!("evb: {text}"));
        }
    }

    fn stop(&self) -> &AtomicBool {
        self.stop
    }
}
