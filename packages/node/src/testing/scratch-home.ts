import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type NodeDatabase, openDatabase } from "../records/database.ts";

/** A temporary home directory of a node. */
export class ScratchHome implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "sandpiper-home-"));
  readonly databasePath = join(this.path, "node.db");
  #database: NodeDatabase | undefined;

  get database(): NodeDatabase {
    this.#database ??= openDatabase(this.databasePath);
    return this.#database;
  }

  /** Simulates a restart of the node. */
  reopen(): NodeDatabase {
    this.#database?.[Symbol.dispose]();
    this.#database = undefined;
    return this.database;
  }

  [Symbol.dispose](): void {
    this.#database?.[Symbol.dispose]();
    rmSync(this.path, { recursive: true, force: true });
  }
}
