import { z } from "zod";
import { sandboxIdSchema } from "../sandbox-id.ts";
import { instantSchema, queryFlagSchema, queryNumberSchema } from "./names.ts";
import { networkRuleSchema } from "./network.ts";
import { flowRecordSchema } from "./network-log.ts";

/** With `Accept: text/event-stream` the answer also streams new records; `Last-Event-ID` is the same as `after`. */
export const networkLogQuerySchema = z
  .strictObject({
    /** Only denials. */
    denied: queryFlagSchema,
    /** Only what began at or after this time. */
    since: instantSchema,
    /** Only what was recorded, or ended, after this cursor. Without it, the newest records are listed. */
    after: queryNumberSchema,
    limit: queryNumberSchema.pipe(z.int().min(1).max(1000)),
  })
  .partial();

export const networkLogSchema = z
  .strictObject({
    /** Oldest first. A connection stands where it began while it is open, and where it ended after that. */
    items: z.array(flowRecordSchema),
    /** Where to continue, as `after`. */
    cursor: z.int(),
    /** How many records of this sandbox gave way to newer ones. */
    dropped: z.int(),
  })
  .meta({ id: "NetworkLog" });

export const networkSuggestionQuerySchema = z
  .strictObject({
    /** Only from what began at or after this time. */
    since: instantSchema,
  })
  .partial();

export const networkSuggestionSchema = z
  .strictObject({
    /** The fewest rules that allow what was recorded. */
    rules: z.array(networkRuleSchema),
    /** The same as the value of `--network`; null without rules. */
    text: z.string().nullable(),
    /** How many records it is made from. */
    records: z.int(),
    /** How many records of this sandbox gave way to newer ones before. */
    dropped: z.int(),
  })
  .meta({ id: "NetworkSuggestion" });

/** A connection to a host that no rule is about, held until someone decides. */
export const networkRequestSchema = z
  .strictObject({
    id: z.string(),
    sandboxId: sandboxIdSchema,
    /** Null if the sandbox connected to an address. */
    name: z.string().nullable(),
    /** Null if it connected to a name. */
    address: z.string().nullable(),
    port: z.int(),
    pid: z.int().nullable(),
    program: z.string().nullable(),
    at: instantSchema,
    /** When it is denied if nobody decides. */
    expiresAt: instantSchema,
  })
  .meta({ id: "NetworkRequest" });

export const networkRequestListSchema = z
  .strictObject({ items: z.array(networkRequestSchema) })
  .meta({ id: "NetworkRequestList" });

/** The decision becomes a rule of the sandbox. */
export const decideNetworkRequestBodySchema = z.strictObject({ decision: z.enum(["allow", "deny"]) });

export type NetworkLog = z.infer<typeof networkLogSchema>;
export type NetworkSuggestion = z.infer<typeof networkSuggestionSchema>;
export type NetworkRequest = z.infer<typeof networkRequestSchema>;
export type DecideNetworkRequestBody = z.infer<typeof decideNetworkRequestBodySchema>;
