//! Where the bytes of an inspection come from: a file, or the front end itself.

use super::Inspection;
use crate::{
    Capture, Flow, FrontEndLink, SourceError,
    live::{connector, quiet::wait_for_input, readers::passes, serial::SerialLine},
    path::resolve,
};
use std::{
    fs::File,
    io::{self, Read},
    net::{TcpListener, TcpStream, UdpSocket},
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// The first bytes of capture files: PCAP in both orders and both precisions, and PCAPNG.
const CAPTURES: [[u8; 4]; 5] = [
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0x0a, 0x0d, 0x0d, 0x0a],
];

/// The end of an inspection of a live front end.
#[derive(Clone, Copy, Debug)]
pub struct InspectionLimits {
    /// Longest time.
    pub duration: Duration,
    /// Number of frames.
    pub frames: u64,
}

/// The bytes of an inspection.
pub struct InspectionInput<'a> {
    inspection: &'a mut Inspection,
    limits: InspectionLimits,
    until: Instant,
}

impl<'a> InspectionInput<'a> {
    /// The input of an inspection within these limits. Files are read to their end.
    pub fn new(inspection: &'a mut Inspection, limits: InspectionLimits) -> Self {
        Self { inspection, limits, until: Instant::now() + limits.duration }
    }

    /// Reads a file: a capture, of which datagrams to `port` count, or the bytes of a stream.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read_file(&mut self, path: &Path, port: Option<u16>) -> Result<(), SourceError> {
        let open = |error| SourceError::Open { path: path.to_owned(), error };
        let mut first = [0; 4];
        let is_capture = File::open(path).map_err(open)?.read_exact(&mut first).is_ok() && CAPTURES.contains(&first);
        let read = if is_capture { self.read_capture(path, port) } else { self.read_bytes(path) };
        read.map_err(|error| SourceError::Read { path: path.to_owned(), error })
    }

    /// Takes what a front end sends.
    ///
    /// # Errors
    /// If its address cannot be used, or its file cannot be read.
    pub fn read_link(&mut self, link: &FrontEndLink, data_directory: &Path) -> Result<(), SourceError> {
        let read = match link {
            FrontEndLink::File(file) | FrontEndLink::Eudaq { file, .. } => {
                return self.read_file(&resolve(file, data_directory)?, None);
            }
            FrontEndLink::Capture { file, port, .. } => return self.read_file(&resolve(file, data_directory)?, *port),
            FrontEndLink::Tcp(address) => self.accept(address),
            FrontEndLink::TcpClient(address) => self.connect(address),
            FrontEndLink::Udp(address) => self.receive(address),
            FrontEndLink::Serial { device, baud } => self.read_serial(device, *baud),
        };
        read.map_err(|error| SourceError::Listen { address: link.place().into_owned(), error })
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.until || self.inspection.frames() >= self.limits.frames
    }

    fn read_bytes(&mut self, path: &Path) -> io::Result<()> {
        let (mut file, mut bytes) = (File::open(path)?, vec![0; 1 << 16]);
        loop {
            match file.read(&mut bytes)? {
                0 => return Ok(()),
                read => self.inspection.push(&bytes[..read]),
            }
        }
    }

    fn read_capture(&mut self, path: &Path, port: Option<u16>) -> io::Result<()> {
        let mut capture = Capture::open(path, port)?;
        while capture.next(|_, flow, datagram| self.inspection.push_datagram(flow, datagram))? {}
        Ok(())
    }

    fn accept(&mut self, address: &str) -> io::Result<()> {
        let listener = TcpListener::bind(address)?;
        while !self.is_over() {
            if wait_for_input(&listener) {
                return self.read_stream(&listener.accept()?.0);
            }
        }
        Ok(())
    }

    fn connect(&mut self, address: &str) -> io::Result<()> {
        loop {
            match connector::attempt(address) {
                Ok((stream, _)) => return self.read_stream(&stream),
                Err(error) if self.is_over() => return Err(error),
                Err(_) => thread::park_timeout(connector::RETRY),
            }
        }
    }

    fn read_serial(&mut self, device: &Path, baud: u32) -> io::Result<()> {
        let (mut line, mut bytes) = (SerialLine::open(device, baud)?, vec![0; 1 << 16]);
        while !self.is_over() {
            match line.read(&mut bytes) {
                Ok(0) => return Ok(()),
                Ok(read) => self.inspection.push(&bytes[..read]),
                Err(error) if passes(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn read_stream(&mut self, mut stream: &TcpStream) -> io::Result<()> {
        let mut bytes = vec![0; 1 << 16];
        while !self.is_over() {
            if wait_for_input(stream) {
                match stream.read(&mut bytes) {
                    Ok(0) => return Ok(()),
                    Ok(read) => self.inspection.push(&bytes[..read]),
                    Err(error) if passes(&error) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn receive(&mut self, address: &str) -> io::Result<()> {
        let (socket, mut bytes) = (UdpSocket::bind(address)?, vec![0; 1 << 16]);
        // A datagram with a wrong checksum is there for the wait, and not for the read.
        socket.set_nonblocking(true)?;
        while !self.is_over() {
            if wait_for_input(&socket) {
                match socket.recv_from(&mut bytes) {
                    Ok((read, from)) => self.inspection.push_datagram(Flow { from, to: 0 }, &bytes[..read]),
                    Err(error) if passes(&error) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}
