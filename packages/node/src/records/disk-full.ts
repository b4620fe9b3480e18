import { SandboxError } from "@sandpiper/core";

const SQLITE_FULL = 13;
/** SQLite could not enlarge the index of its write-ahead log. */
const SQLITE_IOERR_SHMSIZE = 4874;

interface Failure {
  readonly code?: unknown;
  readonly path?: unknown;
  readonly errcode?: unknown;
  readonly cause?: unknown;
  /** Of a SuppressedError: the failed clean-up, and the error before it. */
  readonly error?: unknown;
  readonly suppressed?: unknown;
}

/** Returns `disk_full` if a full disk of the node caused an error that has no reason of its own, and undefined otherwise. */
export function diskFullError(thrown: unknown): SandboxError | undefined {
  if (SandboxError.is(thrown) && thrown.reason !== "unexpected") return undefined;
  const disk = fullDisk(thrown);
  if (disk === undefined) return undefined;
  return new SandboxError("disk_full", {
    message: `the node has no disk space left: ${disk} is full`,
    hint: "free space on that disk of the node's host, and retry; the setting reserve keeps some of it free",
    cause: thrown,
  });
}

function fullDisk(thrown: unknown): string | undefined {
  if (typeof thrown !== "object" || thrown === null) return undefined;
  const { code, path, errcode, cause, error, suppressed }: Failure = thrown;
  if (errcode === SQLITE_FULL || errcode === SQLITE_IOERR_SHMSIZE) return "the disk of its home directory";
  if (code === "ENOSPC" || code === "EDQUOT") return typeof path === "string" ? `the disk of ${path}` : "a disk";
  return fullDisk(cause) ?? fullDisk(suppressed) ?? fullDisk(error);
}
