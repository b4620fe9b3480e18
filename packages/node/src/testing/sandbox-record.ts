import { createSandboxId } from "@sandpiper/protocol";
import type { SandboxRecord } from "../records/sandbox-record.ts";

/** Fills in the fields that a test does not care about. */
export function sandboxRecord(fields: Partial<SandboxRecord> = {}): SandboxRecord {
  return {
    id: createSandboxId(),
    tenant: "default",
    keyId: "0a1b2c3d",
    state: "ready",
    provider: "mock",
    name: null,
    labels: {},
    metadata: {},
    env: {},
    image: "host",
    container: null,
    memoryMib: 256,
    vcpuCount: 2,
    diskMib: 1024,
    maxProcesses: 64,
    language: null,
    cwd: null,
    user: null,
    timeoutMs: null,
    ttlMs: null,
    expiresAt: null,
    idleTimeoutMs: null,
    idleExcept: [],
    onExpiry: "destroy",
    failure: null,
    fidelity: "none",
    checkpointPolicy: null,
    rolledBackTo: null,
    rollbacks: 0,
    epoch: null,
    checkpointCount: 0,
    checkpointBytes: 0,
    stoppedAt: null,
    createdAt: new Date(1_700_000_000_000),
    endedAt: null,
    ...fields,
  };
}
