//! Front ends at a serial line: a UART or a USB device that looks like one.

use super::{Listener, connector::RETRY, link::Link, quiet::wait_for_input, readers, spawn};
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{Mode, OFlags, open},
    termios::{OptionalActions, tcgetattr, tcsetattr},
};
use std::{
    io::{self, ErrorKind, Read},
    path::Path,
    sync::Arc,
    thread,
};

/// An open serial line, without any translation of its bytes.
pub(crate) struct SerialLine(OwnedFd);

impl SerialLine {
    /// Opens a device, such as `/dev/ttyUSB0`, with this number of bits per second.
    ///
    /// # Errors
    /// There is no such device, it may not be used, it is no serial line, or it does not have this speed.
    pub(crate) fn open(device: &Path, baud: u32) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let line = open(device, flags, Mode::empty())?;
        let mut settings = tcgetattr(&line)?;
        settings.make_raw();
        settings.set_speed(baud)?;
        tcsetattr(&line, OptionalActions::Now, &settings)?;
        Ok(Self(line))
    }
}

impl AsFd for SerialLine {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A read waits for a while, and ends with [`ErrorKind::WouldBlock`] if nothing comes. No bytes are the end of a device that is gone.
impl Read for SerialLine {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if !wait_for_input(&self.0) {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(rustix::io::read(&self.0, bytes)?)
    }
}

/// Opens a serial line, and starts to read it. A device that is unplugged is opened again when it is back.
pub(super) fn start((device, baud): (&Path, u32), link: &Arc<Link>) -> io::Result<Listener> {
    let first = SerialLine::open(device, baud)?;
    let (device, link) = (device.to_owned(), Arc::clone(link));
    let read = move || {
        let mut line = Some(first);
        while !link.stopped() {
            match line.take().or_else(|| SerialLine::open(&device, baud).ok()) {
                Some(line) => readers::read_serial(line, &link),
                None => thread::park_timeout(RETRY),
            }
        }
    };
    Ok((spawn("serial", read)?, None))
}
