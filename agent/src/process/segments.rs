//! The source of each byte of a journal, as runs of one source, each packed into eight bytes.

use std::collections::VecDeque;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Stdout,
    Stderr,
    Pty,
}

impl Source {
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Stdout => "stdout",
            Source::Stderr => "stderr",
            Source::Pty => "pty",
        }
    }

    fn from_bits(bits: u64) -> Self {
        match bits & 3 {
            0 => Source::Stdout,
            1 => Source::Stderr,
            _ => Source::Pty,
        }
    }
}

/// Limits the memory to 512 KiB for a process that alternates between stdout and stderr.
pub const MAX_SEGMENTS: usize = 64 * 1024;

#[derive(Default)]
pub struct Segments {
    /// Offset of the run's first byte << 2 | source. A run ends where the next begins.
    runs: VecDeque<u64>,
}

impl Segments {
    /// Records that bytes of `source` begin at `offset`.
    pub fn begin(&mut self, offset: u64, source: Source) {
        if self.continues(source) {
            return;
        }
        self.runs.push_back(offset << 2 | source as u64);
    }

    fn continues(&self, source: Source) -> bool {
        self.runs.back().is_some_and(|run| Source::from_bits(*run) == source)
    }

    /// Where the journal must begin so that bytes of `source` fit into the table.
    pub fn forced_start(&self, source: Source) -> Option<u64> {
        let full = self.runs.len() >= MAX_SEGMENTS && !self.continues(source);
        if full { self.runs.get(1).map(|run| run >> 2) } else { None }
    }

    /// Forgets runs that end at or before `start`.
    pub fn drop_before(&mut self, start: u64) {
        while self.runs.get(1).is_some_and(|next| next >> 2 <= start) {
            self.runs.pop_front();
        }
    }

    /// The source of the byte at `offset`, and where its run ends; None for the last run.
    pub fn at(&self, offset: u64) -> Option<(Source, Option<u64>)> {
        let after = self.runs.partition_point(|run| run >> 2 <= offset);
        let run = self.runs.get(after.checked_sub(1)?)?;
        Some((Source::from_bits(*run), self.runs.get(after).map(|next| next >> 2)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_consecutive_bytes_of_one_source() {
        let mut segments = Segments::default();
        segments.begin(0, Source::Stdout);
        segments.begin(5, Source::Stdout);
        segments.begin(9, Source::Stderr);
        assert_eq!(segments.at(7), Some((Source::Stdout, Some(9))));
        assert_eq!(segments.at(9), Some((Source::Stderr, None)));
        segments.drop_before(9);
        assert_eq!(segments.at(8), None);
    }

    #[test]
    fn forces_the_journal_to_begin_later_when_the_table_is_full() {
        let mut segments = Segments::default();
        for offset in 0..MAX_SEGMENTS as u64 {
            segments.begin(offset, if offset % 2 == 0 { Source::Stdout } else { Source::Stderr });
        }
        assert_eq!(segments.forced_start(Source::Stderr), None);
        assert_eq!(segments.forced_start(Source::Stdout), Some(1));
    }
}
