import type { SandboxId } from "@sandpiper/protocol";
import { manifestKey, openManifest } from "../store/checkpoint-manifest.ts";
import { TenantChunks } from "../store/tenant-chunks.ts";
import { damagedBackup, OBJECTS, readObject } from "./backup-index.ts";
import { type CopyChunksOptions, copyChunks } from "./copy-chunks.ts";
import type { OpenedBackup } from "./open-backup.ts";

const MANIFEST = /^objects\/checkpoints\/([^/]+)\/([^/]+)\.json$/;

/** Checks the chunks of all checkpoints of a backup, and copies them if there is a target. Throws `backup_damaged`. */
export async function readCheckpoints(
  { store, index, keyring }: Pick<OpenedBackup, "store" | "index" | "keyring">,
  options: Pick<CopyChunksOptions, "from" | "to" | "onBytes">,
): Promise<void> {
  const known = new Set<string>();
  for (const object of index.objects) {
    const [, sandbox, checkpoint] = MANIFEST.exec(object.key) ?? [];
    if (sandbox === undefined || checkpoint === undefined) continue;
    const key = manifestKey(sandbox as SandboxId, checkpoint);
    const opened = openManifest(keyring, key, await readObject(store, object));
    if ("fault" in opened) throw damagedBackup(store, OBJECTS + key, opened.fault);
    const { tenant, files } = opened.manifest;
    const bad = await copyChunks(files, { ...options, tenant: new TenantChunks(keyring, tenant), known });
    if (bad !== undefined) throw damagedBackup(store, `chunk ${bad}`, `${key} needs it, and it cannot be read`);
    await options.to?.commit();
  }
}
