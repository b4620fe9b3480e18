//! The numbers of `packages/protocol/src/agent/generation.ts`; a conformance test holds them equal.

pub const PROTOCOL_GENERATION: u32 = 1;
pub const MAX_LINE_BYTES: usize = 1024 * 1024;
pub const MAX_ATTACHMENT_BYTES: usize = 1024 * 1024;
pub const MAX_CALLS_IN_FLIGHT: usize = 1024;
pub const MAX_PENDING_STDIN_BYTES: usize = 1024 * 1024;

/// Largest piece of a stream sent at once, so that streams take turns on the channel.
pub const CHUNK_BYTES: usize = 256 * 1024;

/// Largest piece of a file sent or taken at once. Under gVisor a system call costs more than the bytes it moves, so
/// pieces are as large as a pipe of 1 MiB can hold together with the lines around them.
pub const FILE_PIECE_BYTES: usize = 960 * 1024;
