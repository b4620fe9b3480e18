import { z } from "zod";
import { sandboxIdSchema } from "../sandbox-id.ts";
import {
  checkpointIdSchema,
  checkpointPolicyBodySchema,
  checkpointPolicySchema,
  sandboxFidelitySchema,
} from "./checkpoint.ts";
import { containerSchema, imageSchema } from "./container.ts";
import {
  durationMsSchema,
  envSchema,
  instantSchema,
  labelsSchema,
  MAX_LABELS,
  nameSchema,
  pageSchema,
  queryNumberSchema,
} from "./names.ts";

export const providerNameSchema = z.enum(["gvisor", "qemu", "firecracker", "docker", "vm-docker", "local", "mock"]);

export const sandboxStateSchema = z.enum([
  "creating",
  "ready",
  "paused",
  "checkpointing",
  "stopped",
  "restoring",
  "failed",
  "destroyed",
]);

/** What keeps a sandbox from being idle. */
export const activitySchema = z.enum(["exec", "stdin", "output", "file", "client", "process"]);

/** 16 TiB; larger numbers do not fit into the limits of runtimes. */
const MAX_MIB = 2 ** 24;
/** Every page of a list carries the metadata of up to a thousand sandboxes. */
const MAX_METADATA_CHARS = 16 * 1024;

const metadataSchema = z
  .record(z.string().max(128), z.json())
  .refine((metadata) => JSON.stringify(metadata).length <= MAX_METADATA_CHARS, {
    error: `as JSON it is longer than ${MAX_METADATA_CHARS} characters`,
  });
const lifetimes = {
  /** Absolute: counted from its creation, or from the update that set it. Null: none. */
  ttlMs: durationMsSchema.nullable(),
  /** How long it may be idle; null for no limit. */
  idleTimeoutMs: durationMsSchema.nullable(),
  /** Activities that do not keep it from being idle; every other one does. */
  idleExcept: z.array(activitySchema),
  /** The action at the end of either; `pause` needs a provider with checkpoints. */
  onExpiry: z.enum(["destroy", "pause"]),
};
const shape = {
  memoryMib: z.int().min(1).max(MAX_MIB),
  vcpuCount: z.number().positive().max(4096),
  diskMib: z.int().min(1).max(MAX_MIB),
  /** As many as a kernel has process ids. */
  maxProcesses: z
    .int()
    .min(1)
    .max(2 ** 22),
  language: z.string().min(1).max(128),
  cwd: z.string().regex(/^\/[^\0]*$/),
  user: z.string().min(1).max(128),
  /** Default time limit of its commands. */
  timeoutMs: durationMsSchema,
};

/** Options that a checkpoint determines. */
const kept = {
  env: envSchema,
  provider: providerNameSchema,
  image: imageSchema,
  container: containerSchema,
  ...shape,
};

export const createSandboxBodySchema = z
  .strictObject({
    name: nameSchema,
    labels: labelsSchema,
    metadata: metadataSchema,
    ...kept,
    ...lifetimes,
    /** Start from this checkpoint; the options that it determines must then be omitted. */
    checkpoint: checkpointIdSchema,
    /** Null, the default: checkpoints are taken only when asked for. */
    checkpointPolicy: checkpointPolicyBodySchema.nullable(),
  })
  .partial();

/** The body of a request, also checked for options that exclude each other. */
export const createSandboxRequestSchema = createSandboxBodySchema
  .superRefine((body, context) => {
    if (body.checkpoint === undefined) return;
    for (const field of Object.keys(kept) as (keyof typeof kept)[]) {
      if (body[field] === undefined) continue;
      context.addIssue({ code: "custom", path: [field], message: "the checkpoint has this already; leave it out" });
    }
  })
  .meta({ id: "CreateSandbox" });

export const updateSandboxBodySchema = z
  .strictObject({
    name: nameSchema.nullable(),
    /** Replaces them all. */
    labels: labelsSchema,
    metadata: metadataSchema,
    /** From now on. */
    ttlMs: lifetimes.ttlMs,
    idleTimeoutMs: lifetimes.idleTimeoutMs,
    idleExcept: lifetimes.idleExcept,
    onExpiry: lifetimes.onExpiry,
    checkpointPolicy: checkpointPolicyBodySchema.nullable(),
  })
  .partial()
  .meta({ id: "UpdateSandbox" });

export const sandboxResourceSchema = z
  .strictObject({
    id: sandboxIdSchema,
    state: sandboxStateSchema,
    provider: providerNameSchema,
    name: z.string().nullable(),
    labels: labelsSchema,
    metadata: metadataSchema,
    createdAt: instantSchema,
    /** Opens this sandbox and nothing else. Null for keys that may only look: it would let them do more. */
    token: z.string().nullable(),
    image: z.string(),
    /** Null where the provider runs no containers, or nothing was asked for. */
    container: containerSchema.nullable(),
    /** Where published ports are reached, by port. */
    addresses: z.record(z.string(), z.string()),
    memoryMib: shape.memoryMib,
    vcpuCount: shape.vcpuCount,
    diskMib: shape.diskMib,
    maxProcesses: shape.maxProcesses,
    language: shape.language.nullable(),
    cwd: shape.cwd.nullable(),
    user: shape.user.nullable(),
    timeoutMs: shape.timeoutMs.nullable(),
    ...lifetimes,
    /** When its ttl ends; null: never. */
    expiresAt: instantSchema.nullable(),
    /** What checkpoints of it keep. */
    fidelity: sandboxFidelitySchema,
    /** Null: checkpoints are taken only when asked for. */
    checkpointPolicy: checkpointPolicySchema.nullable(),
    /** The checkpoint of its last rollback, and when; changes in between are lost. */
    rolledBackTo: z
      .strictObject({ checkpoint: checkpointIdSchema, createdAt: instantSchema, at: instantSchema })
      .nullable(),
    /** The id of the node that holds it; null while none does, and on a node that stands alone. */
    node: z.string().nullable(),
    /** Why it failed. */
    failure: z.strictObject({ code: z.string(), reason: z.string(), message: z.string() }).nullable(),
  })
  .meta({ id: "Sandbox" });

export const listSandboxesQuerySchema = z
  .strictObject({
    state: sandboxStateSchema,
    provider: providerNameSchema,
    name: z.string(),
    /** `key=value`, or `key` alone; may be given several times, and then all must fit. */
    label: z.array(z.string().max(5000)).max(MAX_LABELS),
    limit: queryNumberSchema.pipe(z.int().min(1).max(1000)),
    cursor: z.string().max(512),
  })
  .partial();

export const sandboxPageSchema = pageSchema(sandboxResourceSchema).meta({ id: "SandboxPage" });

export const sandboxListSchema = z.strictObject({ items: z.array(sandboxResourceSchema) }).meta({ id: "SandboxList" });

export type Activity = z.infer<typeof activitySchema>;
export type CreateSandboxBody = z.infer<typeof createSandboxBodySchema>;
export type UpdateSandboxBody = z.infer<typeof updateSandboxBodySchema>;
export type SandboxResource = z.infer<typeof sandboxResourceSchema>;
export type ListSandboxesQuery = z.infer<typeof listSandboxesQuerySchema>;
export type SandboxPage = z.infer<typeof sandboxPageSchema>;
