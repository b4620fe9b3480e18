import { randomUUID } from "node:crypto";
import { type Clock, type ObjectStore, SandboxError, systemClock } from "@sandpiper/core";
import { isSandboxId, type SandboxId } from "@sandpiper/protocol";
import { CLUSTER_OBJECT } from "../cluster/join-cluster.ts";
import { KEYS_OBJECT } from "../cluster/stored-keys.ts";
import type { NodeConfig } from "../config/node-config.ts";
import { verifyObject } from "../store/signed-object.ts";
import {
  type BackupContent,
  type BackupIndex,
  type LeftOutSandbox,
  OBJECTS,
  SECRET,
  writeIndex,
} from "./backup-index.ts";
import { emptyPlace, openPlace, requireEmptyPlace } from "./backup-place.ts";
import { type BackupSource, openSource } from "./backup-source.ts";
import { BackupWriter } from "./backup-writer.ts";
import { type CopiedSandbox, copySandbox } from "./copy-sandbox.ts";
import { copyDatabase, type HomeRecord, writeHomeFiles } from "./home-files.ts";

const STATE = /^states\/(.+)\.state$/;

export interface CreateBackupOptions {
  /** A directory or a URL; it must be empty. */
  readonly place: string;
  /** Also stores the secret, which decrypts the backup. */
  readonly includesSecret: boolean;
  readonly onBytes?: ((bytes: number) => void) | undefined;
  readonly clock?: Clock | undefined;
}

/** Copies the configured store, or the home of a standalone node, while nodes run. */
export async function createBackup(config: NodeConfig, options: CreateBackupOptions): Promise<BackupIndex> {
  const { includesSecret, onBytes = () => {}, clock = systemClock } = options;
  const source = await openSource(config);
  const backup = openPlace(options.place);
  await requireEmptyPlace(backup);
  try {
    const createdAt = clock.now().toISOString();
    const copy = new BackupCopy({ config, source, clock, writer: new BackupWriter(backup, onBytes) });
    const content = await (source.kind === "home" ? copy.copyHome() : copy.copyStore());
    if (includesSecret) await backup.put(SECRET, source.secret);
    const { kind, clusterId, keyring } = source;
    const header = { version: 1, id: randomUUID(), kind, clusterId, createdAt, hasSecret: includesSecret } as const;
    await writeIndex(backup, keyring, { header, content });
    return { ...header, ...content };
  } catch (thrown) {
    await emptyPlace(backup).catch(() => {});
    throw SandboxError.from(thrown);
  }
}

interface BackupCopyOptions {
  readonly config: NodeConfig;
  readonly source: BackupSource;
  readonly clock: Clock;
  readonly writer: BackupWriter;
}

class BackupCopy {
  readonly #options: BackupCopyOptions;
  readonly #copied = new Map<SandboxId, CopiedSandbox>();
  readonly #leftOut: LeftOutSandbox[] = [];

  constructor(options: BackupCopyOptions) {
    this.#options = options;
  }

  /** Keys before sandboxes, so that the key of each sandbox is known. Leases and nodes are not copied: they end with the nodes. */
  async copyStore(): Promise<BackupContent> {
    const { source, writer } = this.#options;
    const { store, keyring } = source;
    for (const key of [CLUSTER_OBJECT, KEYS_OBJECT]) {
      const stored = await store.get(key);
      if (stored === undefined || "fault" in verifyObject(keyring, key, stored.bytes)) throw notSigned(store, key);
      await writer.put(OBJECTS + key, stored.bytes);
    }
    await this.#copySecrets();
    for await (const { key } of store.list("states/")) {
      const id = STATE.exec(key)?.[1];
      if (isSandboxId(id)) await this.#copy(id);
    }
    return this.#content();
  }

  /**
   * The database first, then the states of its sandboxes: they are at least as new, as after a crash of the node. A sandbox at
   * rest that has lost its checkpoints since then is corrected in the copy of the database.
   */
  async copyHome(): Promise<BackupContent> {
    const { config, source, writer } = this.#options;
    using database = copyDatabase(config.home);
    await this.#copySecrets();
    for (const record of database.records) {
      const isPresent = await this.#copy(record.id, record);
      if (record.isAtRest && !this.#copied.has(record.id)) database.correct(record.id, { isDestroyed: !isPresent });
    }
    await writeHomeFiles(config.home, { database, keyring: source.keyring, writer });
    return this.#content();
  }

  /** As they are: encrypted. */
  async #copySecrets(): Promise<void> {
    const { source, writer } = this.#options;
    for await (const { key } of source.store.list("secrets/")) {
      const stored = await source.store.get(key);
      if (stored !== undefined) await writer.put(OBJECTS + key, stored.bytes);
    }
  }

  /** Resolves to false if the sandbox has no state. */
  async #copy(id: SandboxId, known?: HomeRecord): Promise<boolean> {
    const { source, clock, writer } = this.#options;
    const { store, kind, keyring } = source;
    const result = await copySandbox(id, { source: store, kind, keyring, clock, writer });
    if (result !== undefined && "checkpoints" in result) {
      this.#copied.set(id, result);
      return true;
    }
    const isDestroyed = result === undefined && (known?.isAtRest ?? true);
    const { tenant, name } = result?.saved?.record ?? known ?? { tenant: null, name: null };
    const why = result?.why ?? "it has no checkpoint";
    if (!isDestroyed) this.#leftOut.push({ id, tenant, name, why });
    return result !== undefined;
  }

  #content(): BackupContent {
    const { writer } = this.#options;
    const copied = [...this.#copied.values()];
    return {
      sandboxes: copied.map(({ saved: { record }, checkpoints }) => {
        const { id, createdAt } = checkpoints.at(-1) as (typeof checkpoints)[number];
        return { id: record.id, tenant: record.tenant, name: record.name, checkpoint: { id, createdAt } };
      }),
      leftOut: this.#leftOut,
      damaged: copied.flatMap(({ saved: { record }, damaged }) =>
        damaged.map(({ id }) => ({ sandbox: record.id, checkpoint: id })),
      ),
      objects: [...writer.objects],
      chunks: writer.chunks.size,
      bytes: writer.bytes,
    };
  }
}

function notSigned({ label }: ObjectStore, key: string): SandboxError {
  return new SandboxError("object_damaged", {
    message: `cannot back up ${label}: ${key} is missing, or no node of the cluster wrote it`,
    hint: "start a node: it puts the keys that it knows back",
    details: { key, store: label },
  });
}
