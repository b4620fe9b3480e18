import { SandboxError } from "@sandpiper/core";

const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

/** SQLite's primary result code, without the extended code in the higher bits; undefined for other errors. */
function sqliteCode(thrown: unknown): number | undefined {
  const code = (thrown as { readonly errcode?: unknown } | null)?.errcode;
  return typeof code === "number" ? code & 0xff : undefined;
}

export function isBusy(thrown: unknown): boolean {
  return sqliteCode(thrown) === SQLITE_BUSY;
}

export function openError(path: string, thrown: unknown): SandboxError {
  if (thrown instanceof SandboxError) return thrown;
  const code = sqliteCode(thrown);
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  if (code === SQLITE_CORRUPT || code === SQLITE_NOTADB) return corruptError(path, text, thrown);
  return new SandboxError("database_unusable", {
    message: `cannot open the database ${path}: ${text}`,
    details: { path },
    cause: thrown,
  });
}

export function corruptError(path: string, finding: string, cause?: unknown): SandboxError {
  return new SandboxError("database_corrupt", {
    message: `the database ${path} is damaged (${finding}); the file was not changed`,
    hint:
      `restore it from a backup, or move it and its -wal file away (mv ${path} ${path}.damaged) ` +
      "and start with an empty database",
    details: { path },
    cause,
  });
}

export function tooNewError(path: string, versions: { readonly found: number; readonly known: number }): SandboxError {
  return new SandboxError("database_too_new", {
    message: `the database ${path} has version ${versions.found}, but this program supports at most version ${versions.known}; the file was not changed`,
    hint: `start the newer version that wrote it, or move it away (mv ${path} ${path}.newer) and start with an empty database`,
    details: { path, ...versions },
  });
}
