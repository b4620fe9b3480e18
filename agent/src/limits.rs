//! The numbers of `packages/protocol/src/agent/generation.ts`; a conformance test holds them equal.

pub const PROTOCOL_GENERATION: u32 = 1;
pub const MAX_LINE_BYTES: usize = 1024 * 1024;
pub const MAX_ATTACHMENT_BYTES: usize = 1024 * 1024;
pub const MAX_CALLS_IN_FLIGHT: usize = 1024;
pub const MAX_PENDING_STDIN_BYTES: usize = 1024 * 1024;

/// Largest piece of a stream sent at once, so that streams take turns on the channel.
pub const CHUNK_BYTES: usize = 256 * 1024;
