//! Reading: the event file that the blocks make.

use crate::{
    checksum,
    layout::{BLOCK_HEADER_BYTES, BLOCK_MAGIC, BlockHeader, FILE_MAGIC, MAX_BLOCK_BYTES},
};
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};
use zstd::bulk::Decompressor;

/// Bytes searched at once for the next block behind a damaged one.
const SEARCH_BYTES: usize = 64 << 10;

/// The bytes of an event file, decompressed where it is compressed.
pub struct EventFile(Bytes);

enum Bytes {
    Plain(File),
    Compressed(Box<Blocks<File>>),
}

impl EventFile {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut file = File::open(path)?;
        Ok(Self(match is_compressed(&mut file)? {
            true => Bytes::Compressed(Box::new(Blocks::new(file)?)),
            false => Bytes::Plain(file),
        }))
    }

    /// The file itself, if it is not compressed.
    pub const fn plain(&self) -> Option<&File> {
        match &self.0 {
            Bytes::Plain(file) => Some(file),
            Bytes::Compressed(_) => None,
        }
    }
}

impl Read for EventFile {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Bytes::Plain(file) => file.read(bytes),
            Bytes::Compressed(blocks) => blocks.read(bytes),
        }
    }
}

impl Seek for EventFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match &mut self.0 {
            Bytes::Plain(file) => file.seek(to),
            Bytes::Compressed(blocks) => blocks.seek(to),
        }
    }
}

/// Returns true if this is a compressed event file: it begins with a block, or its damaged beginning is followed by one.
/// Afterwards the position is the beginning.
pub(crate) fn is_compressed(source: &mut (impl Read + Seek)) -> io::Result<bool> {
    let size = source.seek(SeekFrom::End(0))?;
    let mut start = Vec::with_capacity(FILE_MAGIC.len());
    source.seek(SeekFrom::Start(0))?;
    source.by_ref().take(FILE_MAGIC.len() as u64).read_to_end(&mut start)?;
    let near = size.min((BLOCK_HEADER_BYTES + MAX_BLOCK_BYTES + BLOCK_HEADER_BYTES) as u64);
    let is_compressed = start != FILE_MAGIC && next_block(source, 0, near)?.is_some();
    source.seek(SeekFrom::Start(0))?;
    Ok(is_compressed)
}

/// The event file that compressed blocks make.
pub(crate) struct Blocks<R> {
    source: R,
    /// The blocks in the order of the event file, each with its place in the source.
    blocks: Vec<(BlockHeader, u64)>,
    position: u64,
    /// The block that was read last, by its index, and its bytes.
    current: Option<usize>,
    plain: Vec<u8>,
    packed: Vec<u8>,
    decompressor: Decompressor<'static>,
}

impl<R: Read + Seek> Blocks<R> {
    /// Finds all blocks. What lies between two of them is damaged; what is cut off at the end is left out.
    pub(crate) fn new(mut source: R) -> io::Result<Self> {
        let blocks = find_blocks(&mut source)?;
        let (current, plain, packed) = (None, Vec::new(), Vec::new());
        let decompressor = Decompressor::new()?;
        Ok(Self { source, blocks, position: 0, current, plain, packed, decompressor })
    }

    fn length(&self) -> u64 {
        self.blocks.last().map_or(0, |(header, _)| header.end())
    }

    /// Reads a block into `plain`: zeros if it changed since it was written.
    fn load(&mut self, index: usize) -> io::Result<()> {
        if self.current == Some(index) {
            return Ok(());
        }
        self.current = None;
        let (header, place) = self.blocks[index];
        self.packed.resize(header.compressed as usize, 0);
        self.source.seek(SeekFrom::Start(place + BLOCK_HEADER_BYTES as u64))?;
        self.source.read_exact(&mut self.packed)?;
        let length = header.length as usize;
        self.plain.resize(length, 0);
        let is_good = checksum(&self.packed) == header.checksum
            && self.decompressor.decompress_to_buffer(&self.packed, &mut self.plain).is_ok_and(|found| found == length);
        if !is_good {
            self.plain.clear();
            self.plain.resize(length, 0);
        }
        self.current = Some(index);
        Ok(())
    }
}

impl<R: Read + Seek> Read for Blocks<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let next = self.blocks.partition_point(|(header, _)| header.end() <= self.position);
        let Some((header, _)) = self.blocks.get(next).copied().filter(|_| !bytes.is_empty()) else { return Ok(0) };
        if let Some(missing) = header.offset.checked_sub(self.position).filter(|missing| *missing > 0) {
            let length = bytes.len().min(usize::try_from(missing).unwrap_or(usize::MAX));
            bytes[..length].fill(0);
            self.position += length as u64;
            return Ok(length);
        }
        self.load(next)?;
        let rest = &self.plain[(self.position - header.offset) as usize..];
        let length = bytes.len().min(rest.len());
        bytes[..length].copy_from_slice(&rest[..length]);
        self.position += length as u64;
        Ok(length)
    }
}

impl<R: Read + Seek> Seek for Blocks<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(offset) => self.length().checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

/// The headers of all whole blocks, each with its place.
fn find_blocks(source: &mut (impl Read + Seek)) -> io::Result<Vec<(BlockHeader, u64)>> {
    let size = source.seek(SeekFrom::End(0))?;
    let (mut blocks, mut place, mut reached) = (Vec::new(), 0, 0);
    while let Some(found) = next_block(source, place, size)? {
        let (header, at) = found;
        let end = at + BLOCK_HEADER_BYTES as u64 + u64::from(header.compressed);
        // As much of the event file as the damaged bytes before the header can have held. Anything else is no header of
        // this file.
        let most = (at - place) / BLOCK_HEADER_BYTES as u64 * MAX_BLOCK_BYTES as u64;
        if header.offset.checked_sub(reached).is_some_and(|lost| lost <= most) && end <= size {
            (place, reached) = (end, header.end());
            blocks.push(found);
        } else {
            place = at + 1;
        }
    }
    Ok(blocks)
}

/// The header at this place, or else the next one behind it.
fn next_block(source: &mut (impl Read + Seek), place: u64, size: u64) -> io::Result<Option<(BlockHeader, u64)>> {
    if let Some(header) = header_at(source, place, size)? {
        return Ok(Some((header, place)));
    }
    let mut from = place + 1;
    let mut bytes = vec![0; SEARCH_BYTES];
    while from + BLOCK_HEADER_BYTES as u64 <= size {
        let length = SEARCH_BYTES.min((size - from) as usize);
        source.seek(SeekFrom::Start(from))?;
        source.read_exact(&mut bytes[..length])?;
        let places = bytes[..length].windows(BLOCK_MAGIC.len()).enumerate();
        for (index, _) in places.filter(|(_, window)| *window == BLOCK_MAGIC) {
            let at = from + index as u64;
            if let Some(header) = header_at(source, at, size)? {
                return Ok(Some((header, at)));
            }
        }
        // The next part begins where a magic may be cut.
        from += (length - (BLOCK_MAGIC.len() - 1)) as u64;
    }
    Ok(None)
}

fn header_at(source: &mut (impl Read + Seek), place: u64, size: u64) -> io::Result<Option<BlockHeader>> {
    if place + BLOCK_HEADER_BYTES as u64 > size {
        return Ok(None);
    }
    let mut bytes = [0; BLOCK_HEADER_BYTES];
    source.seek(SeekFrom::Start(place))?;
    source.read_exact(&mut bytes)?;
    Ok(BlockHeader::decode(&bytes))
}
