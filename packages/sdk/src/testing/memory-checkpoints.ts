import {
  type CheckpointResource,
  type CreateCheckpointBody,
  type CreateSandboxBody,
  type EventKind,
  type ForkBody,
  SandboxError,
  type SandboxId,
  type SandboxResource,
} from "@sandpiper/protocol";
import type { MemoryFileMap, MemorySandbox } from "./memory-sandbox.ts";

/** The sandboxes of the in-memory server, as far as checkpoints read and change them. */
interface MemorySandboxes {
  sandbox(id: string): MemorySandbox;
  add(body: CreateSandboxBody & { readonly files: MemoryFileMap }): MemorySandbox;
  stop(id: string): void;
  rollBack(id: string, files: MemoryFileMap, rolledBackTo: SandboxResource["rolledBackTo"]): SandboxResource;
  emit(kind: EventKind, id: SandboxId): void;
}

interface MemoryCheckpoint {
  readonly resource: CheckpointResource;
  readonly files: MemoryFileMap;
  readonly from: MemorySandbox;
}

/** Checkpoints of the in-memory server. They keep only files, because a command handler cannot be saved. */
export class MemoryCheckpoints {
  readonly #sandboxes: MemorySandboxes;
  /** Oldest first. */
  #all: readonly MemoryCheckpoint[] = [];

  constructor(sandboxes: MemorySandboxes) {
    this.#sandboxes = sandboxes;
  }

  create(sandboxId: string, { name, stop, ttlMs, keepLast }: CreateCheckpointBody): CheckpointResource {
    const from = this.#sandboxes.sandbox(sandboxId);
    if (name !== undefined && this.#of(sandboxId).some(({ resource }) => resource.name === name)) throw nameTaken(name);
    const now = Date.now();
    const sizeBytes = [...from.files.values()].reduce((sum, bytes) => sum + bytes.length, 0);
    const resource: CheckpointResource = {
      id: crypto.randomUUID(),
      sandboxId: from.resource.id,
      name: name ?? null,
      fidelity: "filesystem",
      createdAt: new Date(now).toISOString(),
      expiresAt: typeof ttlMs === "number" ? new Date(now + ttlMs).toISOString() : null,
      sizeBytes,
      uploadedBytes: sizeBytes,
      pausedMs: 0,
      isAutomatic: false,
      requirements: {},
    };
    this.#all = [...this.#all, { resource, files: new Map(from.files), from }];
    this.#sandboxes.emit("sandbox.checkpointed", from.resource.id);
    for (const { resource: old } of this.#of(sandboxId).slice(keepLast ?? Number.POSITIVE_INFINITY)) {
      this.remove(sandboxId, old.id);
    }
    if (stop) this.#sandboxes.stop(sandboxId);
    return resource;
  }

  /** Newest first. */
  list(sandboxId: string): CheckpointResource[] {
    this.#sandboxes.sandbox(sandboxId);
    return this.#of(sandboxId).map(({ resource }) => resource);
  }

  get(sandboxId: string, ref: string): CheckpointResource {
    return this.#find(sandboxId, ref).resource;
  }

  remove(sandboxId: string, ref: string): void {
    const found = this.#find(sandboxId, ref);
    this.#all = this.#all.filter((checkpoint) => checkpoint !== found);
    this.#sandboxes.emit("checkpoint.deleted", found.resource.sandboxId);
  }

  fork(sandboxId: string, { count = 1, checkpoint, name, labels, ttlMs }: ForkBody): SandboxResource[] {
    const original = this.#sandboxes.sandbox(sandboxId);
    const from = checkpoint === undefined ? original : this.#find(sandboxId, checkpoint);
    const files = new Map(from.files);
    this.#sandboxes.emit("sandbox.forked", original.resource.id);
    return Array.from({ length: count }, () => {
      const body = { name, labels: labels ?? original.resource.labels, ttlMs };
      return this.#sandboxes.add({ ...body, env: original.env, files }).resource;
    });
  }

  /** The files of a sandbox that starts from a checkpoint. */
  content(id: string): { readonly env: MemorySandbox["env"]; readonly files: MemoryFileMap } {
    const found = this.#all.find(({ resource }) => resource.id === id);
    if (found === undefined) throw missing(id);
    return { env: found.from.env, files: found.files };
  }

  rollback(sandboxId: string, ref: string | undefined): SandboxResource {
    const last = this.#sandboxes.sandbox(sandboxId).resource.rolledBackTo;
    const { resource, files } = this.#find(sandboxId, ref ?? this.#of(sandboxId)[0]?.resource.id ?? "to roll back to");
    // Each at another time, however fast the test is, because clients distinguish them by time.
    const at = new Date(Math.max(Date.now(), Date.parse(last?.at ?? "1970-01-01") + 1)).toISOString();
    const rolledBackTo = { checkpoint: resource.id, createdAt: resource.createdAt, at };
    return this.#sandboxes.rollBack(sandboxId, files, rolledBackTo);
  }

  /** Removes the checkpoints of a destroyed sandbox. */
  forget(sandboxId: string): void {
    this.#all = this.#all.filter(({ resource }) => resource.sandboxId !== sandboxId);
  }

  #of(sandboxId: string): MemoryCheckpoint[] {
    return this.#all.filter(({ resource }) => resource.sandboxId === sandboxId).reverse();
  }

  #find(sandboxId: string, ref: string): MemoryCheckpoint {
    this.#sandboxes.sandbox(sandboxId);
    const found = this.#of(sandboxId).find(({ resource }) => resource.id === ref || resource.name === ref);
    if (found === undefined) throw missing(ref);
    return found;
  }
}

function missing(ref: string): SandboxError {
  return new SandboxError("no_such_checkpoint", { message: `checkpoint ${ref} not found` });
}

function nameTaken(name: string): SandboxError {
  return new SandboxError("checkpoint_exists", { message: `checkpoint ${name} already exists` });
}
