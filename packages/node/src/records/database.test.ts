import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { SandboxError } from "@sandpiper/core";
import { beforeEach, describe, expect, it } from "vitest";
import { ScratchHome } from "../testing/scratch-home.ts";
import { openDatabase } from "./database.ts";
import { migrations } from "./migrations.ts";

let home: ScratchHome;

beforeEach(() => {
  home = new ScratchHome();
});

describe("the database", () => {
  it("and all its files are accessible to their owner only", () => {
    home.database.prepare("DELETE FROM events").run();
    const modes = readdirSync(home.path).map((name) => [name, statSync(join(home.path, name)).mode & 0o777]);
    expect(modes).toContainEqual(["node.db-wal", 0o600]);
    expect(modes.filter(([, mode]) => mode !== 0o600)).toEqual([]);
  });

  it("gets mode 0600 back when it is opened after its mode was changed", () => {
    home.reopen();
    chmodSync(home.databasePath, 0o644);
    home.reopen();
    expect(statSync(home.databasePath).mode & 0o777).toBe(0o600);
  });

  it("creates its parent directories with mode 0700", () => {
    const path = join(home.path, "deep", "er", "node.db");
    using _ = openDatabase(path);
    expect(statSync(join(path, "..")).mode & 0o777).toBe(0o700);
  });

  it("uses a write-ahead log, so that a commit does not wait for the disk", () => {
    expect(home.database.prepare("PRAGMA journal_mode").get()).toEqual({ journal_mode: "wal" });
    expect(home.database.prepare("PRAGMA synchronous").get()).toEqual({ synchronous: 1 });
    expect(home.database.prepare("PRAGMA foreign_keys").get()).toEqual({ foreign_keys: 1 });
  });

  it("rolls back a failed transaction together with its nested transactions", () => {
    const { database } = home;
    const insert = () => database.prepare("INSERT INTO idempotencyKeys VALUES ('t', 'k', 'f', 'i', 0)").run();
    expect(() =>
      database.transaction(() => {
        database.transaction(insert);
        throw new Error("no");
      }),
    ).toThrow("no");
    expect(database.prepare("SELECT count(*) AS n FROM idempotencyKeys").get()).toEqual({ n: 0 });
    expect(database.transaction(insert).changes).toBe(1);
  });

  it("reports database_unusable if its path is a directory", () => {
    mkdirSync(home.databasePath);
    expect(refusal()).toMatchObject({ code: "failed_precondition", reason: "database_unusable" });
  });
});

describe("migrations", () => {
  it("upgrade an older database to the newest version and keep its data", () => {
    const steps = ["CREATE TABLE a (x)", "INSERT INTO a VALUES (1)", "ALTER TABLE a ADD COLUMN y DEFAULT 2"];
    openDatabase(home.databasePath, { migrations: steps.slice(0, 2) })[Symbol.dispose]();
    for (let start = 0; start < 2; start += 1) {
      using database = openDatabase(home.databasePath, { migrations: steps });
      expect(database.prepare("SELECT * FROM a").all()).toEqual([{ x: 1, y: 2 }]);
      expect(database.prepare("PRAGMA user_version").get()).toEqual({ user_version: 3 });
    }
  });

  it("change nothing if one of them fails", () => {
    openDatabase(home.databasePath, { migrations: ["CREATE TABLE a (x)"] })[Symbol.dispose]();
    const broken = ["CREATE TABLE a (x)", "CREATE TABLE b (x); CREATE TABLE a (x)"];
    expect(() => openDatabase(home.databasePath, { migrations: broken })).toThrow("already exists");
    using database = openDatabase(home.databasePath, { migrations: ["CREATE TABLE a (x)"] });
    expect(database.prepare("SELECT name FROM sqlite_schema").all()).toEqual([{ name: "a" }]);
  });

  it("leave no partial database when the first start fails", () => {
    expect(() => openDatabase(home.databasePath, { migrations: ["CREATE TABLE a (x)", "nonsense"] })).toThrow(
      "nonsense",
    );
    expect(existsSync(home.databasePath)).toBe(false);
    using database = openDatabase(home.databasePath, { migrations: ["CREATE TABLE a (x)"] });
    expect(database.prepare("SELECT count(*) AS n FROM a").get()).toEqual({ n: 0 });
  });
});

