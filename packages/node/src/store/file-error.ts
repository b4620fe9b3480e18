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
  const error = (reason: ConstructorParameters<typeof SandboxError>[0], problem: string, hint: string) =>
    new SandboxError(reason, { message: `${problem}: ${(thrown as Error).message}`, hint, cause: thrown });
  if (failedWith(thrown, "ENOSPC", "EDQUOT")) {
    return error("store_full", `the store ${label} is full`, "free space there, or delete unneeded checkpoints");
  }
  if (failedWith(thrown, "EACCES", "EPERM", "EROFS")) {
    const hint = "give the user that runs the node write permission there";
    return error("store_refused", `cannot use the store ${label}`, hint);
  }
  if (failedWith(thrown, "ENOTDIR", "ELOOP")) {
    const hint = "set SANDPIPER_STORE to a directory that only Sandpiper uses";
    return error("store_misplaced", `the store ${label} is not a usable directory`, hint);
  }
  const hint = "check that the directory, or the network share it is on, is mounted";
  return error("store_unreachable", `cannot reach the store ${label}`, hint);
}
