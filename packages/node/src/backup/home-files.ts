import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { ObjectStore } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { Keyring } from "../auth/keyring.ts";
import { openError, tooNewError } from "../records/database-error.ts";
import { diskFullError } from "../records/disk-full.ts";
import { migrations } from "../records/migrations.ts";
import { openObject, sealObject } from "../store/sealed-objects.ts";
import { type BackupObject, damagedBackup, FILES, readObject } from "./backup-index.ts";
import type { BackupWriter } from "./backup-writer.ts";

const PIECE_BYTES = 8 * 1024 * 1024;
const DATABASE = "node.db";
/** The files of a home, besides the database, that a restored node needs. The secret is not among them. */
const SMALL_FILES = ["api-key", "node-id", "config.json", "store-format"];
const PIECE = /^files\/([a-z.-]+)\/(\d{6})$/;

export interface HomeRecord {
  readonly id: SandboxId;
  readonly tenant: string;
  readonly name: string | null;
  /** Paused, or stopped without a container that holds its files: only a checkpoint has its data. */
  readonly isAtRest: boolean;
}

/** A consistent copy of the database of a node that may be running; disposing it deletes it. */
export interface DatabaseCopy extends Disposable {
  readonly path: string;
  readonly records: readonly HomeRecord[];
  /** Records that a sandbox at rest has been destroyed, or that its data is lost: the next start then marks it as failed. */
  correct(id: SandboxId, options: { readonly isDestroyed: boolean }): void;
}

export function copyDatabase(home: string): DatabaseCopy {
  // The node empties this directory when it starts, so a killed backup leaves nothing.
  const directory = join(home, "checkpoints", `backup-${randomUUID()}`);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, DATABASE);
  const remove = () => rmSync(directory, { recursive: true, force: true });
  try {
    const source = new DatabaseSync(join(home, DATABASE), { readOnly: true, timeout: 5000 });
    try {
      const found = Number(source.prepare("PRAGMA user_version").get()?.["user_version"]);
      if (found > migrations.length) {
        throw tooNewError(join(home, DATABASE), { found, known: migrations.length });
      }
      source.prepare("VACUUM INTO ?").run(path);
    } finally {
      source.close();
    }
    const copy = new DatabaseSync(path);
    return {
      path,
      records: readRecords(copy),
      correct: (id, { isDestroyed }) => {
        const change = isDestroyed ? "state = 'destroyed', endedAt = unixepoch() * 1000" : "state = 'ready'";
        copy.prepare(`UPDATE sandboxes SET ${change} WHERE id = ?`).run(id);
      },
      [Symbol.dispose]: () => {
        copy.close();
        remove();
      },
    };
  } catch (thrown) {
    remove();
    throw diskFullError(thrown) ?? openError(join(home, DATABASE), thrown);
  }
}

function readRecords(copy: DatabaseSync): readonly HomeRecord[] {
  const rows = copy.prepare("SELECT * FROM sandboxes WHERE state <> 'destroyed'").all();
  return rows.map((row) => ({
    id: row["id"] as SandboxId,
    tenant: row["tenant"] as string,
    name: row["name"] as string | null,
    isAtRest: ["paused", "stopped"].includes(row["state"] as string) && (row["stoppedAt"] ?? null) === null,
  }));
}

export async function writeHomeFiles(
  home: string,
  { database, keyring, writer }: { database: DatabaseCopy; keyring: Keyring; writer: BackupWriter },
): Promise<void> {
  const paths = new Map([[DATABASE, database.path], ...SMALL_FILES.map((name) => [name, join(home, name)] as const)]);
  for (const [name, path] of paths) {
    if (!existsSync(path)) continue;
    await using file = await open(path, "r");
    for (let number = 0, bytes = await readPiece(file); bytes.length > 0; bytes = await readPiece(file)) {
      const key = `${FILES}${name}/${String(number++).padStart(6, "0")}`;
      await writer.put(key, sealObject(keyring, key, bytes));
    }
  }
}

/** Calls `use` with each piece of each file, in order. */
export async function readHomeFiles(
  backup: ObjectStore,
  { objects, keyring }: { readonly objects: readonly BackupObject[]; readonly keyring: Keyring },
  use: (name: string, bytes: Uint8Array) => Promise<void>,
): Promise<void> {
  const pieces = objects.filter(({ key }) => key.startsWith(FILES)).sort((a, b) => (a.key < b.key ? -1 : 1));
  for (const piece of pieces) {
    const name = PIECE.exec(piece.key)?.[1] ?? "";
    if (name !== DATABASE && !SMALL_FILES.includes(name)) throw damagedBackup(backup, piece.key, "its name is unknown");
    const opened = openObject(keyring, piece.key, await readObject(backup, piece));
    if ("fault" in opened) throw damagedBackup(backup, piece.key, opened.fault);
    await use(name, opened.content);
  }
}

/** The database gets its name last: until then, the home holds no node. A configuration file that exists stays. */
export async function restoreHomeFiles(
  home: string,
  backup: ObjectStore,
  options: { readonly objects: readonly BackupObject[]; readonly keyring: Keyring },
): Promise<void> {
  const drafts = new Map<string, FileHandle>();
  try {
    await readHomeFiles(backup, options, async (name, bytes) => {
      const draft = drafts.get(name) ?? (await openDraft(home, name));
      drafts.set(name, draft);
      await draft.writeFile(bytes);
    });
    for (const draft of drafts.values()) await draft.sync();
  } finally {
    for (const draft of drafts.values()) await draft.close();
  }
  for (const name of [...drafts.keys()].sort((a, b) => Number(a === DATABASE) - Number(b === DATABASE))) {
    if (name === "config.json" && existsSync(join(home, name))) await rm(draftPath(home, name));
    else await rename(draftPath(home, name), join(home, name));
  }
}

async function openDraft(home: string, name: string): Promise<FileHandle> {
  await rm(draftPath(home, name), { force: true });
  return open(draftPath(home, name), "wx", 0o600);
}

function draftPath(home: string, name: string): string {
  return join(home, `${name}.restored`);
}

async function readPiece(file: FileHandle): Promise<Uint8Array> {
  const bytes = Buffer.allocUnsafe(PIECE_BYTES);
  let filled = 0;
  while (filled < PIECE_BYTES) {
    const { bytesRead } = await file.read(bytes, filled, PIECE_BYTES - filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}
