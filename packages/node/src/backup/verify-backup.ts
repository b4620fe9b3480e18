import type { NodeConfig } from "../config/node-config.ts";
import { chunksIn } from "../store/chunked-files.ts";
import { type BackupIndex, OBJECTS, readObject } from "./backup-index.ts";
import { readHomeFiles } from "./home-files.ts";
import { type OpenBackupOptions, openBackup } from "./open-backup.ts";
import { readCheckpoints } from "./read-checkpoints.ts";

export interface VerifyBackupOptions extends OpenBackupOptions {
  readonly onBytes?: ((bytes: number) => void) | undefined;
}

/** Reads and decrypts everything in a backup. Throws `backup_damaged` at the first fault. */
export async function verifyBackup(config: NodeConfig, options: VerifyBackupOptions): Promise<BackupIndex> {
  const { onBytes = () => {} } = options;
  const backup = await openBackup(config, options);
  const { store, index, keyring } = backup;
  for (const object of index.objects) {
    if (object.key.startsWith(OBJECTS)) onBytes((await readObject(store, object)).length);
  }
  await readHomeFiles(store, { objects: index.objects, keyring }, async (_, bytes) => onBytes(bytes.length));
  const chunks = chunksIn(store).openSession();
  await readCheckpoints(backup, { from: chunks, to: undefined, onBytes });
  return index;
}
