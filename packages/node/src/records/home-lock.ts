import { chmodSync, closeSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { SandboxError } from "@sandpiper/core";
import { isBusy } from "./database-error.ts";

/**
 * Keeps a second node away from a database. The lock is the kernel's, on a file that nobody reads, so it is gone with its
 * holder, however that one ended; the pid beside it is only for the message.
 */
export function lockHome(databasePath: string): Disposable {
  const lockPath = `${databasePath}.lock`;
  const pidPath = `${databasePath}.pid`;
  createLockFile(lockPath);
  const lock = new DatabaseSync(lockPath, { timeout: 0 });
  try {
    lock.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (thrown) {
    lock.close();
    if (!isBusy(thrown)) throw thrown;
    throw homeInUse(databasePath, readPid(pidPath));
  }
  writeFileSync(pidPath, `${process.pid}\n`, { mode: 0o600 });
  chmodSync(pidPath, 0o600);
  return {
    [Symbol.dispose]() {
      if (!lock.isOpen) return;
      rmSync(pidPath, { force: true });
      lock.close();
    },
  };
}

/** One that is there is not even opened: closing it would end the lock, if this very process holds it. */
function createLockFile(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== "EEXIST") throw thrown;
  }
}

function homeInUse(databasePath: string, pid: number | undefined): SandboxError {
  const holder = pid === undefined ? "another process" : `process ${pid}`;
  return new SandboxError("failed_precondition", {
    reason: "home_in_use",
    message: `the database ${databasePath} is in use by ${holder}`,
    hint:
      pid === undefined
        ? "stop the node that runs on this directory, or give this one another with SANDPIPER_HOME"
        : `use that node, stop it (kill ${pid}), or give this one another directory with SANDPIPER_HOME`,
    details: { path: databasePath, ...(pid === undefined ? {} : { pid }) },
  });
}

function readPid(path: string): number | undefined {
  try {
    const text = readFileSync(path, "utf8").trim();
    return /^\d{1,10}$/.test(text) ? Number(text) : undefined;
  } catch {
    return undefined;
  }
}
