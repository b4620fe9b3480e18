import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Clock, type ObjectStore, SandboxError, systemClock } from "@sandpiper/core";
import { isSandboxId } from "@sandpiper/protocol";
import { writePrivateFile } from "../auth/private-file.ts";
import { CLUSTER_OBJECT, RESTORE_OBJECT } from "../cluster/join-cluster.ts";
import { KEYS_OBJECT, keysDocumentSchema } from "../cluster/stored-keys.ts";
import type { NodeConfig } from "../config/node-config.ts";
import { lockHome } from "../records/home-lock.ts";
import { chunksIn } from "../store/chunked-files.ts";
import { DirectoryStore } from "../store/directory-store.ts";
import { openStore } from "../store/open-store.ts";
import { contentOf } from "../store/signed-object.ts";
import { type BackupIndex, damagedBackup, OBJECTS, readObject } from "./backup-index.ts";
import { hasObjects } from "./backup-place.ts";
import { clusterSecretOf } from "./backup-source.ts";
import { restoreHomeFiles } from "./home-files.ts";
import { type OpenBackupOptions, type OpenedBackup, openBackup } from "./open-backup.ts";
import { readCheckpoints } from "./read-checkpoints.ts";
import { openState } from "./read-state.ts";
import { type RestoredState, restoreControl } from "./restore-control.ts";
import { RESTORE_FILE } from "./unfinished-restore.ts";

const STATE = /^objects\/states\/(.+)\.state$/;

export interface RestoreBackupOptions extends OpenBackupOptions {
  readonly onBytes?: ((bytes: number) => void) | undefined;
  readonly clock?: Clock | undefined;
}

/** Restores the home of a standalone node into the configured home, or a cluster into the configured store. Both must be empty. */
export async function restoreBackup(config: NodeConfig, options: RestoreBackupOptions): Promise<BackupIndex> {
  const { onBytes = () => {}, clock = systemClock } = options;
  const backup = await openBackup(config, options);
  const restoring = { backup, onBytes, clock };
  try {
    await (backup.index.kind === "home" ? restoreHome(config, restoring) : restoreStore(config, restoring));
  } catch (thrown) {
    throw SandboxError.from(thrown);
  }
  return backup.index;
}

interface Restoring {
  readonly backup: OpenedBackup;
  readonly onBytes: (bytes: number) => void;
  readonly clock: Clock;
}

async function restoreHome({ home, store }: NodeConfig, restoring: Restoring): Promise<void> {
  const { backup } = restoring;
  if (store !== null)
    throw mismatch(backup, `holds the home of a standalone node, and the store ${store} is configured`);
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const database = join(home, "node.db");
  // Throws `home_in_use` if a node runs here.
  using _ = lockHome(database);
  const marker = join(home, RESTORE_FILE);
  const isRepeated = existsSync(marker) && readFileSync(marker, "utf8").trim() === backup.index.id;
  const isInUse = [database, join(home, "store")].some((path) => existsSync(path));
  if (isInUse && !isRepeated) throw notEmpty(home);
  writePrivateFile(marker, `${backup.index.id}\n`);
  await restoreSandboxes(new DirectoryStore(join(home, "store")), restoring);
  writePrivateFile(join(home, "secret"), backup.secret);
  for (const leftover of [`${database}-wal`, `${database}-shm`]) rmSync(leftover, { force: true });
  await restoreHomeFiles(home, backup.store, { objects: backup.index.objects, keyring: backup.keyring });
  rmSync(marker);
}

/** `cluster.json` comes last: until then no node can use the store. */
async function restoreStore(config: NodeConfig, restoring: Restoring): Promise<void> {
  const { backup, clock } = restoring;
  if (config.store === null) throw mismatch(backup, "holds the store of a cluster, and no store is configured");
  const store = openStore(config.store);
  const marker = await store.get(RESTORE_OBJECT);
  const isRepeated = marker !== undefined && Buffer.from(marker.bytes).toString() === backup.index.id;
  if (!isRepeated && (await hasObjects(store))) throw notEmpty(store.label);
  await store.put(RESTORE_OBJECT, Buffer.from(backup.index.id));
  const states = await restoreSandboxes(store, restoring);
  const keys = keysDocumentSchema.parse(JSON.parse(Buffer.from(await controlObject(backup, KEYS_OBJECT)).toString()));
  await restoreControl({ store, keyring: backup.keyring, clock, keys, states });
  const secret = clusterSecretOf(config);
  if (secret.find() === undefined) writePrivateFile(secret.path, backup.secret);
  const cluster = listed(backup, CLUSTER_OBJECT);
  await store.put(CLUSTER_OBJECT, await readObject(backup.store, cluster), { ifAbsent: true });
  await store.delete(RESTORE_OBJECT);
}

/** Chunks, manifests and states, in the order of a save. */
async function restoreSandboxes(store: ObjectStore, { backup, onBytes }: Restoring): Promise<readonly RestoredState[]> {
  const { index, keyring } = backup;
  const to = chunksIn(store).openSession();
  await readCheckpoints(backup, { from: chunksIn(backup.store).openSession(), to, onBytes });
  const states: RestoredState[] = [];
  for (const prefix of ["secrets/", "checkpoints/", "states/"]) {
    for (const object of index.objects.filter(({ key }) => key.startsWith(OBJECTS + prefix))) {
      const bytes = await readObject(backup.store, object);
      const id = STATE.exec(object.key)?.[1];
      if (isSandboxId(id)) {
        const { saved, epoch } = openState(keyring, index.kind, { id, bytes, store: backup.store });
        if (saved !== undefined) states.push({ record: saved.record, epoch });
      }
      await store.put(object.key.slice(OBJECTS.length), bytes);
    }
  }
  return states;
}

async function controlObject(backup: OpenedBackup, key: string): Promise<Uint8Array> {
  const content = contentOf(await readObject(backup.store, listed(backup, key)));
  if (content === undefined) throw damagedBackup(backup.store, OBJECTS + key, "it has no signature");
  return content;
}

function listed({ store, index }: OpenedBackup, key: string) {
  const found = index.objects.find((object) => object.key === OBJECTS + key);
  if (found === undefined) throw damagedBackup(store, OBJECTS + key, "it is missing");
  return found;
}

function mismatch({ store }: OpenedBackup, why: string): SandboxError {
  const message = `the backup ${store.label} ${why}`;
  return new SandboxError("backup_kind_mismatch", { message, details: { backup: store.label } });
}

function notEmpty(target: string): SandboxError {
  return new SandboxError("restore_target_not_empty", {
    message: `cannot restore into ${target}: it is not empty`,
    details: { target },
  });
}
