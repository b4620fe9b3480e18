/** Increases whenever the agent's wire format changes; `snapshots/` holds the frozen schema of each generation. */
export const PROTOCOL_GENERATION = 2;

/** A longer line is refused and skipped, never buffered. */
export const MAX_LINE_BYTES = 1024 * 1024;

/** The maximum of raw bytes in one message; longer contents are sent as a stream of messages. */
export const MAX_ATTACHMENT_BYTES = 1024 * 1024;

/** The maximum number of unanswered calls on one channel. */
export const MAX_CALLS_IN_FLIGHT = 1024;

/** Bytes of standard input that may wait for a process that does not read. */
export const MAX_PENDING_STDIN_BYTES = 1024 * 1024;
