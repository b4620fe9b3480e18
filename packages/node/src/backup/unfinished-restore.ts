import { existsSync } from "node:fs";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";

/** Exists in a home while a restore writes to it. */
export const RESTORE_FILE = "restoring";

/** A node that starts in a half-restored home would hide what is restored. */
export function requireFinishedRestore(home: string): void {
  if (!existsSync(join(home, RESTORE_FILE))) return;
  throw new SandboxError("restore_unfinished", {
    message: `a restore into ${home} has not finished`,
    details: { target: home },
  });
}
