import { z } from "zod";
import { eventKindSchema } from "./event.ts";
import { durationMsSchema, instantSchema, queryNumberSchema } from "./names.ts";

export const healthSchema = z
  .strictObject({
    status: z.enum(["ok", "stopping"]),
    version: z.string(),
    /** Of which the host has less free than the node's reserve: the node starts nothing new. Absent if of none. */
    lowOn: z.array(z.enum(["disk", "memory", "pids"])).optional(),
  })
  .meta({ id: "Health" });

/** A node, as the nodes that share its store see it. */
export const nodeResourceSchema = z
  .strictObject({
    id: z.uuid(),
    /** The address at which other nodes reach it; null if they cannot. Its sandboxes then move instead of requests. */
    url: z.string().nullable(),
    startedAt: instantSchema,
    /** The time of its last heartbeat. */
    seenAt: instantSchema,
    isAlive: z.boolean(),
    /** It accepts no new sandboxes and releases those that it has. */
    isDraining: z.boolean(),
    /** Whether it is the node that answers. */
    isThisNode: z.boolean(),
    /** How many sandboxes it holds. */
    sandboxes: z.int(),
    version: z.string(),
    /** The runtimes whose checkpoints it can restore, such as "runsc 20260905.0"; its new sandboxes use the first. */
    runtimes: z.array(z.string().max(200)).max(200).optional(),
  })
  .meta({ id: "Node" });

export const nodeListSchema = z.strictObject({ items: z.array(nodeResourceSchema) }).meta({ id: "NodeList" });

export const drainNodeBodySchema = z
  .strictObject({
    /** The time limit for saving and releasing every sandbox; the default is the node's configuration. */
    deadlineMs: durationMsSchema,
  })
  .partial()
  .meta({ id: "DrainNode" });

export const createWebhookBodySchema = z
  .strictObject({
    url: z.url({ protocol: /^https?$/ }).max(2048),
    kinds: z.array(eventKindSchema).min(1).max(eventKindSchema.options.length).optional(),
  })
  .meta({ id: "CreateWebhook" });

export const webhookResourceSchema = z
  .strictObject({
    id: z.string(),
    url: z.string(),
    /** Null for all kinds. */
    kinds: z.array(eventKindSchema).nullable(),
    createdAt: instantSchema,
    /** The newest event that was delivered or dropped. */
    lastEventId: z.int(),
  })
  .meta({ id: "Webhook" });

/** The only answer that contains the secret, with which the node signs its requests. */
export const createdWebhookSchema = webhookResourceSchema.extend({ secret: z.string() }).meta({ id: "CreatedWebhook" });

export const webhookListSchema = z.strictObject({ items: z.array(webhookResourceSchema) }).meta({ id: "WebhookList" });

/** An operation and the credential that called it. */
export const auditEntrySchema = z
  .strictObject({
    id: z.int(),
    at: instantSchema,
    /** A key's id, or `sandbox:<id>` for a sandbox's own token; null when there was no valid credential. */
    actor: z.string().nullable(),
    tenant: z.string().nullable(),
    /** The operation's id in the OpenAPI document. */
    operation: z.string(),
    sandboxId: z.string().nullable(),
    status: z.int(),
    requestId: z.string(),
    /** Only in a summary (`refusalsNotRecorded`): how many requests have no entry, and from how many addresses they came. */
    notRecorded: z.strictObject({ requests: z.int(), addresses: z.int() }).optional(),
  })
  .meta({ id: "AuditEntry" });

const auditFindingSchema = z
  .strictObject({
    /** `head`: the record of the newest entry; `database_behind`: a shipped file has entries that the database lacks. */
    kind: z.enum(["missing", "changed", "unknown_key", "head", "unreadable", "database_behind"]),
    fromId: z.int().nullable(),
    toId: z.int().nullable(),
    /** In a shipped file. */
    line: z.int().nullable(),
    message: z.string(),
  })
  .meta({ id: "AuditFinding" });

/** Whether the chain of audit entries is complete and unchanged. */
export const auditVerificationSchema = z
  .strictObject({
    isIntact: z.boolean(),
    /** How many entries were verified. */
    entries: z.int(),
    /** How many older entries the node itself removed to make room. */
    rotated: z.int(),
    firstId: z.int().nullable(),
    lastId: z.int().nullable(),
    /** At most 100. */
    findings: z.array(auditFindingSchema),
  })
  .meta({ id: "AuditVerification" });

export const listAuditQuerySchema = z
  .strictObject({ after: queryNumberSchema, limit: queryNumberSchema.pipe(z.int().min(1).max(1000)) })
  .partial();

export const auditListSchema = z.strictObject({ items: z.array(auditEntrySchema) }).meta({ id: "AuditList" });

export type Health = z.infer<typeof healthSchema>;
export type NodeResource = z.infer<typeof nodeResourceSchema>;
export type DrainNodeBody = z.infer<typeof drainNodeBodySchema>;
export type AuditEntry = z.infer<typeof auditEntrySchema>;
export type AuditFinding = z.infer<typeof auditFindingSchema>;
export type AuditVerification = z.infer<typeof auditVerificationSchema>;
export type ListAuditQuery = z.infer<typeof listAuditQuerySchema>;
export type CreateWebhookBody = z.infer<typeof createWebhookBodySchema>;
export type WebhookResource = z.infer<typeof webhookResourceSchema>;
