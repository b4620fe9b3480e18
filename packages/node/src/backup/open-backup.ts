import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type ObjectStore, SandboxError } from "@sandpiper/core";
import { Keyring } from "../auth/keyring.ts";
import { parseNodeSecrets } from "../auth/node-secret.ts";
import { parseClusterSecrets } from "../cluster/cluster-secret.ts";
import type { NodeConfig } from "../config/node-config.ts";
import { type BackupIndex, readIndex, SECRET } from "./backup-index.ts";
import { openPlace } from "./backup-place.ts";
import { clusterSecretOf, homeKeyring } from "./backup-source.ts";

export interface OpenBackupOptions {
  /** A directory or a URL. */
  readonly place: string;
  /** A copy of the file with the secret. */
  readonly secretFile?: string | undefined;
}

export interface OpenedBackup {
  readonly store: ObjectStore;
  readonly index: BackupIndex;
  readonly keyring: Keyring;
  /** As the file in a node's home holds it. */
  readonly secret: Uint8Array;
}

/** Reads the index of a backup and verifies it with the secret: of the file, in the backup, or configured here. */
export async function openBackup(config: NodeConfig, { place, secretFile }: OpenBackupOptions): Promise<OpenedBackup> {
  const store = openPlace(place);
  const { header, open } = await readIndex(store);
  const secret =
    secretFile === undefined
      ? ((await store.get(SECRET))?.bytes ?? configuredSecret(config, header.kind))
      : readSecretFile(secretFile);
  if (secret === undefined) {
    throw new SandboxError("backup_secret_missing", {
      message: `the backup ${store.label} does not contain the secret, and none is configured here`,
      details: { backup: store.label },
    });
  }
  const path = secretFile ?? `${store.label}/${SECRET}`;
  const keyring =
    header.clusterId === null
      ? homeKeyring(parseNodeSecrets(secret, path))
      : new Keyring({ secrets: parseClusterSecrets(Buffer.from(secret).toString(), path), salt: header.clusterId });
  return { store, index: open(keyring), keyring, secret };
}

function configuredSecret(config: NodeConfig, kind: BackupIndex["kind"]): Uint8Array | undefined {
  if (kind === "store") {
    const secrets = clusterSecretOf(config).find();
    return secrets && Buffer.from(`${secrets.join("\n")}\n`);
  }
  try {
    return readFileSync(join(config.home, "secret"));
  } catch {
    return undefined;
  }
}

function readSecretFile(path: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (thrown) {
    throw new SandboxError("no_such_file", {
      message: `cannot read the secret: ${thrown instanceof Error ? thrown.message : thrown}`,
      cause: thrown,
    });
  }
}
