import { z } from "zod";
import { instantSchema } from "../api/names.ts";

/** The statuses of `WS /create` and `WS /attach/<id>`. */
export const sessionStatusSchema = z.enum([
  "SANDBOX_CREATING",
  "SANDBOX_RUNNING",
  "SANDBOX_NOT_FOUND",
  "SANDBOX_IN_USE",
  "SANDBOX_CREATION_ERROR",
  "SANDBOX_EXECUTION_ERROR",
  "SANDBOX_EXECUTION_RUNNING",
  "SANDBOX_EXECUTION_DONE",
  "SANDBOX_RESTORING",
  "SANDBOX_CHECKPOINTING",
  "SANDBOX_CHECKPOINTED",
  "SANDBOX_MOVED",
  "SANDBOX_DELETED",
]);

/** From the client: code to run. */
export const sessionRequestSchema = z.strictObject({ language: z.string().min(1).max(128), code: z.string() });

/** From the server. An error status has a message, and a done execution its exit code. */
export const sessionEventSchema = z.union([
  z.strictObject({
    event: z.literal("status_update"),
    status: sessionStatusSchema,
    message: z.string().optional(),
    exit_code: z.int().optional(),
    /** Set after the sandbox's node crashed; changes after this checkpoint are lost. */
    rolledBackTo: z.strictObject({ checkpoint: z.string(), createdAt: instantSchema, at: instantSchema }).optional(),
  }),
  z.strictObject({ event: z.literal("sandbox_id"), sandbox_id: z.string(), token: z.string() }),
  z.strictObject({ event: z.enum(["stdout", "stderr"]), data: z.string() }),
  z.strictObject({ event: z.literal("error"), message: z.string() }),
]);

export type SessionStatus = z.infer<typeof sessionStatusSchema>;
export type SessionEvent = z.infer<typeof sessionEventSchema>;
