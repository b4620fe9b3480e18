/** What one session takes at most, of the model's context and of the sandboxes' disks. */
export interface SessionLimits {
  /** How many bytes of output one answer carries; of longer output the beginning and the end. */
  readonly outputBytes: number;
  /** How many bytes of a file one answer carries as text. */
  readonly fileBytes: number;
  /** How many bytes travel in one upload or download; as base64 they are a third more. */
  readonly transferBytes: number;
  /** How many entries of a directory one answer lists. */
  readonly directoryEntries: number;
  /** How many commands that have ended are kept for whoever reads on. */
  readonly keptCommands: number;
  /** When a command is killed unless the call says otherwise. */
  readonly commandTimeoutMs: number;
  /** How often a client that asked for it is told how far a command is. */
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
