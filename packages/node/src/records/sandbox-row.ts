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

const instants: readonly string[] = ["expiresAt", "createdAt", "endedAt"] satisfies (keyof SandboxRecord)[];
const nested: readonly string[] = [
  "labels",
  "metadata",
  "env",
  "container",
  "idleExcept",
  "failure",
  "checkpointPolicy",
  "rolledBackTo",
] satisfies (keyof SandboxRecord)[];

export function rowFromRecord(record: SandboxRecord): SandboxRow {
  return Object.fromEntries(sandboxColumns.map((name) => [name, stored(name, record[name])])) as SandboxRow;
}

/** Does not validate: the table holds only rows from `rowFromRecord`. */
export function recordFromRow(row: Record<string, unknown>): SandboxRecord {
  const fields = Object.entries(row).map(([name, value]) => [name, parsed(name, value)]);
  return Object.fromEntries(fields) as SandboxRecord;
}

function stored(name: string, value: unknown): unknown {
  if (value === null) return null;
  if (instants.includes(name)) return (value as Date).getTime();
  return nested.includes(name) ? JSON.stringify(value) : value;
}

function parsed(name: string, value: unknown): unknown {
  if (value === null) return null;
  if (instants.includes(name)) return new Date(value as number);
  return nested.includes(name) ? JSON.parse(value as string) : value;
}
