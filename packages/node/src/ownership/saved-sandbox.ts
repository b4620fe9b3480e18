import { SandboxError } from "@sandpiper/core";
import { type CheckpointResource, checkpointResourceSchema, sandboxIdSchema } from "@sandpiper/protocol";
import { z } from "zod";
import type { SandboxRecord } from "../records/sandbox-record.ts";

/** A record as JSON has it; instants are texts. */
const savedRecordSchema = z.looseObject({
  id: sandboxIdSchema,
  tenant: z.string(),
  keyId: z.string(),
  createdAt: z.iso.datetime(),
  expiresAt: z.iso.datetime().nullable(),
  endedAt: z.iso.datetime().nullable(),
});

/** What the store knows of a sandbox: enough for any node to go on with it. */
const savedSandboxSchema = z.object({
  version: z.literal(1),
  record: savedRecordSchema,
  /** What a node must have to restore it. */
  requirements: z.record(z.string(), z.string()),
  /** Oldest first. */
  checkpoints: z.array(checkpointResourceSchema),
});

export interface SavedSandbox {
  readonly record: SandboxRecord;
  readonly requirements: Readonly<Record<string, string>>;
  readonly checkpoints: readonly CheckpointResource[];
}

export function savedSandboxJson({ record, requirements, checkpoints }: SavedSandbox): object {
  return { version: 1, record: { ...record, epoch: null }, requirements, checkpoints };
}

export function parseSavedSandbox(content: unknown): SavedSandbox {
  const parsed = savedSandboxSchema.safeParse(content);
  if (!parsed.success) {
    throw new SandboxError("data_loss", {
      reason: "state_damaged",
      message: `the state of a sandbox in the store cannot be read: ${z.prettifyError(parsed.error)}`,
      hint: "it may be of a newer node: update this one",
    });
  }
  const { record, requirements, checkpoints } = parsed.data;
  const instant = (text: string | null) => (text === null ? null : new Date(text));
  return {
    record: {
      ...(record as unknown as SandboxRecord),
      createdAt: new Date(record.createdAt),
      expiresAt: instant(record.expiresAt),
      endedAt: instant(record.endedAt),
    },
    requirements,
    checkpoints,
  };
}

/** Of a sandbox that no node has: one that ran when this was written has lost its node, and goes on when it is used. */
export function recordAtRest(record: SandboxRecord): SandboxRecord {
  return record.state === "ready" ? { ...record, state: "stopped" } : record;
}
