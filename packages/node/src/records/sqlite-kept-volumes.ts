import type { SandboxId } from "@sandpiper/protocol";
import type { NodeDatabase } from "./database.ts";

const ADD = `INSERT OR REPLACE INTO keptVolumes (sandboxId, tenant, provider, keptAt)
  VALUES (:sandboxId, :tenant, :provider, :keptAt)`;
const GET = "SELECT tenant, provider, keptAt FROM keptVolumes WHERE sandboxId = :sandboxId";

/** A destroyed sandbox whose volumes were kept. */
export interface KeptVolumesRecord {
  readonly sandboxId: SandboxId;
  readonly tenant: string;
  readonly provider: string;
  readonly keptAt: Date;
}

/** Which sandboxes left their volumes, and to which tenant. It outlives the records of the sandboxes. */
export class SqliteKeptVolumes {
  readonly #database: NodeDatabase;

  constructor(database: NodeDatabase) {
    this.#database = database;
  }

  add({ sandboxId, tenant, provider, keptAt }: KeptVolumesRecord): void {
    this.#database.prepare(ADD).run({ sandboxId, tenant, provider, keptAt: keptAt.getTime() });
  }

  get(sandboxId: SandboxId): KeptVolumesRecord | undefined {
    const row = this.#database.prepare(GET).get({ sandboxId });
    if (row === undefined) return undefined;
    const { tenant, provider, keptAt } = row as { tenant: string; provider: string; keptAt: number };
    return { sandboxId, tenant, provider, keptAt: new Date(keptAt) };
  }

  remove(sandboxId: SandboxId): void {
    this.#database.prepare("DELETE FROM keptVolumes WHERE sandboxId = :sandboxId").run({ sandboxId });
  }
}
