//! Writing: each write is a block.

use crate::{
    checksum,
    layout::{BLOCK_HEADER_BYTES, BlockHeader, MAX_BLOCK_BYTES},
    sink::Sink,
};
use std::{
    fs::File,
    io::{self, IoSlice},
    os::unix::fs::FileExt,
};
use zstd::bulk::{Compressor, Decompressor};

/// Level of compression: the fastest of the usual ones. Detectors deliver faster than others compress.
const LEVEL: i32 = 1;

/// Most bytes in a block before compression: so few that it fits with the 256th part that compression may add.
const MOST_PLAIN: usize = MAX_BLOCK_BYTES - (MAX_BLOCK_BYTES >> 7);

/// A compressed file under construction.
pub(crate) struct CompressedSink {
    file: File,
    compressor: Compressor<'static>,
    /// The blocks, each with its place in the file.
    blocks: Vec<(BlockHeader, u64)>,
    /// Length of the event file, and of the compressed one.
    length: u64,
    end: u64,
    /// Bytes of the block that is being made, without compression and with it.
    plain: Vec<u8>,
    packed: Vec<u8>,
}

impl CompressedSink {
    /// Writes to a new file, which must be readable as well.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let compressor = Compressor::new(LEVEL)?;
        let (blocks, plain, packed) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { file, compressor, blocks, length: 0, end: 0, plain, packed })
    }

    /// Writes what `plain` holds as a block.
    fn put_block(&mut self) -> io::Result<()> {
        self.packed.resize(BLOCK_HEADER_BYTES + zstd::zstd_safe::compress_bound(self.plain.len()), 0);
        let compressed = self.compressor.compress_to_buffer(&self.plain, &mut self.packed[BLOCK_HEADER_BYTES..])?;
        self.packed.truncate(BLOCK_HEADER_BYTES + compressed);
        let header = BlockHeader {
            offset: self.length,
            length: self.plain.len() as u32,
            compressed: compressed as u32,
            checksum: checksum(&self.packed[BLOCK_HEADER_BYTES..]),
        };
        self.packed[..BLOCK_HEADER_BYTES].copy_from_slice(&header.encode());
        // What an earlier write has left of a block is overwritten.
        self.file.write_all_at(&self.packed, self.end)?;
        self.blocks.push((header, self.end));
        self.length = header.end();
        self.end += self.packed.len() as u64;
        Ok(())
    }

    /// Reads the first bytes of a block into `plain`.
    fn get_block(&mut self, (header, place): (BlockHeader, u64), wanted: usize) -> io::Result<()> {
        self.packed.resize(header.compressed as usize, 0);
        self.file.read_exact_at(&mut self.packed, place + BLOCK_HEADER_BYTES as u64)?;
        self.plain = Decompressor::new()?.decompress(&self.packed, header.length as usize)?;
        self.plain.truncate(wanted);
        Ok(())
    }
}

impl Sink for CompressedSink {
    fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.plain.clear();
        for part in parts {
            let room = MOST_PLAIN - self.plain.len();
            self.plain.extend_from_slice(&part[..part.len().min(room)]);
        }
        if !self.plain.is_empty() {
            self.put_block()?;
        }
        Ok(self.plain.len())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        let mut cut = None;
        while let Some(block) = self.blocks.pop_if(|(header, _)| header.end() > length) {
            (self.length, self.end, cut) = (block.0.offset, block.1, Some(block));
        }
        // The block that `length` is in is made again, and not lost before.
        if let Some(block) = cut.filter(|(header, _)| header.offset < length) {
            self.get_block(block, (length - block.0.offset) as usize)?;
            self.put_block()?;
        }
        self.file.set_len(self.end)
    }
}
