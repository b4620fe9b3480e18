import type {
  Activity,
  ContainerBody,
  NetworkPolicy,
  SandboxId,
  SandboxResource,
  SecretUse,
  Usage,
} from "@sandpiper/protocol";

/** What the node knows about a sandbox. The record outlives the sandbox. */
export interface SandboxRecord {
  readonly id: SandboxId;
  readonly tenant: string;
  /** The key that created the sandbox; the sandbox counts towards its quota. */
  readonly keyId: string;
  readonly state: SandboxResource["state"];
  readonly provider: SandboxResource["provider"];
  readonly name: string | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly metadata: SandboxResource["metadata"];
  /** The environment of each of its commands. */
  readonly env: Readonly<Record<string, string>>;
  /** The secrets that it uses. */
  readonly secrets: readonly SecretUse[];
  readonly image: string;
  /** Its container's options; null if the caller gave none. */
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
  readonly onFailure: SandboxResource["onFailure"];
  /** Null in records of earlier versions: no network. */
  readonly network: NetworkPolicy | null;
  readonly failure: SandboxResource["failure"];
  /** What its checkpoints save. */
  readonly fidelity: SandboxResource["fidelity"];
  readonly checkpointPolicy: SandboxResource["checkpointPolicy"];
  readonly rolledBackTo: SandboxResource["rolledBackTo"];
  readonly rollbacks: number;
  /** The epoch of this node's lease; null if the sandbox needs no lease. */
  readonly epoch: number | null;
  readonly checkpointCount: number;
  /** The sum of its checkpoints' sizes. */
  readonly checkpointBytes: number;
  /** Ports whose previews need no credential. */
  readonly publicPorts: readonly number[];
  /** Links and traffic tokens of earlier epochs are revoked. */
  readonly linkEpoch: number;
  /** When its owner stopped it; null otherwise, also if the node stopped it. */
  readonly stoppedAt: Date | null;
  readonly createdAt: Date;
  /** When it was destroyed or failed. */
  readonly endedAt: Date | null;
}

/** The fields that can change after creation. */
export const changeableFields = [
  "state",
  "name",
  "labels",
  "metadata",
  "env",
  "secrets",
  "ttlMs",
  "expiresAt",
  "idleTimeoutMs",
  "idleExcept",
  "onExpiry",
  "onFailure",
  "network",
  "failure",
  "checkpointPolicy",
  "rolledBackTo",
  "rollbacks",
  "epoch",
  "checkpointCount",
  "checkpointBytes",
  "publicPorts",
  "linkEpoch",
  "stoppedAt",
  "endedAt",
] as const satisfies readonly (keyof SandboxRecord)[];

export type SandboxChange = Partial<Pick<SandboxRecord, (typeof changeableFields)[number]>>;

/** As in a list, which leaves out what no answer contains. */
export type ListedSandbox = Omit<SandboxRecord, "env">;

export interface SandboxFilter {
  /** Undefined for all tenants. */
  readonly tenant?: string | undefined;
  readonly state?: SandboxRecord["state"] | undefined;
  readonly provider?: SandboxRecord["provider"] | undefined;
  readonly name?: string | undefined;
  /** All must match; a null value matches any value. */
  readonly labels?: readonly { readonly key: string; readonly value: string | null }[] | undefined;
  readonly limit: number;
  /** From an earlier page. */
  readonly cursor?: string | undefined;
}

/** What outlives a node's process. */
export type DurableUsage = Readonly<
  Pick<Usage, "sandboxes" | "memoryMib" | "vcpuCount" | "diskMib" | "checkpoints" | "checkpointBytes">
>;
