//! A process's output: the last `capacity` bytes, by offset, the newest of them in memory.

use super::segments::{Segments, Source};
use super::spill::{Refusal, Spill};
use std::collections::VecDeque;
use std::path::PathBuf;

pub const DEFAULT_CAPACITY_BYTES: u64 = 64 * 1024 * 1024;
pub const MIN_CAPACITY_BYTES: u64 = 4096;
/// Largest piece appended at once.
pub const PIECE_BYTES: usize = 64 * 1024;

const MEMORY_BYTES: u64 = 256 * 1024;
/// Smaller pieces are joined, so that a process that writes byte by byte costs no more memory than others.
const JOINED_BYTES: usize = 16 * 1024;

enum File {
    NotYet(PathBuf),
    Open(Spill),
    /// A disk that cannot take a journal costs history, never the process.
    Failed,
}

pub struct Journal {
    capacity: u64,
    /// Offset of the oldest byte that can be read.
    start: u64,
    end: u64,
    segments: Segments,
    /// The bytes from `memory_start` to `end`; those before are in the file.
    pieces: VecDeque<Vec<u8>>,
    memory_start: u64,
    file: File,
}

#[derive(Debug, PartialEq)]
pub struct Piece {
    pub offset: u64,
    pub source: Source,
    /// Bytes between the offset asked for and `offset` that are gone.
    pub dropped: u64,
    pub bytes: Vec<u8>,
}

impl Journal {
    pub fn new(capacity: u64, directory: PathBuf) -> Self {
        Self {
            capacity,
            start: 0,
            end: 0,
            segments: Segments::default(),
            pieces: VecDeque::new(),
            memory_start: 0,
            file: File::NotYet(directory),
        }
    }

    pub fn start(&self) -> u64 {
        self.start
    }

    pub fn end(&self) -> u64 {
        self.end
    }

    /// How many bytes can be appended before something at or after `needed_from` is lost.
    pub fn room(&self, source: Source, needed_from: u64) -> u64 {
        let needed_from = needed_from.max(self.start);
        if self.segments.forced_start(source).is_some_and(|start| start > needed_from) {
            return 0;
        }
        (needed_from + self.capacity).saturating_sub(self.end)
    }

    /// Lets the journal grow so that `bytes` more fit without loss.
    pub fn stretch(&mut self, needed_from: u64, bytes: u64) {
        self.capacity = self.capacity.max(self.end + bytes - needed_from.max(self.start));
    }

    pub fn append(&mut self, source: Source, bytes: Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let forced = self.segments.forced_start(source).unwrap_or(0);
        self.segments.begin(self.end, source);
        self.end += bytes.len() as u64;
        match self.pieces.back_mut() {
            Some(last) if bytes.len() < JOINED_BYTES && last.len() + bytes.len() <= PIECE_BYTES => last.extend(bytes),
            _ => self.pieces.push_back(fitted(bytes)),
        }
        self.drop_to(forced.max(self.end.saturating_sub(self.capacity)));
        self.spill();
    }

    fn drop_to(&mut self, start: u64) {
        self.start = self.start.max(start);
        self.segments.drop_before(self.start);
        while let Some(first) = self.pieces.front()
            && self.memory_start + first.len() as u64 <= self.start
        {
            self.memory_start += first.len() as u64;
            self.pieces.pop_front();
        }
    }

    fn spill(&mut self) {
        while self.end - self.memory_start.max(self.start) > MEMORY_BYTES {
            let Some(first) = self.pieces.front() else { return };
            if let File::NotYet(directory) = &self.file {
                let ring_bytes = self.capacity.saturating_sub(MEMORY_BYTES) + PIECE_BYTES as u64;
                self.file = match Spill::create(directory, self.memory_start, ring_bytes) {
                    Ok(spill) => File::Open(spill),
                    Err(_) => File::Failed,
                };
            }
            let outcome = match &mut self.file {
                File::Open(spill) => spill.write(first, self.start),
                _ => Err(Refusal::Full),
            };
            match outcome {
                Ok(()) => {
                    self.memory_start += first.len() as u64;
                    self.pieces.pop_front();
                }
                // What is here now is what the journal can hold: from now on the oldest bytes go first, or the process waits.
                Err(Refusal::Full) => {
                    self.capacity = self.capacity.min(self.end - self.start);
                    return;
                }
                Err(Refusal::Broken) => return self.lose_file(),
            }
        }
    }

    fn lose_file(&mut self) {
        self.file = File::Failed;
        self.drop_to(self.memory_start);
        self.capacity = self.capacity.min(self.end - self.start);
    }

    /// Up to `most` bytes of one source from `offset` on; None when there is nothing yet.
    pub fn read(&mut self, offset: u64, most: usize) -> Option<Piece> {
        loop {
            if offset >= self.end {
                return None;
            }
            let from = offset.max(self.start);
            let (source, run_end) = self.segments.at(from)?;
            let available = run_end.unwrap_or(self.end) - from;
            let bytes = if from >= self.memory_start {
                self.read_memory(from, available.min(most as u64) as usize)
            } else {
                let size = available.min(self.memory_start - from).min(most as u64) as usize;
                match &self.file {
                    File::Open(spill) => match spill.read(from, size) {
                        Ok(bytes) => bytes,
                        Err(_) => {
                            self.lose_file();
                            continue;
                        }
                    },
                    _ => return None,
                }
            };
            return Some(Piece { offset: from, source, dropped: from - offset, bytes });
        }
    }

    fn read_memory(&self, from: u64, size: usize) -> Vec<u8> {
        // One more, for the newline that ends an attachment.
        let mut bytes = Vec::with_capacity(size + 1);
        let mut skip = (from - self.memory_start) as usize;
        for piece in &self.pieces {
            if skip >= piece.len() {
                skip -= piece.len();
                continue;
            }
            let taken = (piece.len() - skip).min(size - bytes.len());
            bytes.extend_from_slice(&piece[skip..skip + taken]);
            skip = 0;
            if bytes.len() == size {
                break;
            }
        }
        bytes
    }
}

/// A read's buffer is as large as a read can be; what stays should be as large as what was read.
fn fitted(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.capacity() - bytes.len() > JOINED_BYTES {
        bytes.shrink_to_fit();
    }
    bytes
}
