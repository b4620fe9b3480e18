import { z } from "zod";
import { sandboxIdSchema } from "../sandbox-id.ts";
import { durationMsSchema, instantSchema, labelsSchema, nameSchema } from "./names.ts";

const MAX_KEPT = 1000;
const MAX_FORKS = 32;
/** Saving more often would leave a sandbox little time to run. */
const MIN_EVERY_MS = 1000;

export const checkpointIdSchema = z.uuid();

/** Safe as a path segment in every store. */
const safeNameSchema = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/);

/** No name looks like an id, so that one path parameter can be either. */
const checkpointNameSchema = safeNameSchema.refine((name) => !checkpointIdSchema.safeParse(name).success, {
  error: "it looks like the id of a checkpoint",
});

/** A checkpoint of a sandbox, by its id or its name. */
export const checkpointRefSchema = safeNameSchema;

const keepLastSchema = z.int().min(1).max(MAX_KEPT);

/** What a checkpoint keeps: files and memory with running processes, or only files. */
const checkpointFidelitySchema = z.enum(["memory", "filesystem"]);

/** What checkpoints of a sandbox keep; `none` if its provider supports none. */
export const sandboxFidelitySchema = z.enum([...checkpointFidelitySchema.options, "none"]);

const policy = {
  /** The shortest interval between two; skipped when nothing may have changed. Null for no interval. */
  everyMs: durationMsSchema.min(MIN_EVERY_MS).nullable(),
  onIdle: z.boolean(),
  /** When the last client disconnects. */
  onDisconnect: z.boolean(),
  /** After each command. */
  perCommand: z.boolean(),
  /** How many automatic checkpoints are kept; the default is 3. */
  keepLast: keepLastSchema,
};

/** When the node takes checkpoints automatically; omitted triggers are off. */
export const checkpointPolicyBodySchema = z.strictObject(policy).partial().meta({ id: "SetCheckpointPolicy" });

export const checkpointPolicySchema = z.strictObject(policy).meta({ id: "CheckpointPolicy" });

export const createCheckpointBodySchema = z
  .strictObject({
    name: checkpointNameSchema,
    /** If true, the sandbox stops after the save; by default it keeps running. */
    stop: z.boolean(),
    /** Null, the default, keeps it until it is deleted. */
    ttlMs: durationMsSchema.nullable(),
    /** Older checkpoints of the sandbox beyond this many are deleted, named ones too. */
    keepLast: keepLastSchema,
  })
  .partial()
  .meta({ id: "CreateCheckpoint" });

export const checkpointResourceSchema = z
  .strictObject({
    id: checkpointIdSchema,
    sandboxId: sandboxIdSchema,
    name: z.string().nullable(),
    fidelity: checkpointFidelitySchema,
    createdAt: instantSchema,
    expiresAt: instantSchema.nullable(),
    sizeBytes: z.int(),
    /** The bytes that were not in the store yet. */
    uploadedBytes: z.int(),
    /** How long the sandbox was paused. */
    pausedMs: z.number(),
    /** Taken by the sandbox's policy. */
    isAutomatic: z.boolean(),
    /** Requirements of a node that restores it, such as the runtime's release; the error lists unmet ones. */
    requirements: z.record(z.string(), z.string()),
  })
  .meta({ id: "Checkpoint" });

export const checkpointListSchema = z
  .strictObject({ items: z.array(checkpointResourceSchema) })
  .meta({ id: "CheckpointList" });

export const forkBodySchema = z
  .strictObject({
    /** The default is 1. */
    count: z.int().min(1).max(MAX_FORKS),
    /** The checkpoint to copy; the default is a new one. */
    checkpoint: checkpointRefSchema,
    /** The name of the fork; the default is none. Several forks cannot share a name. */
    name: nameSchema,
    /** The labels of every fork; the default is those of the original. */
    labels: labelsSchema,
    ttlMs: durationMsSchema.nullable(),
  })
  .partial()
  .refine(({ count = 1, name }) => count === 1 || name === undefined, {
    error: "several forks cannot share a name: omit it, or create the forks one by one",
    path: ["name"],
  })
  .meta({ id: "Fork" });

export const rollbackBodySchema = z
  .strictObject({
    /** The default is the newest that a caller took, or else the newest automatic one. */
    checkpoint: checkpointRefSchema,
  })
  .partial()
  .meta({ id: "Rollback" });

export const handoffBodySchema = z
  .strictObject({
    /** Move the sandbox even if a client is attached to it. */
    takeover: z.boolean(),
  })
  .partial()
  .meta({ id: "Handoff" });

export const moveSandboxBodySchema = z
  .strictObject({
    /** The id of the node, or the beginning of it; the default is the node with the fewest sandboxes that accepts it. */
    node: z.string().min(1).max(64),
    /** Move the sandbox even if a client is attached to it. */
    takeover: z.boolean(),
  })
  .partial()
  .meta({ id: "MoveSandbox" });

export type MoveSandboxBody = z.infer<typeof moveSandboxBodySchema>;
export type CheckpointPolicyBody = z.infer<typeof checkpointPolicyBodySchema>;
export type CheckpointPolicy = z.infer<typeof checkpointPolicySchema>;
export type CreateCheckpointBody = z.infer<typeof createCheckpointBodySchema>;
export type CheckpointResource = z.infer<typeof checkpointResourceSchema>;
export type ForkBody = z.infer<typeof forkBodySchema>;
export type RollbackBody = z.infer<typeof rollbackBodySchema>;
