import { z } from "zod";
import { MAX_ATTACHMENT_BYTES } from "./generation.ts";

/** Matches an answer to its call; a caller never reuses an id on one channel. */
export const callIdSchema = z.union([z.int().nonnegative(), z.string().min(1).max(128)]);
export type CallId = z.infer<typeof callIdSchema>;

const attachment = z.int().min(0).max(MAX_ATTACHMENT_BYTES);

export const requestSchema = z.object({
  jsonrpc: z.literal("2.0"),
  id: callIdSchema,
  method: z.string(),
  params: z.record(z.string(), z.unknown()).optional(),
  bytes: attachment.optional(),
});

export const notificationSchema = z.object({
  jsonrpc: z.literal("2.0"),
  method: z.string(),
  params: z.record(z.string(), z.unknown()).optional(),
  bytes: attachment.optional(),
});

export const rpcErrorSchema = z.object({
  /** −32700 parse, −32600 request, −32601 method, −32602 params, −32000 everything else. */
  code: z.int(),
  message: z.string(),
  data: z
    .object({
      /** One of the closed error codes. */
      code: z.string(),
      /** What happened, in snake_case; an open set. */
      reason: z.string(),
      hint: z.string().optional(),
      details: z.record(z.string(), z.unknown()).optional(),
    })
    .optional(),
});

export const responseSchema = z.object({
  jsonrpc: z.literal("2.0"),
  /** Null if the request was too damaged to read its id. */
  id: callIdSchema.nullable(),
  result: z.record(z.string(), z.unknown()).optional(),
  error: rpcErrorSchema.optional(),
  bytes: attachment.optional(),
});
