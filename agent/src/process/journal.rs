//! The last `capacity` bytes of a process's output, addressed by offset. The newest are in memory, the others in a file.

use super::segments::{Segments, Source};
use super::spill::Spill;
use std::collections::VecDeque;
use std::path::PathBuf;

pub const DEFAULT_CAPACITY_BYTES: u64 = 64 * 1024 * 1024;
pub const MIN_CAPACITY_BYTES: u64 = 4096;
/// The largest piece appended at once.
pub const PIECE_BYTES: usize = 64 * 1024;

const MEMORY_BYTES: u64 = 256 * 1024;
const SETTLED_BYTES: u64 = 4096;
/// Smaller pieces are joined, so that a process that writes single bytes costs no more memory.
const JOINED_BYTES: usize = 16 * 1024;

enum File {
    NotCreated(PathBuf),
    Open(Spill),
    /// A disk that cannot hold the journal costs history, but never the process.
    Failed,
}

pub struct Journal {
    capacity: u64,
    /// The offset of the oldest readable byte.
    start: u64,
    end: u64,
    segments: Segments,
    /// The bytes from `memory_start` to `end`. Earlier bytes are in the file.
    pieces: VecDeque<Vec<u8>>,
    memory_start: u64,
    file: File,
}

#[derive(Debug, PartialEq)]
pub struct Piece {
    pub offset: u64,
    pub source: Source,
    /// The number of lost bytes between the requested offset and `offset`.
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
            file: File::NotCreated(directory),
        }
    }

    pub fn start(&self) -> u64 {
        self.start
    }

    pub fn end(&self) -> u64 {
        self.end
    }

    /// How many bytes fit before a byte at or after `needed_from` is lost.
    pub fn room(&self, source: Source, needed_from: u64) -> u64 {
        let needed_from = needed_from.max(self.start);
        if self.segments.forced_start(source).is_some_and(|start| start > needed_from) {
            return 0;
        }
        (needed_from + self.capacity).saturating_sub(self.end)
    }

    /// Grows the journal so that `bytes` more fit without loss.
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
        self.spill(MEMORY_BYTES);
    }

    /// Moves almost all bytes to the file. Without a file, keeps the newest bytes and drops the others.
    pub fn settle(&mut self) {
        self.spill(SETTLED_BYTES);
        if self.bytes_in_memory() > SETTLED_BYTES {
            self.drop_to(self.end - SETTLED_BYTES);
        }
    }

    fn bytes_in_memory(&self) -> u64 {
        self.end - self.memory_start.max(self.start)
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

    fn spill(&mut self, kept_in_memory: u64) {
        while self.bytes_in_memory() > kept_in_memory {
            let Some(first) = self.pieces.front() else { return };
            if let File::NotCreated(directory) = &self.file {
                self.file = match Spill::create(directory, self.memory_start, self.capacity) {
                    Ok(spill) => File::Open(spill),
                    Err(_) => File::Failed,
                };
            }
            let written = match &mut self.file {
                File::Open(spill) => spill.write(self.memory_start, first, self.start),
                _ => return self.seal(),
            };
            match written {
                Ok(true) => {
                    self.memory_start += first.len() as u64;
                    self.pieces.pop_front();
                }
                // A stretched journal is larger than its file. It shrinks back as its readers advance.
                Ok(false) => {
                    self.capacity = self.capacity.min(self.end - self.start);
                    return;
                }
                Err(_) => return self.seal(),
            }
        }
    }

    /// Stops writing to the file, which stays readable. From now on only memory takes new bytes.
    fn seal(&mut self) {
        self.capacity = self.capacity.min(self.end - self.memory_start);
    }

    fn lose_file(&mut self) {
        self.file = File::Failed;
        self.drop_to(self.memory_start);
        self.seal();
    }

    /// Up to `most` bytes of one source, starting at `offset`; None at the end.
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
        // One byte more for the newline that ends an attachment.
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

/// A read buffer has the size of the largest read. Shrinks it before it is kept.
fn fitted(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.capacity() - bytes.len() > JOINED_BYTES {
        bytes.shrink_to_fit();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::segments::MAX_SEGMENTS;

    fn directory(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("sandpiper-journal-{name}-{}", std::process::id()))
    }

    /// Reads everything from `offset` on: the number of dropped bytes, and each further byte with its source.
    fn read_all(journal: &mut Journal, mut offset: u64, most: usize) -> (u64, Vec<(u8, Source)>) {
        let (mut dropped, mut all) = (0, Vec::new());
        while let Some(piece) = journal.read(offset, most) {
            assert!(!piece.bytes.is_empty() && piece.bytes.len() <= most);
            dropped += piece.dropped;
            offset = piece.offset + piece.bytes.len() as u64;
            all.extend(piece.bytes.iter().map(|byte| (*byte, piece.source)));
        }
        (dropped, all)
    }

    #[test]
    fn keeps_the_last_bytes_readable_with_their_sources() {
        let directory = directory("model");
        for capacity in [5000, MEMORY_BYTES - 1, MEMORY_BYTES + 1, 700_000] {
            let mut journal = Journal::new(capacity, directory.clone());
            let mut model: Vec<(u8, Source)> = Vec::new();
            let mut random = 42u64;
            let mut next = |below: u64| {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (random >> 33) % below
            };
            for _ in 0..200 {
                let size = if next(3) == 0 { next(PIECE_BYTES as u64) + 1 } else { next(200) + 1 };
                let source = if next(2) == 0 { Source::Stdout } else { Source::Stderr };
                let bytes: Vec<u8> = (0..size).map(|_| next(256) as u8).collect();
                model.extend(bytes.iter().map(|byte| (*byte, source)));
                journal.append(source, bytes);
                let end = model.len() as u64;
                assert_eq!((journal.end(), journal.start()), (end, end.saturating_sub(capacity)));
                let from = next(end);
                let piece = journal.read(from, 1000).unwrap();
                assert_eq!(piece.offset, from.max(journal.start()));
                assert_eq!(model[piece.offset as usize], (piece.bytes[0], piece.source));
            }
            let (dropped, all) = read_all(&mut journal, 0, 50_000);
            assert_eq!(dropped, journal.start());
            assert!(all == model[dropped as usize..], "capacity {capacity}");
        }
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn creates_no_file_for_a_small_journal() {
        let directory = directory("small");
        let mut journal = Journal::new(MEMORY_BYTES, directory.clone());
        for _ in 0..100 {
            journal.append(Source::Pty, vec![b'x'; 10_000]);
        }
        assert!(!directory.exists());
    }

    #[test]
    fn keeps_the_newest_bytes_in_little_memory_without_a_file() {
        let mut journal = Journal::new(DEFAULT_CAPACITY_BYTES, "/proc/no/journals/here".into());
        for number in 0..1000u32 {
            journal.append(Source::Stdout, number.to_le_bytes().repeat(10_000));
        }
        assert!((MEMORY_BYTES..2 * MEMORY_BYTES).contains(&(journal.end() - journal.start())));
        let in_memory: usize = journal.pieces.iter().map(Vec::len).sum();
        assert!(in_memory as u64 <= 2 * MEMORY_BYTES);
        let (dropped, all) = read_all(&mut journal, 0, 4096);
        assert_eq!(dropped, journal.start());
        assert_eq!(all.last().unwrap().0, 999u32.to_le_bytes()[3]);
    }

    #[test]
    fn reads_the_same_after_settling_and_uses_little_memory() {
        let directory = directory("settled");
        for (capacity, size) in [(8192, 5000), (100_000, 150_000), (DEFAULT_CAPACITY_BYTES, 1_000_000)] {
            let mut journal = Journal::new(capacity, directory.clone());
            let bytes: Vec<u8> = (0..size).map(|at| (at / 7) as u8).collect();
            for piece in bytes.chunks(PIECE_BYTES) {
                journal.append(Source::Stdout, piece.to_vec());
            }
            let before = read_all(&mut journal, 0, 10_000);
            journal.settle();
            let in_memory: usize = journal.pieces.iter().map(Vec::len).sum();
            assert!(in_memory as u64 <= SETTLED_BYTES, "{in_memory}");
            assert!(read_all(&mut journal, 0, 10_000) == before);
            journal.append(Source::Stdout, b"more".to_vec());
            let (_, after) = read_all(&mut journal, 0, 10_000);
            assert!(after.ends_with(&b"more".map(|byte| (byte, Source::Stdout))));
        }
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn keeps_the_newest_bytes_when_it_cannot_settle_to_a_file() {
        let mut journal = Journal::new(DEFAULT_CAPACITY_BYTES, "/proc/no/journals/here".into());
        (0..200).for_each(|number| journal.append(Source::Stdout, vec![number; 1000]));
        journal.settle();
        assert_eq!((journal.start(), journal.end()), (200_000 - SETTLED_BYTES, 200_000));
        assert_eq!(journal.read(0, 10).unwrap().dropped, 200_000 - SETTLED_BYTES);
    }

    #[test]
    fn has_room_until_the_reader_would_lose_bytes() {
        let mut journal = Journal::new(10_000, directory("room"));
        journal.append(Source::Stdout, vec![0; 6000]);
        assert_eq!(journal.room(Source::Stdout, 0), 4000);
        assert_eq!(journal.room(Source::Stdout, 2000), 6000);
        journal.append(Source::Stdout, vec![0; 6000]);
        assert_eq!(journal.room(Source::Stdout, 0), 0, "a reader that has lost bytes keeps the others");
        journal.stretch(2000, 500);
        assert_eq!(journal.room(Source::Stdout, 2000), 500);
        journal.append(Source::Stdout, vec![0; 500]);
        assert_eq!(journal.start(), 2000);
    }

    #[test]
    fn bounds_output_that_changes_its_source_at_every_byte() {
        let mut journal = Journal::new(DEFAULT_CAPACITY_BYTES, directory("alternating"));
        let sources = [Source::Stdout, Source::Stderr];
        for number in 0..MAX_SEGMENTS + 1000 {
            journal.append(sources[number % 2], vec![b'x']);
        }
        assert_eq!(journal.end() - journal.start(), MAX_SEGMENTS as u64);
        let next = sources[(MAX_SEGMENTS + 1000) % 2];
        assert_eq!(journal.room(next, journal.start()), 0, "a reader at the start would lose a byte");
        assert!(journal.room(next, journal.start() + 1) > 0);
    }
}
