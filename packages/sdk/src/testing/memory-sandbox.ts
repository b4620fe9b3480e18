import { type CreateSandboxBody, completeNetwork, type SandboxId, type SandboxResource } from "@sandpiper/protocol";
import type { MemoryNetwork } from "./memory-network.ts";
import type { MemoryProcess } from "./memory-process.ts";

/** By absolute path. */
export type MemoryFileMap = ReadonlyMap<string, Uint8Array<ArrayBuffer>>;

export interface MemorySandbox {
  resource: SandboxResource;
  readonly env: Readonly<Record<string, string>>;
  /** By absolute path. */
  readonly files: Map<string, Uint8Array<ArrayBuffer>>;
  readonly processes: Map<string, MemoryProcess>;
  readonly network: MemoryNetwork;
  /** How often it was rolled back. */
  rollbacks: number;
}

export function newResource(
  id: SandboxId,
  { network = "none", secrets: _, ...body }: Omit<CreateSandboxBody, "env">,
): SandboxResource {
  return {
    id,
    state: "ready",
    provider: "mock",
    name: null,
    labels: {},
    metadata: {},
    createdAt: new Date().toISOString(),
    token: `spt_${id}_memory`,
    image: "host",
    container: null,
    addresses: {},
    secrets: [],
    memoryMib: 256,
    vcpuCount: 2,
    diskMib: 1024,
    maxProcesses: 256,
    language: null,
    cwd: null,
    user: null,
    timeoutMs: null,
    ttlMs: null,
    idleTimeoutMs: null,
    idleExcept: [],
    onExpiry: "destroy",
    onFailure: "restore",
    network: completeNetwork(network),
    expiresAt: null,
    stoppedAt: null,
    failure: null,
    fidelity: "filesystem",
    checkpointPolicy: null,
    rolledBackTo: null,
    node: null,
    ...(body as Partial<SandboxResource>),
  };
}