describe("an unusable database", () => {
  it("is refused and left unchanged if a newer version wrote it", () => {
    openDatabase(home.databasePath, { migrations: [...migrations, "CREATE TABLE later (x)"] })[Symbol.dispose]();
    const before = readFileSync(home.databasePath);
    const error = refusal();
    expect(error).toMatchObject({
      code: "failed_precondition",
      reason: "database_too_new",
      details: { found: migrations.length + 1, known: migrations.length },
    });
    expect(error.hint).toContain("newer version");
    expect(readFileSync(home.databasePath).equals(before)).toBe(true);
  });

  it.each([
    [
      "another kind of file",
      () => writeFileSync(home.databasePath, "this is not a database, but it is rather long".repeat(99)),
    ],
    ["empty", () => truncateSync(home.databasePath, 0)],
    ["truncated", () => truncateSync(home.databasePath, 5 * 4096)],
    ["overwritten in the middle", () => overwrite(3 * 4096, 4096)],
    ["overwritten at its start", () => overwrite(100, 3000)],
  ])("is refused and left unchanged if it is %s", (_, damage) => {
    fill();
    damage();
    const before = readFileSync(home.databasePath);
    const error = refusal();
    expect(error).toMatchObject({ code: "data_loss", reason: "database_corrupt" });
    expect(error.message).toContain(home.databasePath);
    expect(error.hint).toContain(`mv ${home.databasePath}`);
    expect(readFileSync(home.databasePath).equals(before)).toBe(true);
    expect(refusal(), "the lock was released").toMatchObject({ reason: "database_corrupt" });
  });

  it("keeps its write-ahead log unchanged", () => {
    fill();
    const main = readFileSync(home.databasePath);
    const wal = crashedWal();
    writeFileSync(home.databasePath, main.fill(7, 0, 16));
    writeFileSync(`${home.databasePath}-wal`, wal);
    expect(refusal()).toMatchObject({ reason: "database_corrupt" });
    expect(readFileSync(`${home.databasePath}-wal`).equals(wal)).toBe(true);
  });
});

describe("a database that was moved away", () => {
  it("is replaced by an empty one, and the write-ahead log it left is renamed", () => {
    fill();
    const wal = crashedWal();
    rmSync(home.databasePath);
    writeFileSync(`${home.databasePath}-wal`, wal);
    expect(home.database.prepare("SELECT count(*) AS n FROM events").get()).toEqual({ n: 0 });
    expect(readFileSync(`${home.databasePath}.moved-wal`).equals(wal)).toBe(true);
  });
});

describe("a second node on the same directory", () => {
  it("is refused in the same process, with the owner's pid in the error", () => {
    home.reopen();
    expect(refusal()).toMatchObject({
      code: "failed_precondition",
      reason: "home_in_use",
      details: { pid: process.pid },
    });
    expect(refusal().message).toContain(String(process.pid));
  });

  it("is refused in another process after a refused attempt in the owner's process", async () => {
    home.reopen();
    refusal();
    const program = `
      const { openDatabase } = await import(${JSON.stringify(join(import.meta.dirname, "database.ts"))});
      try {
        openDatabase(${JSON.stringify(home.databasePath)});
      } catch (error) {
        console.log(error.reason);
      }`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program]);
    expect(stdout.trim()).toBe("home_in_use");
  });

  it("is refused while another process uses it, and finds all its data after that process is killed", async () => {
    const program = `
      const { openDatabase } = await import(${JSON.stringify(join(import.meta.dirname, "database.ts"))});
      const database = openDatabase(${JSON.stringify(home.databasePath)});
      database.prepare("INSERT INTO idempotencyKeys VALUES ('t', 'k', 'f', 'i', 0)").run();
      console.log("written");
      setInterval(() => {}, 1000);`;
    const holder = spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      await once(holder.stdout, "data");
      expect(refusal()).toMatchObject({ reason: "home_in_use", details: { pid: holder.pid } });
    } finally {
      holder.kill("SIGKILL");
      await once(holder, "exit");
    }
    expect(home.database.prepare("SELECT key FROM idempotencyKeys").all()).toEqual([{ key: "k" }]);
  });
});

function refusal(): SandboxError {
  try {
    openDatabase(home.databasePath)[Symbol.dispose]();
  } catch (thrown) {
    return SandboxError.from(thrown);
  }
  throw new Error("the database was opened");
}

/** Leaves a closed database with some content. */
function fill(): void {
  using database = openDatabase(home.databasePath);
  const insert = database.prepare("INSERT INTO events (at, kind, details) VALUES (1, 'node.started', :details)");
  for (let i = 0; i < 200; i += 1) insert.run({ details: JSON.stringify({ text: "x".repeat(200) }) });
}

function overwrite(offset: number, length: number): void {
  writeFileSync(home.databasePath, readFileSync(home.databasePath).fill(0xa5, offset, offset + length));
}

/** The write-ahead log that a killed writer leaves. */
function crashedWal(): Buffer {
  const sqlite = new DatabaseSync(home.databasePath);
  sqlite.exec("INSERT INTO events (at, kind, details) VALUES (1, 'node.started', '{}')");
  const wal = readFileSync(`${home.databasePath}-wal`);
  sqlite.close();
  return wal;
}
