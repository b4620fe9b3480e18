import type { NodeDatabase } from "./database.ts";

/** Removing many rows at once costs little more than removing one. */
const ROWS_PER_REMOVAL = 100;

/** Keeps the newest rows of a table with ascending ids. Older rows are hidden at once and removed in bulk. */
export class BoundedRows {
  readonly #database: NodeDatabase;
  readonly #table: string;
  readonly #maxRows: number;
  #newestId: number;

  constructor(database: NodeDatabase, table: "events", maxRows: number) {
    this.#database = database;
    this.#table = table;
    this.#maxRows = maxRows;
    // The sequence survives the removal of all rows, so no id is used twice.
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
