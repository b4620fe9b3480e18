import type { SQLInputValue } from "node:sqlite";
import type { SandboxRecord } from "./sandbox-record.ts";

const instants: readonly string[] = [
  "expiresAt",
  "stoppedAt",
  "createdAt",
  "endedAt",
] satisfies (keyof SandboxRecord)[];
const nested: readonly string[] = [
  "labels",
  "metadata",
  "env",
  "secrets",
  "container",
  "idleExcept",
  "network",
  "failure",
  "checkpointPolicy",
  "rolledBackTo",
  "publicPorts",
] satisfies (keyof SandboxRecord)[];

/** The given columns of a table row: nested values are JSON, instants are milliseconds. */
export function rowFromRecord(
  record: SandboxRecord,
  columns: readonly (keyof SandboxRecord)[],
): Record<string, SQLInputValue> {
  return Object.fromEntries(columns.map((name) => [name, stored(name, record[name])]));
}

/** Does not validate: the table holds only rows from `rowFromRecord`. */
export function recordFromRow({ sequence: _, recordBytes: __, ...row }: Record<string, unknown>): SandboxRecord {
  const fields = Object.entries(row).map(([name, value]) => [name, parsed(name, value)]);
  return Object.fromEntries(fields) as SandboxRecord;
}

function stored(name: string, value: unknown): SQLInputValue {
  if (value === null) return null;
  if (instants.includes(name)) return (value as Date).getTime();
  return nested.includes(name) ? JSON.stringify(value) : (value as SQLInputValue);
}

function parsed(name: string, value: unknown): unknown {
  if (value === null) return null;
  if (instants.includes(name)) return new Date(value as number);
  return nested.includes(name) ? JSON.parse(value as string) : value;
}
