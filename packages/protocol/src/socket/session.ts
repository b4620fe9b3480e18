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
  "SANDBOX_EXECUTION_NOT_FOUND",
  "SANDBOX_RESTORING",
  "SANDBOX_CHECKPOINTING",
  "SANDBOX_CHECKPOINTED",
  "SANDBOX_MOVED",
  "SANDBOX_DELETED",
]);

/** All code of an execution is in one message. */
export const MAX_SOCKET_MESSAGE_BYTES = 16 * 1024 * 1024;

const PROCESS_PREFIX = "session-";

/** Names one run of code in a sandbox. With its prefix it is a process id, which has at most 64 characters. */
const executionIdSchema = z.string().regex(/^[A-Za-z0-9_-]{1,56}$/);

/** The process that runs an execution's code. */
export function executionProcess(execution: string): string {
  return `${PROCESS_PREFIX}${execution}`;
}

/** Undefined for a process that no session started. */
export function executionOfProcess(process: string): string | undefined {
  return process.startsWith(PROCESS_PREFIX) ? process.slice(PROCESS_PREFIX.length) : undefined;
}

/** From the client: code to run, or a question whether the connection is alive. */
export const sessionRequestSchema = z.union([
  z.strictObject({
    language: z.string().min(1).max(128),
    code: z.string().max(MAX_SOCKET_MESSAGE_BYTES),
    /** A client that sends the same id again attaches to the execution, which does not start twice. */
    execution: executionIdSchema.optional(),
  }),
  z.strictObject({ ping: z.literal(true) }),
]);

/** The query of `/attach/<id>` that continues an execution: `offset` is 0, or the `next` of the last output received. */
export const resumeQuerySchema = z.strictObject({ execution: executionIdSchema, offset: z.string().max(64) });

const reason = z.string().optional();

/** From the server. An error status has a message, and a done execution its exit code. */
export const sessionEventSchema = z.union([
  z.strictObject({
    event: z.literal("status_update"),
    status: sessionStatusSchema,
    message: z.string().optional(),
    /** Why, as in docs/errors.md. */
    reason,
    exit_code: z.int().optional(),
    /** Set if the status is about an execution. */
    execution: z.string().optional(),
    /** Where the output starts that follows, or the length of all output when the execution is done. */
    offset: z.int().min(0).optional(),
    /** Set after the sandbox's node crashed; changes after this checkpoint are lost. */
    rolledBackTo: z.strictObject({ checkpoint: z.string(), createdAt: instantSchema, at: instantSchema }).optional(),
  }),
  z.strictObject({ event: z.literal("sandbox_id"), sandbox_id: z.string(), token: z.string() }),
  z.strictObject({
    event: z.enum(["stdout", "stderr"]),
    data: z.string(),
    execution: z.string(),
    /** The position of its first byte in the execution's output, stdout and stderr together. */
    offset: z.int().min(0),
    /** Continues after this event. Only the node reads it. */
    next: z.string(),
    /** How many bytes before it were dropped, because the output was larger than its journal. */
    dropped: z.int().positive().optional(),
  }),
  z.strictObject({ event: z.literal("error"), message: z.string(), reason }),
  z.strictObject({ event: z.literal("pong") }),
]);

export type SessionStatus = z.infer<typeof sessionStatusSchema>;
export type SessionEvent = z.infer<typeof sessionEventSchema>;
