import { chmodSync, closeSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { SandboxError } from "@sandpiper/core";
import { isBusy } from "./database-error.ts";

/**
 * Prevents a second node from using a database. The kernel holds the lock on a separate file and releases it when the process
 * ends, even by kill -9. The pid file serves only the error message.
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

/** Does not open an existing file: if this process holds the lock, closing the file would release it. */
function createLockFile(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== "EEXIST") throw thrown;
  }
}

function homeInUse(databasePath: string, pid: number | undefined): SandboxError {
  const holder = pid === undefined ? "another process" : `process ${pid}`;
  return new SandboxError("home_in_use", {
    message: `the database ${databasePath} is in use by ${holder}`,
    hint:
      pid === undefined
        ? "stop the node that uses this directory, or set SANDPIPER_HOME to another directory"
        : `use that node, stop it (kill ${pid}), or set SANDPIPER_HOME to another directory`,
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
