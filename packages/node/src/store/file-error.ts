import { SandboxError } from "@sandpiper/core";

export function failedWith(thrown: unknown, ...codes: readonly string[]): boolean {
  return codes.includes((thrown as NodeJS.ErrnoException | undefined)?.code ?? "");
}

/** Catches the error of reading a directory that may not exist. */
export function emptyIfAbsent(thrown: unknown): string[] {
  if (failedWith(thrown, "ENOENT")) return [];
  throw thrown;
}

/** Catches the error of using a file that another process may have removed. */
export function ignoreAbsence(thrown: unknown): undefined {
  if (failedWith(thrown, "ENOENT")) return undefined;
  throw thrown;
}

/** Converts a file system error to one that names the store. */
export function fileError(thrown: unknown, label: string): SandboxError {
  if (thrown instanceof SandboxError) return thrown;
  const { message } = thrown as Error;
  if (failedWith(thrown, "ENOSPC", "EDQUOT")) {
    const hint = "free space there, or delete unneeded checkpoints";
    return new SandboxError("store_full", { message: `the store ${label} is full: ${message}`, hint, cause: thrown });
  }
  if (failedWith(thrown, "EACCES", "EPERM", "EROFS")) {
    const hint = "give the user that runs the node write permission there";
    return new SandboxError("store_refused", {
      message: `cannot use the store ${label}: ${message}`,
      hint,
      cause: thrown,
    });
  }
  if (failedWith(thrown, "ENOTDIR", "ELOOP")) {
    const hint = "set SANDPIPER_STORE to a directory that only Sandpiper uses";
    return new SandboxError("store_misplaced", {
      message: `the store ${label} is not a usable directory: ${message}`,
      hint,
      cause: thrown,
    });
  }
  return new SandboxError("store_unreachable", {
    message: `cannot reach the store ${label}: ${message}`,
    hint: "check that the directory, or the network share it is on, is mounted",
    cause: thrown,
  });
}
