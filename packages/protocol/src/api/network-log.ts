import { z } from "zod";
import { sandboxIdSchema } from "../sandbox-id.ts";
import { instantSchema } from "./names.ts";

/** Why a connection or query was denied, or why an allowed connection did not last. */
export const flowReasonSchema = z.enum([
  /** A rule denies it. */
  "rule",
  /** No rule is about it, and the default is `deny`. */
  "default",
  /** The default is `ask`, and nobody allowed it in time. */
  "not_approved",
  /** Every address of the name, or the address itself, is one that sandboxes do not reach. */
  "special_address",
  /** The name is not one that DNS resolves, or the address is not one. */
  "invalid_name",
  "name_not_found",
  "resolution_failed",
  /** The TLS server name is not the name that was connected to. */
  "tls_name_mismatch",
  /** The HTTP host is not the name that was connected to. */
  "http_host_mismatch",
  "connection_limit",
  "connection_rate_limit",
  "query_rate_limit",
  "byte_limit",
  "connect_failed",
  "connect_timeout",
  /** A changed policy no longer allows it. */
  "policy_changed",
  /** The sandbox ended, was saved, or moved. */
  "sandbox_ended",
  /** Either side broke the connection. */
  "reset",
  /** UDP other than DNS. */
  "datagram",
  /** An interceptor failed, for example because the server's certificate is invalid. */
  "intercept_failed",
  /** The node ended while the connection was open. */
  "node_restarted",
]);

/** One request of a connection whose TLS the node terminates. */
const flowRequestSchema = z.strictObject({ method: z.string(), path: z.string(), status: z.int().nullable() });

/** A connection, a DNS query, or refused datagrams of a sandbox. */
export const flowRecordSchema = z
  .strictObject({
    id: z.string(),
    sandboxId: sandboxIdSchema,
    at: instantSchema,
    kind: z.enum(["flow", "query", "datagram"]),
    /** Null if the sandbox connected to an address. */
    name: z.string().nullable(),
    /** The address that the node connected to, or that the sandbox named; null for queries and before the node knows it. */
    address: z.string().nullable(),
    /** Null for queries. */
    port: z.int().nullable(),
    /** The type of a DNS query, such as `A`; null for others. */
    queryType: z.string().nullable(),
    /** As the sandbox states it; null if it is not known. */
    pid: z.int().nullable(),
    program: z.string().nullable(),
    decision: z.enum(["allowed", "denied"]),
    /** The rule that decided, such as `allow=pypi.org:443`, or `default`; null if no rule was asked. */
    rule: z.string().nullable(),
    /** For denials: the rule that would allow it; null if none can. */
    suggestion: z.string().nullable(),
    reason: flowReasonSchema.nullable(),
    sentBytes: z.int(),
    receivedBytes: z.int(),
    /** Null while it is open. */
    durationMs: z.number().nullable(),
    endedAt: instantSchema.nullable(),
    /** How many datagrams or identical refusals this record stands for. */
    count: z.int().min(1),
    requests: z.array(flowRequestSchema).optional(),
  })
  .meta({ id: "NetworkFlow" });

export type FlowReason = z.infer<typeof flowReasonSchema>;
export type FlowRequest = z.infer<typeof flowRequestSchema>;
export type FlowRecord = z.infer<typeof flowRecordSchema>;
