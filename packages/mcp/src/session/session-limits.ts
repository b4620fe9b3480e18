/** Limits of one session, on the model's context and the sandboxes' disks. */
export interface SessionLimits {
  /** Bytes of output in one answer; longer output is cut in the middle. */
  readonly outputBytes: number;
  /** Bytes of a file in one answer, as text. */
  readonly fileBytes: number;
  /** Bytes in one upload or download; base64 adds a third. */
  readonly transferBytes: number;
  /** Directory entries in one answer. */
  readonly directoryEntries: number;
  /** Ended commands whose output stays readable. */
  readonly keptCommands: number;
  /** The default time limit of a command. */
  readonly commandTimeoutMs: number;
  /** The interval of progress notifications. */
  readonly progressEveryMs: number;
}

export const DEFAULT_LIMITS: SessionLimits = Object.freeze({
  outputBytes: 32 * 1024,
  fileBytes: 128 * 1024,
  transferBytes: 4 * 1024 * 1024,
  directoryEntries: 1000,
  keptCommands: 16,
  commandTimeoutMs: 120_000,
  progressEveryMs: 1000,
});
