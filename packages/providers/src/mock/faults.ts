import type { SandboxError } from "@sandpiper/core";

/** What goes wrong, and when; everything is off unless set. May be changed while instances run. */
export interface MockFaults {
  bootDelayMs?: number;
  bootFailure?: SandboxError;
  /** That many connects are refused before one is accepted. */
  refusedConnects?: number;
  /** That many channels are accepted and then never answered. */
  silentConnects?: number;
  /** That many attempts to destroy an instance fail. */
  failedDestroys?: number;
  destroyDelayMs?: number;
  /** Nobody is told which instances there are. */
  listFailure?: SandboxError;
  checkpointDelayMs?: number;
  checkpointFailure?: SandboxError;
  restoreDelayMs?: number;
  restoreFailure?: SandboxError;
  /** The release that the host runs, where it must differ from another's: checkpoints do not fit both. */
  release?: string;
  /** What an earlier caller left unread on the channel. */
  staleBytes?: Uint8Array;
  /** How long the answer to a method is held back. */
  answerDelayMs?: (method: string) => number;
  /** Methods that are never answered, not even when canceled. */
  unanswered?: readonly string[];
  /** Answers of one turn leave in reverse. */
  isOrderReversed?: boolean;
  /** Sent before every answer. */
  garbage?: Uint8Array;
  /** Every answer is preceded by a message whose attachment is cut short. */
  hasTornFrames?: boolean;
  /** How long the channel makes a sender wait after each write. */
  slowReaderMs?: number;
  /** The most bytes that arrive in one piece. */
  chunkBytes?: number;
}
