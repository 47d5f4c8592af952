//! Sleeping on file descriptors: `poll` of the C library, whose `struct pollfd` is that of POSIX.

#![allow(unsafe_code, reason = "a call into the C library")]

use std::{
    ffi::{c_int, c_short, c_ulong},
    os::fd::RawFd,
    time::Duration,
};

const POLLIN: c_short = 1;

#[repr(C)]
struct PollFd {
    fd: c_int,
    events: c_short,
    revents: c_short,
}

/// Sleeps until one of these files can be read or fails, or until `timeout` (rounded up to milliseconds) is over.
pub(crate) fn wait_readable(files: [RawFd; 2], timeout: Duration) {
    let mut polled = files.map(|fd| PollFd { fd, events: POLLIN, revents: 0 });
    let milliseconds = timeout.as_micros().div_ceil(1000).try_into().unwrap_or(c_int::MAX);
    // SAFETY: the array lives through the call and has this length. A wrong descriptor is reported, not followed; what the
    // result says does not matter, since the caller looks again in any case.
    unsafe { poll(polled.as_mut_ptr(), polled.len() as c_ulong, milliseconds) };
}

unsafe extern "C" {
    fn poll(files: *mut PollFd, count: c_ulong, timeout: c_int) -> c_int;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::Write,
        os::{fd::AsRawFd, unix::net::UnixStream},
        time::Instant,
    };

    #[test]
    fn a_byte_ends_the_sleep_and_so_does_the_time() {
        let (mut writer, reader) = UnixStream::pair().unwrap();
        let files = [reader.as_raw_fd(), reader.as_raw_fd()];
        let start = Instant::now();
        wait_readable(files, Duration::from_millis(3));
        assert!(start.elapsed() >= Duration::from_millis(3));
        writer.write_all(&[1]).unwrap();
        wait_readable(files, Duration::from_secs(60));
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
