import type { SandboxRecord } from "./sandbox-record.ts";

/** A table row: nested values are JSON, instants are milliseconds. */
export type SandboxRow = Record<keyof SandboxRecord, string | number | null>;

export const sandboxColumns = [
  "id",
  "tenant",
  "keyId",
  "state",
  "provider",
  "name",
  "labels",
  "metadata",
  "env",
  "image",
  "container",
  "memoryMib",
  "vcpuCount",
  "diskMib",
  "maxProcesses",
  "language",
  "cwd",
  "user",
  "timeoutMs",
  "ttlMs",
  "expiresAt",
  "idleTimeoutMs",
  "idleExcept",
  "onExpiry",
  "failure",
  "fidelity",
  "checkpointPolicy",
  "rolledBackTo",
  "rollbacks",
  "epoch",
  "createdAt",
  "endedAt",
] as const satisfies readonly (keyof SandboxRecord)[];

export function rowFromRecord(record: SandboxRecord): SandboxRow {
  return {
    ...record,
    labels: JSON.stringify(record.labels),
    metadata: JSON.stringify(record.metadata),
    env: JSON.stringify(record.env),
    container: record.container && JSON.stringify(record.container),
    idleExcept: JSON.stringify(record.idleExcept),
    failure: record.failure && JSON.stringify(record.failure),
    checkpointPolicy: record.checkpointPolicy && JSON.stringify(record.checkpointPolicy),
    rolledBackTo: record.rolledBackTo && JSON.stringify(record.rolledBackTo),
    createdAt: record.createdAt.getTime(),
    expiresAt: record.expiresAt?.getTime() ?? null,
    endedAt: record.endedAt?.getTime() ?? null,
  };
}

/** Does not validate: the table holds only rows from `rowFromRecord`. */
export function recordFromRow(row: Record<string, unknown>): SandboxRecord {
  const fields = row as Record<keyof SandboxRecord, never>;
  return {
    id: fields.id,
    tenant: fields.tenant,
    keyId: fields.keyId,
    state: fields.state,
    provider: fields.provider,
    name: fields.name,
    labels: JSON.parse(fields.labels),
    metadata: JSON.parse(fields.metadata),
    env: JSON.parse(fields.env),
    image: fields.image,
    container: parsed(fields.container),
    memoryMib: fields.memoryMib,
    vcpuCount: fields.vcpuCount,
    diskMib: fields.diskMib,
    maxProcesses: fields.maxProcesses,
    language: fields.language,
    cwd: fields.cwd,
    user: fields.user,
    timeoutMs: fields.timeoutMs,
    ttlMs: fields.ttlMs,
    expiresAt: instant(fields.expiresAt),
    idleTimeoutMs: fields.idleTimeoutMs,
    idleExcept: JSON.parse(fields.idleExcept),
    onExpiry: fields.onExpiry,
    failure: parsed(fields.failure),
    fidelity: fields.fidelity,
    checkpointPolicy: parsed(fields.checkpointPolicy),
    rolledBackTo: parsed(fields.rolledBackTo),
    rollbacks: fields.rollbacks,
    epoch: fields.epoch,
    createdAt: new Date(fields.createdAt),
    endedAt: instant(fields.endedAt),
  };
}

function parsed<T>(json: string | null): T | null {
  return json === null ? null : (JSON.parse(json) as T);
}

function instant(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}
