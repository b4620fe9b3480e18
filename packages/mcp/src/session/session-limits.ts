/** Default limits of one session, on the model's context and the sandboxes' disks. */
export const DEFAULT_LIMITS = {
  /** Bytes of output in one answer; longer output is cut in the middle. */
  outputBytes: 32 * 1024,
  /** Bytes of a file in one answer, as text. */
  fileBytes: 128 * 1024,
  /** Bytes in one upload or download; base64 adds a third. */
  transferBytes: 4 * 1024 * 1024,
  /** Directory entries in one answer. */
  directoryEntries: 1000,
  /** Ended commands whose output stays readable. */
  keptCommands: 16,
  /** The default time limit of a command. */
  commandTimeoutMs: 120_000,
  /** The interval of progress notifications. */
  progressEveryMs: 1000,
};

export type SessionLimits = Readonly<typeof DEFAULT_LIMITS>;
