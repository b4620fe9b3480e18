import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Clock, KeyedMutex, type Provider, type SandboxError, systemClock } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { KeyService } from "./auth/key-service.ts";
import { NodeAuthenticator } from "./auth/node-authenticator.ts";
import { openSandboxTokens } from "./auth/sandbox-tokens.ts";
import { AutomaticCheckpoints } from "./checkpoints/automatic-checkpoints.ts";
import { canRestore } from "./checkpoints/can-restore.ts";
import type { Locator } from "./checkpoints/locator.ts";
import { LoneCustody } from "./checkpoints/lone-custody.ts";
import { LoneLocator } from "./checkpoints/lone-locator.ts";
import { NodeCheckpoints } from "./checkpoints/node-checkpoints.ts";
import { SparePlaces } from "./checkpoints/spare-places.ts";
import { createProvider } from "./compose.ts";
import { composeSaving } from "./compose-saving.ts";
import type { NodeConfig } from "./config/node-config.ts";
import { SqliteEventLog } from "./events/sqlite-event-log.ts";
import { ClusterCustody } from "./handoff/cluster-custody.ts";
import { Handoffs } from "./handoff/handoffs.ts";
import type { NodeCluster } from "./handoff/node-cluster.ts";
import { NodePool } from "./pool/node-pool.ts";
import { type NodeDatabase, openDatabase } from "./records/database.ts";
import type { SandboxRecord } from "./records/sandbox-record.ts";
import { SqliteIdempotencyRecords } from "./records/sqlite-idempotency-records.ts";
import { SqliteSandboxRecords } from "./records/sqlite-sandbox-records.ts";
import { LiveSandboxes } from "./service/live-sandboxes.ts";
import { NodeContainers } from "./service/node-containers.ts";
import { NodeService } from "./service/node-service.ts";
import { Providers } from "./service/providers.ts";
import { Rebuilds } from "./service/rebuilds.ts";
import { DirectoryStore } from "./store/directory-store.ts";

export interface NodePartsOptions {
  readonly clock?: Clock | undefined;
  /** Instead of those that this machine has; for tests. */
  readonly providers?: readonly Provider[] | undefined;
  /** Open already; opened here unless given. */
  readonly database?: NodeDatabase | undefined;
  /** What this node shares with others; nothing unless given. */
  readonly cluster?: NodeCluster | undefined;
  /** Told until when a sandbox may run here. */
  readonly onDeadline?: ((id: SandboxId, deadlineMs: number | undefined) => void) | undefined;
  /** Told about failures that no caller waits for. */
  readonly onError: (error: SandboxError, about: object) => void;
  readonly observeExec?: ((provider: string, seconds: number) => void) | undefined;
  readonly observeCheckpoint?: ((provider: string, seconds: number) => void) | undefined;
  readonly observeCreate?: ((provider: string, seconds: number, isWarm: boolean) => void) | undefined;
}

export type NodeParts = ReturnType<typeof composeParts>;

