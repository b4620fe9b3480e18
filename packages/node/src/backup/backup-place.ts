import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type ObjectStore, SandboxError } from "@sandpiper/core";
import { fileError } from "../store/file-error.ts";
import { openStore } from "../store/open-store.ts";

/** A store's own short-lived objects. */
const TRANSIENT = /^(?:probes|clock)\//;

/** Opens a directory, or a URL of the same forms as a store has. */
export function openPlace(place: string): ObjectStore {
  return openStore(/^[a-z0-9]+:\/\//i.test(place) ? place : pathToFileURL(resolve(place)).href);
}

/** Creates a directory; throws `backup_target_not_empty` if it or the bucket's prefix holds anything. */
export async function requireEmptyPlace(store: ObjectStore): Promise<void> {
  if (store.label.startsWith("file:")) {
    const path = fileURLToPath(store.label);
    try {
      mkdirSync(path, { recursive: true, mode: 0o700 });
      if (readdirSync(path).length > 0) throw notEmpty(store);
    } catch (thrown) {
      throw fileError(thrown, store.label);
    }
  } else if (await hasObjects(store)) throw notEmpty(store);
}

/** Deletes what a failed backup wrote to a place that was empty before. */
export async function emptyPlace(store: ObjectStore): Promise<void> {
  if (store.label.startsWith("file:")) {
    const path = fileURLToPath(store.label);
    for (const name of readdirSync(path)) rmSync(join(path, name), { recursive: true, force: true });
    return;
  }
  for await (const { key } of store.list("")) await store.delete(key);
}

export async function hasObjects(store: ObjectStore): Promise<boolean> {
  for await (const { key } of store.list("")) if (!TRANSIENT.test(key)) return true;
  return false;
}

function notEmpty({ label }: ObjectStore): SandboxError {
  return new SandboxError("backup_target_not_empty", {
    message: `cannot write a backup to ${label}: it is not empty`,
    details: { backup: label },
  });
}
