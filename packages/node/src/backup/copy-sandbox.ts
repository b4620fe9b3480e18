import { type Clock, type ObjectStore, pause, type SandboxError, stateKey } from "@sandpiper/core";
import type { CheckpointResource, SandboxId } from "@sandpiper/protocol";
import type { Keyring } from "../auth/keyring.ts";
import type { SavedSandbox } from "../ownership/saved-sandbox.ts";
import { type Manifest, manifestKey, openManifest } from "../store/checkpoint-manifest.ts";
import { chunksIn } from "../store/chunked-files.ts";
import { TenantChunks } from "../store/tenant-chunks.ts";
import { OBJECTS } from "./backup-index.ts";
import type { BackupWriter } from "./backup-writer.ts";
import { copyChunks } from "./copy-chunks.ts";
import { openState, type StateKind } from "./read-state.ts";

/** A destroyed sandbox loses its checkpoints before its state; no node takes longer than this between the two. */
const RETRIES = 10;
const RETRY_MS = 200;

export interface CopySandboxOptions {
  readonly source: ObjectStore;
  readonly kind: StateKind;
  readonly keyring: Keyring;
  readonly clock: Clock;
  readonly writer: BackupWriter;
}

export interface CopiedSandbox {
  readonly saved: SavedSandbox;
  /** Oldest first. */
  readonly checkpoints: readonly CheckpointResource[];
  readonly damaged: readonly CheckpointResource[];
}

export type CopyResult = CopiedSandbox | { readonly why: string; readonly saved?: SavedSandbox | undefined };

interface ReadCheckpoint {
  readonly checkpoint: CheckpointResource;
  readonly bytes: Uint8Array;
  readonly manifest: Manifest;
}

/**
 * Copies a sandbox's state, the checkpoints that it lists, and their chunks, while nodes change them. It reads in the opposite order
 * of a save, so everything that the state refers to existed when the state was read. What was deleted since, together with
 * its chunks, is missing: the state has changed then, and the copy starts again. Undefined if the sandbox no longer exists.
 */
export async function copySandbox(id: SandboxId, options: CopySandboxOptions): Promise<CopyResult | undefined> {
  const { source, clock } = options;
  for (let retries = 0; ; retries += 1) {
    const stored = await source.get(stateKey(id));
    if (stored === undefined) return undefined;
    const copy = await copyVersion(id, stored.bytes, options);
    if (!("missing" in copy)) return copy;
    if (copy.missing.length === 0 || retries >= RETRIES) return copy.result;
    if ((await source.head(stateKey(id)))?.tag === stored.tag) await pause(clock, RETRY_MS);
  }
}

interface Incomplete {
  readonly result: CopyResult;
  readonly missing: readonly CheckpointResource[];
}

async function copyVersion(
  id: SandboxId,
  bytes: Uint8Array,
  options: CopySandboxOptions,
): Promise<CopyResult | Incomplete> {
  const { source, kind, keyring, writer } = options;
  let saved: SavedSandbox | undefined;
  try {
    ({ saved } = openState(keyring, kind, { id, bytes, store: source }));
  } catch (thrown) {
    return { why: (thrown as SandboxError).message };
  }
  if (saved === undefined) return { why: "it is being created" };
  if (saved.checkpoints.length === 0) return { why: "it has no checkpoint", saved };
  // All manifests before any chunk: chunks disappear only some time after the manifest.
  const read: ReadCheckpoint[] = [];
  for (const checkpoint of saved.checkpoints) {
    const found = await readCheckpoint(saved, checkpoint, options);
    if (found !== undefined) read.push(found);
  }
  const copied: ReadCheckpoint[] = [];
  for (const each of read) if (await copyData(each, options)) copied.push(each);
  const checkpoints = copied.map(({ checkpoint }) => checkpoint);
  const missing = saved.checkpoints.filter((checkpoint) => !checkpoints.includes(checkpoint));
  if (copied.length === 0) return { missing, result: { why: "its checkpoints are damaged", saved } };
  writer.drop(`${OBJECTS}checkpoints/${id}/`);
  for (const { checkpoint, bytes } of copied) await writer.put(OBJECTS + manifestKey(id, checkpoint.id), bytes);
  await writer.put(OBJECTS + stateKey(id), bytes);
  return { missing, result: { saved, checkpoints, damaged: missing } };
}

async function readCheckpoint(
  { record }: SavedSandbox,
  checkpoint: CheckpointResource,
  { source, keyring }: CopySandboxOptions,
): Promise<ReadCheckpoint | undefined> {
  const key = manifestKey(record.id, checkpoint.id);
  const stored = await source.get(key);
  const opened = stored && openManifest(keyring, key, stored.bytes);
  if (stored === undefined || opened === undefined || "fault" in opened) return undefined;
  const { manifest } = opened;
  if (manifest.sandbox !== record.id || manifest.tenant !== record.tenant) return undefined;
  return { checkpoint, bytes: stored.bytes, manifest };
}

async function copyData({ manifest }: ReadCheckpoint, options: CopySandboxOptions): Promise<boolean> {
  const { source, keyring, writer } = options;
  const to = chunksIn(writer.store).openSession();
  try {
    const bad = await copyChunks(manifest.files, {
      from: chunksIn(source).openSession(),
      to,
      tenant: new TenantChunks(keyring, manifest.tenant),
      known: writer.chunks,
      onBytes: (bytes) => writer.count(bytes),
    });
    await to.commit();
    return bad === undefined;
  } catch (thrown) {
    await to.discard();
    throw thrown;
  }
}
