import type { Activity, ContainerBody, SandboxId, SandboxResource } from "@sandpiper/protocol";

/** What the node knows of a sandbox, also after its end. */
export interface SandboxRecord {
  readonly id: SandboxId;
  readonly tenant: string;
  /** The key that made it; its quota counts it. */
  readonly keyId: string;
  readonly state: SandboxResource["state"];
  readonly provider: SandboxResource["provider"];
  readonly name: string | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly metadata: SandboxResource["metadata"];
  /** Given to each of its commands. */
  readonly env: Readonly<Record<string, string>>;
  readonly image: string;
  /** How its container is made; null where nothing was asked for. */
  readonly container: ContainerBody | null;
  readonly memoryMib: number;
  readonly vcpuCount: number;
  readonly diskMib: number;
  readonly maxProcesses: number;
  readonly language: string | null;
  readonly cwd: string | null;
  readonly user: string | null;
  readonly timeoutMs: number | null;
  readonly ttlMs: number | null;
  readonly expiresAt: Date | null;
  readonly idleTimeoutMs: number | null;
  readonly idleExcept: readonly Activity[];
  readonly onExpiry: SandboxResource["onExpiry"];
  readonly failure: SandboxResource["failure"];
  /** What its checkpoints keep. */
  readonly fidelity: SandboxResource["fidelity"];
  readonly checkpointPolicy: SandboxResource["checkpointPolicy"];
  readonly rolledBackTo: SandboxResource["rolledBackTo"];
  /** How often it was set back to an earlier moment. */
  readonly rollbacks: number;
  /** Of the lease that this node has on it; null: it needs none. */
  readonly epoch: number | null;
  readonly createdAt: Date;
  /** When it was destroyed or failed. */
  readonly endedAt: Date | null;
}

/** What may change after its making. */
export type SandboxChange = Partial<
  Pick<
    SandboxRecord,
    | "state"
    | "name"
    | "labels"
    | "metadata"
    | "ttlMs"
    | "expiresAt"
    | "idleTimeoutMs"
    | "idleExcept"
    | "onExpiry"
    | "failure"
    | "checkpointPolicy"
    | "rolledBackTo"
    | "rollbacks"
    | "epoch"
    | "endedAt"
  >
>;

export interface SandboxFilter {
  /** Undefined: of all tenants. */
  readonly tenant?: string | undefined;
  readonly state?: SandboxRecord["state"] | undefined;
  readonly provider?: SandboxRecord["provider"] | undefined;
  readonly name?: string | undefined;
  /** All must fit; a null value fits any. */
  readonly labels?: readonly { readonly key: string; readonly value: string | null }[] | undefined;
  readonly limit: number;
  /** From an earlier page. */
  readonly cursor?: string | undefined;
}

export interface Usage {
  readonly sandboxes: number;
  readonly memoryMib: number;
  readonly vcpuCount: number;
}

export interface SandboxRecords {
  /** Throws `already_exists` for an id that is known. */
  add(record: SandboxRecord): void;
  /** Throws `not_found`. Gives the changed record. */
  change(id: SandboxId, change: SandboxChange): SandboxRecord;
  /** It is another node's now. */
  remove(id: SandboxId): void;
  /** With a tenant only if it is that tenant's. */
  get(id: SandboxId, options?: { readonly tenant?: string | undefined }): SandboxRecord | undefined;
  /** Newest first. Without a state: those that are not destroyed. */
  list(filter: SandboxFilter): { readonly items: readonly SandboxRecord[]; readonly nextCursor: string | null };
  /** Those that should be running: neither destroyed nor failed. */
  live(): readonly SandboxRecord[];
  /** What the live sandboxes of a key have taken. */
  usage(keyId: string): Usage;
  /** Forgets those that ended before. Gives their number. */
  prune(endedBefore: Date): number;
}

export interface IdempotentRequest {
  readonly tenant: string;
  readonly key: string;
  /** The same for requests that ask for the same. */
  readonly fingerprint: string;
}

/** Remembers which request made which sandbox. */
export interface IdempotencyRecords {
  /** Throws `conflict` (reason `idempotency_key_reused`) when the key came with another fingerprint before. */
  find(request: IdempotentRequest): SandboxId | undefined;
  add(request: IdempotentRequest, id: SandboxId): void;
  /** It came to nothing, and may be made again. */
  remove(request: IdempotentRequest): void;
}
