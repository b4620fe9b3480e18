import { SandboxError } from "@sandpiper/core";

/** Whether a call of the file system failed with one of these. */
export function failedWith(thrown: unknown, ...codes: readonly string[]): boolean {
  return codes.includes((thrown as NodeJS.ErrnoException | undefined)?.code ?? "");
}

/** For the reading of a directory that need not be there. */
export function emptyIfAbsent(thrown: unknown): string[] {
  if (failedWith(thrown, "ENOENT")) return [];
  throw thrown;
}

/** For what may have been removed by somebody else. */
export function ignoreAbsence(thrown: unknown): undefined {
  if (failedWith(thrown, "ENOENT")) return undefined;
  throw thrown;
}

/** What a fault of the file system means to whoever uses the store. */
export function fileError(thrown: unknown, label: string): SandboxError {
  if (thrown instanceof SandboxError) return thrown;
  const { message } = thrown as Error;
  if (failedWith(thrown, "ENOSPC", "EDQUOT")) {
    const hint = "Free space there, or delete checkpoints that nobody needs.";
    return new SandboxError("resource_exhausted", {
      reason: "store_full",
      message: `The store ${label} is full: ${message}`,
      hint,
      cause: thrown,
    });
  }
  if (failedWith(thrown, "EACCES", "EPERM", "EROFS")) {
    const hint = "Give the user that runs the node the right to write there.";
    return new SandboxError("permission_denied", {
      reason: "store_refused",
      message: `The store ${label} cannot be used: ${message}`,
      hint,
      cause: thrown,
    });
  }
  if (failedWith(thrown, "ENOTDIR", "ELOOP")) {
    const hint = "Name a directory that belongs to Sandpiper alone.";
    return new SandboxError("failed_precondition", {
      reason: "store_misplaced",
      message: `The store ${label} is no directory that can be used: ${message}`,
      hint,
      cause: thrown,
    });
  }
  return new SandboxError("unavailable", {
    reason: "store_unreachable",
    message: `The store ${label} does not answer: ${message}`,
    hint: "Check that the directory, or the share it is on, is mounted and works.",
    cause: thrown,
  });
}