/** Everything of a node but its interfaces to the outside. */
export function composeParts(config: NodeConfig, options: NodePartsOptions) {
  const { clock = systemClock, onError, observeCreate, observeExec, cluster } = options;
  const database = options.database ?? openHome(config);
  try {
    const records = new SqliteSandboxRecords(database);
    const idempotency = new SqliteIdempotencyRecords(database, { clock });
    const events = new SqliteEventLog(database, { clock });
    const tokens = cluster?.tokens ?? openSandboxTokens(config.home);
    const keys = new KeyService(database, { clock });
    const providers = new Providers({
      providers: options.providers ?? ownProviders(config),
      imagesDir: config.imagesDir,
      onError: (error, id) => onError(error, { sandboxId: id }),
    });
    const defaults = {
      provider: config.defaultProvider,
      containerImage: config.docker.image,
      ...config.defaults,
    };
    const turns = new KeyedMutex<SandboxId>();
    const store = cluster?.store ?? new DirectoryStore(join(config.home, "store"));
    const shared =
      cluster &&
      new ClusterCustody({
        ...cluster,
        requirements: (record) => saver.requirements(record),
        onWanted: (id) => handoffs?.wanted(id),
        onLost: (id) => handoffs?.lost(id),
        onDeadline: options.onDeadline ?? (() => {}),
      });
    const custody = shared ?? new LoneCustody(store);
    const about = (error: SandboxError, id: SandboxId) => onError(error, { sandboxId: id });
    const live = new LiveSandboxes({
      records,
      events,
      clock,
      observeExec,
      onError: about,
      automatic: new AutomaticCheckpoints({
        clock,
        policyOf: (id) => live.get(id)?.record.checkpointPolicy,
        save: (id) => checkpoints.createAutomatic(id),
        onError: about,
      }),
      expired: (record, expired) => {
        const end =
          record.onExpiry === "pause" ? checkpoints.pauseNow(record.id) : service.destroy(record, { expired });
        end.catch((error) => onError(error, { sandboxId: record.id, expired }));
      },
    });
    const { home } = config;
    const { observeCheckpoint } = options;
    const saving = { store, home, custody, providers, records, live, clock, observeCheckpoint, onError: about };
    const { vault, saver } = composeSaving(saving);
    const pool = new NodePool({
      providers,
      defaults,
      clock,
      maxBoots: config.poolMaxBoots,
      maxAgeMs: config.poolMaxAgeMs,
      sweepIntervalMs: config.poolSweepMs,
      onError: (error) => onError(error, { pool: true }),
    });
    const service: NodeService = new NodeService({
      providers,
      pool,
      records,
      idempotency,
      transaction: (work) => database.transaction(work),
      events,
      live,
      custody,
      turns,
      saveRecord: (record) => saver.saveRecord(record),
      forgetSaved: (id) => saver.forget(id),
      createFrom: (principal, body, checkpoint) => checkpoints.createFrom(principal, body, checkpoint),
      nodeId: cluster?.node.id ?? null,
      quotas: cluster?.quotas,
      tokenOf: (id) => tokens.tokenOf(id),
      defaults,
      maxSandboxes: config.maxSandboxes,
      clock,
      observeCreate,
    });
    const rebuilds = new Rebuilds({ service, providers, pool, records, live, custody, turns, events, clock });
    const containers = new NodeContainers({ providers, rebuilds, records, defaultProvider: config.defaultProvider });
    const spares = new SparePlaces({ providers, clock, onError: about });
    const checkpoints: NodeCheckpoints = new NodeCheckpoints({
      spares,
      service,
      saver,
      vault,
      custody,
      turns,
      providers,
      records,
      live,
      events,
      clock,
      onDamaged: about,
    });
    const handoffs =
      cluster &&
      shared &&
      new Handoffs({
        nodeId: cluster.node.id,
        leases: cluster.leases,
        nudge: cluster.nudge,
        quotas: cluster.quotas,
        custody: shared,
        checkpoints,
        vault,
        clock,
        saver,
        turns,
        providers,
        records,
        live,
        events,
        onError: about,
      });
    const locator: Locator = handoffs ?? new LoneLocator({ live, records, turns, checkpoints });
    const authenticator = new NodeAuthenticator({
      keys: cluster?.keys ?? keys,
      tokens,
      records,
      isInCluster: cluster !== undefined,
    });
    return {
      clock,
      database,
      records,
      events,
      keys,
      providers,
      live,
      pool,
      service,
      checkpoints,
      rebuilds,
      containers,
      locator,
      handoffs,
      turns,
      spares,
      vault,
      custody,
      shared,
      canRestore: (record: SandboxRecord) => canRestore(custody, record),
      authenticator,
    };
  } catch (thrown) {
    database[Symbol.dispose]();
    throw thrown;
  }
}

/** The directory of a node, and its records; nobody else may look into it. */
export function openHome({ home }: Pick<NodeConfig, "home">): NodeDatabase {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  chmodSync(home, 0o700);
  return openDatabase(join(home, "node.db"));
}

/** In a directory of its own: what embedded programs clear away after each other must not be a node's sandboxes. */
function ownProviders({ home, defaultProvider, providers, qemu, ...config }: NodeConfig): Provider[] {
  const { url, runtime, ...rest } = config.docker;
  const docker = { ...rest, url: url ?? undefined, runtime: runtime ?? undefined };
  const vmDocker = { ...config.vmDocker, machineImage: config.vmDocker.machineImage ?? undefined };
  return [...new Set([defaultProvider, ...providers])].map((name) =>
    createProvider(name, { home: join(home, "node"), docker, qemu, vmDocker }),
  );
}
