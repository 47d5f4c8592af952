//! Timers of the system.

/// Lets the sleeps of this thread end on time. Linux may prolong each by 50 us otherwise, so that one interrupt wakes several
/// threads (`PR_SET_TIMERSLACK` in `prctl(2)`).
pub fn sleep_punctually() {
    // Where the system refuses it, sleeps end later.
    #[cfg(target_os = "linux")]
    let _as_it_was = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn the_slack_is_that_of_the_thread() {
        let before = rustix::thread::current_timer_slack().unwrap();
        std::thread::spawn(|| {
            super::sleep_punctually();
            assert_eq!(rustix::thread::current_timer_slack().unwrap(), 1);
        })
        .join()
        .unwrap();
        assert_eq!(rustix::thread::current_timer_slack().unwrap(), before);
    }
}
