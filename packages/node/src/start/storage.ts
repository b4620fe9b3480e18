import { chmodSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Clock, SandboxError } from "@sandpiper/core";
import { AuditChain } from "../audit/audit-chain.ts";
import { AuditTrail } from "../audit/audit-trail.ts";
import { KeyService } from "../auth/key-service.ts";
import { openKeyring, openNodeSecrets } from "../auth/node-secret.ts";
import { writePrivateFile } from "../auth/private-file.ts";
import { SandboxTokens } from "../auth/sandbox-tokens.ts";
import { requireFinishedRestore } from "../backup/unfinished-restore.ts";
import type { NodeDescription } from "../cluster/node-registry.ts";
import { type Cluster, openCluster } from "../cluster/open-cluster.ts";
import type { NodeConfig } from "../config/node-config.ts";
import { FlowLog } from "../flows/flow-log.ts";
import { type NodeDatabase, openDatabase } from "../records/database.ts";
import { SqliteEventLog } from "../records/sqlite-event-log.ts";
import { SqliteIdempotencyRecords } from "../records/sqlite-idempotency-records.ts";
import { SqliteKeptVolumes } from "../records/sqlite-kept-volumes.ts";
import { SqliteKeyRecords } from "../records/sqlite-key-records.ts";
import { SqliteSandboxRecords } from "../records/sqlite-sandbox-records.ts";
import { SqliteWebhookRecords } from "../records/sqlite-webhook-records.ts";
import { CheckpointStore } from "../store/checkpoint-store.ts";
import { DirectoryStore } from "../store/directory-store.ts";
import { openStore } from "../store/open-store.ts";
import { rewriteData } from "../store/rewrite-data.ts";
import { recordVersion, withVersions } from "./home-version.ts";

/** The format of a standalone node's store. Format 1 was not encrypted, and had no marker. */
const STORE_FORMAT = 2;
const STORE_FORMAT_FILE = "store-format";

export interface StorageOptions {
  readonly clock: Clock;
  readonly version: string;
  /** What the other nodes of the cluster see of this one. */
  readonly describe: () => NodeDescription;
  readonly onError: (error: SandboxError) => void;
}

export type Storage = ReturnType<typeof createStorage>;

/** Opens everything that outlives the node's process; joins the cluster if the node shares a store. */
export async function openStorage(config: NodeConfig, options: StorageOptions) {
  const database = openHome(config);
  try {
    const keyRecords = new SqliteKeyRecords(database);
    const ownKeys = { keys: keyRecords.list(), tenants: keyRecords.tenantQuotas() };
    const cluster =
      config.store === null
        ? undefined
        : await openCluster({ ...options, config, store: openStore(config.store), ownKeys });
    const storage = createStorage(config, { ...options, database, cluster });
    if (cluster === undefined) await protectStore(config.home, storage);
    recordVersion(config.home);
    return storage;
  } catch (thrown) {
    database[Symbol.dispose]();
    throw thrown;
  }
}

export function createStorage(
  config: NodeConfig,
  parts: Pick<StorageOptions, "clock" | "onError"> & {
    readonly database: NodeDatabase;
    readonly cluster?: Cluster | undefined;
  },
) {
  const { clock, database, cluster, onError } = parts;
  const store = cluster?.store ?? new DirectoryStore(join(config.home, "store"));
  const keyring = cluster?.keyring ?? openKeyring(config.home);
  return {
    database,
    cluster,
    store,
    keyring,
    checkpointStore: new CheckpointStore({ store, keyring, clock, directory: join(config.home, "checkpoints") }),
    records: new SqliteSandboxRecords(database),
    idempotency: new SqliteIdempotencyRecords(database, { clock }),
    keptVolumes: new SqliteKeptVolumes(database),
    events: new SqliteEventLog(database, { clock }),
    flows: new FlowLog(database, {
      clock,
      onError,
      maxPerSandbox: config.network.logRecordsPerSandbox,
      maxPerTenant: config.network.logRecordsPerTenant,
    }),
    audit: new AuditTrail(database, { chain: openAuditChain(config), clock, onError }),
    webhookRecords: new SqliteWebhookRecords(database, { clock }),
    ownKeys: new KeyService(database, { clock }),
    tokens: cluster?.tokens ?? new SandboxTokens(openNodeSecrets(config.home)),
  };
}

/** Every node has its own chain, also in a cluster, under its own secret. */
function openAuditChain({ home }: Pick<NodeConfig, "home">): AuditChain {
  return new AuditChain(openKeyring(home));
}

/** Encrypts checkpoints of an earlier version, once: after that, clear text in the store counts as damaged. */
async function protectStore(home: string, { store, keyring }: Pick<Storage, "store" | "keyring">): Promise<void> {
  const marker = join(home, STORE_FORMAT_FILE);
  if (existsSync(marker)) return;
  await rewriteData({ store, keyring, acceptUnprotected: true });
  writePrivateFile(marker, `${STORE_FORMAT}\n`);
}

/** Checked before anything in the home changes. */
function requireKnownStore(home: string): void {
  const marker = join(home, STORE_FORMAT_FILE);
  const found = existsSync(marker) ? Number.parseInt(readFileSync(marker, "utf8"), 10) : STORE_FORMAT;
  if (found <= STORE_FORMAT) return;
  const store = join(home, "store");
  throw new SandboxError("store_too_new", {
    message: `the store ${store} has format ${found}, but this node supports at most format ${STORE_FORMAT}; nothing was changed there`,
    details: { store, found, known: STORE_FORMAT },
  });
}

/** Creates the node's home directory, which only its owner may read, and opens its database. */
export function openHome({ home }: Pick<NodeConfig, "home">): NodeDatabase {
  try {
    requireKnownStore(home);
    mkdirSync(home, { recursive: true, mode: 0o700 });
    chmodSync(home, 0o700);
    requireFinishedRestore(home);
    return openDatabase(join(home, "node.db"));
  } catch (thrown) {
    throw withVersions(home, thrown);
  }
}
