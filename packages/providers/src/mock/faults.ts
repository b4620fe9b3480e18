import type { SandboxError } from "@sandpiper/core";

/** Faults to inject; all are off by default. May be changed while instances run. */
export interface MockFaults {
  bootDelayMs?: number;
  bootFailure?: SandboxError;
  /** How many connects are refused before one is accepted. */
  refusedConnects?: number;
  /** How many channels are accepted and never answered. */
  silentConnects?: number;
  /** How many attempts to destroy an instance fail. */
  failedDestroys?: number;
  destroyDelayMs?: number;
  listFailure?: SandboxError;
  checkpointDelayMs?: number;
  checkpointFailure?: SandboxError;
  restoreDelayMs?: number;
  restoreFailure?: SandboxError;
  /** The host's release; checkpoints do not fit another release. */
  release?: string;
  /** Bytes that an earlier caller left unread on the channel. */
  staleBytes?: Uint8Array;
  /** The delay of the answer to a method. */
  answerDelayMs?: (method: string) => number;
  /** Methods that are never answered, not even when canceled. */
  unanswered?: readonly string[];
  /** Reverses the order of the answers of one turn. */
  isOrderReversed?: boolean;
  garbage?: Uint8Array;
  /** Sends a message with a truncated attachment before every answer. */
  hasTornFrames?: boolean;
  /** How long the channel makes a sender wait after each write. */
  slowReaderMs?: number;
  /** The most bytes that arrive in one piece. */
  chunkBytes?: number;
}
