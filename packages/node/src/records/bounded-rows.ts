import type { NodeDatabase } from "./database.ts";

/** Removing many at once costs little more than removing one. */
const ROWS_PER_REMOVAL = 100;

/** Keeps the newest rows of a table whose ids count upwards; older ones are out of sight at once and removed in bulk. */
export class BoundedRows {
  readonly #database: NodeDatabase;
  readonly #table: string;
  readonly #maxRows: number;
  #newestId: number;

  constructor(database: NodeDatabase, table: "events" | "auditEntries", maxRows: number) {
    this.#database = database;
    this.#table = table;
    this.#maxRows = maxRows;
    // Also where all rows are gone, ids go on from the last that was given.
    const last = database.prepare("SELECT seq FROM sqlite_sequence WHERE name = :table").get({ table });
    this.#newestId = Number(last?.["seq"] ?? 0);
    this.#remove();
  }

  get newestId(): number {
    return this.#newestId;
  }

  /** The id after which rows can be read. */
  get floor(): number {
    return Math.max(0, this.#newestId - this.#maxRows);
  }

  added(id: number): void {
    const isDue = Math.floor(id / ROWS_PER_REMOVAL) > Math.floor(this.#newestId / ROWS_PER_REMOVAL);
    this.#newestId = id;
    if (isDue) this.#remove();
  }

  #remove(): void {
    this.#database.prepare(`DELETE FROM ${this.#table} WHERE id <= :floor`).run({ floor: this.floor });
  }
}
