import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type NodeDatabase, openDatabase } from "../records/database.ts";

/** A temporary home directory of a node, deleted when the test ends. */
export class ScratchHome {
  readonly path = mkdtempSync(join(tmpdir(), "sandpiper-home-"));
  readonly databasePath = join(this.path, "node.db");
  #database: NodeDatabase | undefined;

  constructor() {
    onTestFinished(() => {
      this.#database?.[Symbol.dispose]();
      rmSync(this.path, { recursive: true, force: true });
    });
  }

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
}
