//! The numbers of `packages/protocol/src/agent/generation.ts`; a conformance test compares them.

pub const PROTOCOL_GENERATION: u32 = 2;
pub const MAX_LINE_BYTES: usize = 1024 * 1024;
pub const MAX_ATTACHMENT_BYTES: usize = 1024 * 1024;
pub const MAX_CALLS_IN_FLIGHT: usize = 1024;
pub const MAX_PENDING_STDIN_BYTES: usize = 1024 * 1024;

/// The largest piece of a stream sent at once, so that streams share the channel.
pub const CHUNK_BYTES: usize = 256 * 1024;

/// The largest piece of a file sent or received at once. Under gVisor a system call costs more than the bytes it moves,
/// so a piece fills a pipe of 1 MiB, less the lines around it.
pub const FILE_PIECE_BYTES: usize = 960 * 1024;
