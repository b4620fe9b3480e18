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
import { networkBodySchema, networkPolicySchema } from "./network.ts";

import { secretUseSchema, secretUsesBodySchema } from "./secret.ts";

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

/** Activities that reset the idle timeout. */
export const activitySchema = z.enum(["exec", "stdin", "output", "file", "client", "process", "preview"]);

/** 16 TiB; larger numbers do not fit into the limits of runtimes. */
const MAX_MIB = 2 ** 24;
/** A page of a list contains the metadata of up to a thousand sandboxes. */
const MAX_METADATA_CHARS = 16 * 1024;

const metadataSchema = z
  .record(z.string().max(128), z.json())
  .refine((metadata) => JSON.stringify(metadata).length <= MAX_METADATA_CHARS, {
    error: `longer than ${MAX_METADATA_CHARS} characters as JSON`,
  })
  .meta({ maxProperties: MAX_METADATA_CHARS });
const lifetimes = {
  /** Counted from the creation, or from the update that set it, even if the sandbox is used. Null for no limit. */
  ttlMs: durationMsSchema.nullable(),
  /** How long it may be idle; null for no limit. */
  idleTimeoutMs: durationMsSchema.nullable(),
  /** Activities that do not reset the idle timeout; all others do. */
  idleExcept: z.array(activitySchema).max(activitySchema.options.length),
  /** The action when either time limit is reached; `pause` needs a provider with checkpoints. */
  onExpiry: z.enum(["destroy", "pause"]),
  /**
   * If its instance ends by itself: `restore` returns it to its newest checkpoint at its next use, `keep` leaves it failed.
   * The default is `keep` for containers, whose volumes outlive them, and `restore` otherwise.
   */
  onFailure: z.enum(["restore", "keep"]),
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
  cwd: z
    .string()
    .max(4096)
    .regex(/^\/[^\0]*$/),
  user: z.string().min(1).max(128),
  /** Default time limit of its commands. */
  timeoutMs: durationMsSchema,
};

/** Options that a checkpoint determines. */
const kept = {
  env: envSchema,
  /** Secrets of the tenant that the node injects into its requests. */
  secrets: secretUsesBodySchema,
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
    /** Which hosts it reaches; the default is the node's, and `none` unless its operator sets another. */
    network: networkBodySchema,
    /** Start from this checkpoint; the options that it determines must then be omitted. */
    checkpoint: checkpointIdSchema,
    /** Null, the default, takes no automatic checkpoints. */
    checkpointPolicy: checkpointPolicyBodySchema.nullable(),
  })
  .partial();

/** The body of a request, also checked for options that exclude each other. */
export const createSandboxRequestSchema = createSandboxBodySchema
  .superRefine((body, context) => {
    if (body.checkpoint === undefined) return;
    for (const field of Object.keys(kept) as (keyof typeof kept)[]) {
      if (body[field] === undefined) continue;
      context.addIssue({ code: "custom", path: [field], message: "the checkpoint determines this option; omit it" });
    }
  })
  .meta({ id: "CreateSandbox" });

export const updateSandboxBodySchema = z
  .strictObject({
    name: nameSchema.nullable(),
    /** Replaces all labels. */
    labels: labelsSchema,
    metadata: metadataSchema,
    /** Replaces all; secrets that stay keep their placeholder. Not with a sandbox token. */
    secrets: secretUsesBodySchema,
    ...lifetimes,
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
    /** Grants access to this sandbox only. Null for read-only keys, because the token also allows changes. */
    token: z.string().nullable(),
    image: z.string(),
    /** Null without container options. */
    container: containerSchema.nullable(),
    /** The addresses of published ports, by port inside. */
    addresses: z.record(z.string(), z.string()),
    /** The secrets that it uses, with the placeholders that its code sees. */
    secrets: z.array(secretUseSchema),
    memoryMib: shape.memoryMib,
    vcpuCount: shape.vcpuCount,
    diskMib: shape.diskMib,
    maxProcesses: shape.maxProcesses,
    language: shape.language.nullable(),
    cwd: shape.cwd.nullable(),
    user: shape.user.nullable(),
    timeoutMs: shape.timeoutMs.nullable(),
    ...lifetimes,
    network: networkPolicySchema,
    /** When its ttl ends; null for never. */
    expiresAt: instantSchema.nullable(),
    /** When its owner stopped it: it runs again after a start. Null if it was not stopped, or by its node. */
    stoppedAt: instantSchema.nullable(),
    /** What its checkpoints save. */
    fidelity: sandboxFidelitySchema,
    /** Null if no automatic checkpoints are taken. */
    checkpointPolicy: checkpointPolicySchema.nullable(),
    /** The checkpoint of its last rollback, and when; changes in between are lost. */
    rolledBackTo: z
      .strictObject({ checkpoint: checkpointIdSchema, createdAt: instantSchema, at: instantSchema })
      .nullable(),
    /** The id of the node that holds it; null while none does, and on a standalone node. */
    node: z.string().nullable(),
    /** Why it failed. */
    failure: z.strictObject({ code: z.string(), reason: z.string(), message: z.string() }).nullable(),
  })
  .meta({ id: "Sandbox" });

export const sandboxHealthSchema = z
  .strictObject({
    /** Whether it is ready and its agent answers; a busy agent counts as healthy. */
    healthy: z.boolean(),
    state: sandboxStateSchema,
  })
  .meta({ id: "SandboxHealth" });

export const listSandboxesQuerySchema = z
  .strictObject({
    state: sandboxStateSchema,
    provider: providerNameSchema,
    name: nameSchema,
    /** `key=value`, or `key` for any value. May be repeated; all must match. */
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
export type SandboxHealth = z.infer<typeof sandboxHealthSchema>;
export type ListSandboxesQuery = z.infer<typeof listSandboxesQuerySchema>;
export type SandboxPage = z.infer<typeof sandboxPageSchema>;
