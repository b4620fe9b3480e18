import { SandboxError } from "@sandpiper/core";
import {
  type CheckpointResource,
  checkpointResourceSchema,
  networkPolicySchema,
  sandboxIdSchema,
  sandboxResourceSchema,
  secretUseSchema,
} from "@sandpiper/protocol";
import { z } from "zod";
import type { SandboxRecord } from "../records/sandbox-record.ts";

/** States of earlier versions lack some of these. */
const describedFields = sandboxResourceSchema
  .pick({ state: true, provider: true, name: true, labels: true, metadata: true, image: true, memoryMib: true })
  .extend(sandboxResourceSchema.pick({ vcpuCount: true, diskMib: true, maxProcesses: true, language: true }).shape)
  .extend(sandboxResourceSchema.pick({ cwd: true, user: true, timeoutMs: true, ttlMs: true, onExpiry: true }).shape)
  .extend(sandboxResourceSchema.pick({ idleTimeoutMs: true, idleExcept: true, fidelity: true }).shape)
  .partial().shape;

/** A record as JSON: instants are strings. */
const savedRecordSchema = z.looseObject({
  ...describedFields,
  env: z.record(z.string(), z.string()).optional(),
  id: sandboxIdSchema,
  tenant: z.string(),
  keyId: z.string(),
  /** Absent in states of earlier versions. */
  secrets: z.array(secretUseSchema).default([]),
  createdAt: z.iso.datetime(),
  expiresAt: z.iso.datetime().nullable(),
  /** Absent in states of earlier versions. */
  stoppedAt: z.iso.datetime().nullable().default(null),
  endedAt: z.iso.datetime().nullable(),
  /** Absent in states of earlier versions. */
  onFailure: z.enum(["restore", "keep"]).default("keep"),
  /** Absent in states of earlier versions: no network. */
  network: networkPolicySchema.loose().nullable().default(null),
  /** Absent in states of earlier versions. */
  publicPorts: z.array(z.int()).default([]),
  linkEpoch: z.int().default(0),
});

/** Increases with a change that an earlier version must not ignore. It ignores, and preserves, fields that it does not know. */
const VERSION = 1;

/** The state of a sandbox in the store: enough for any node to restore it. */
const savedSandboxSchema = z.looseObject({
  version: z.literal(VERSION),
  record: savedRecordSchema,
  /** What a node needs to restore the sandbox. */
  requirements: z.record(z.string(), z.string()),
  /** Oldest first. */
  checkpoints: z.array(checkpointResourceSchema.loose()),
});

export interface SavedSandbox {
  readonly record: SandboxRecord;
  readonly requirements: Readonly<Record<string, string>>;
  readonly checkpoints: readonly CheckpointResource[];
  /** Fields that a newer version added to the state or to its record: the node's own records do not have them. */
  readonly unknown?: UnknownFields | undefined;
}

interface UnknownFields {
  readonly state: Readonly<Record<string, unknown>>;
  readonly record: Readonly<Record<string, unknown>>;
}

/** `unknown` is from the state that this one replaces. */
export function savedSandboxJson(
  { record, requirements, checkpoints }: SavedSandbox,
  unknown: UnknownFields | undefined,
): object {
  const content = { version: VERSION, requirements, checkpoints };
  return { ...unknown?.state, ...content, record: { ...unknown?.record, ...record, epoch: null } };
}

export function parseSavedSandbox(content: unknown): SavedSandbox {
  const found = z.looseObject({ version: z.int() }).safeParse(content).data?.version ?? 0;
  if (found > VERSION) throw tooNew({ found, known: VERSION });
  const parsed = savedSandboxSchema.safeParse(content);
  if (!parsed.success) {
    throw new SandboxError("state_damaged", {
      message: `cannot read the state of a sandbox in the store: ${z.prettifyError(parsed.error)}`,
    });
  }
  const { version: _, record, requirements, checkpoints, ...state } = parsed.data;
  const instant = (text: string | null) => (text === null ? null : new Date(text));
  return {
    record: {
      ...(record as unknown as SandboxRecord),
      createdAt: new Date(record.createdAt),
      expiresAt: instant(record.expiresAt),
      stoppedAt: instant(record.stoppedAt),
      endedAt: instant(record.endedAt),
      ...checkpointTotals(checkpoints),
    },
    requirements,
    checkpoints,
    unknown: { state, record },
  };
}

function tooNew(versions: { readonly found: number; readonly known: number }): SandboxError {
  return new SandboxError("state_too_new", {
    message: `the state of the sandbox has format ${versions.found}, but this node reads at most format ${versions.known}; it was not changed`,
    details: versions,
  });
}

/** The fields of a record that count its checkpoints. */
export function checkpointTotals(checkpoints: readonly CheckpointResource[]) {
  const checkpointBytes = checkpoints.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  return { checkpointCount: checkpoints.length, checkpointBytes };
}

/** The record of a sandbox that no node owns. If it was running, its owner died, and its next use restores it. */
export function recordAtRest(record: SandboxRecord): SandboxRecord {
  return record.state === "ready" ? { ...record, state: "stopped" } : record;
}
