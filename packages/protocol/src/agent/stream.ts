import { z } from "zod";
import { callIdSchema } from "./envelope.ts";

/**
 * A stream is a call that is not answered yet. Its bytes are sent in stream.data notifications that name the call. A
 * sender never exceeds its credit. The caller grants the agent `window` bytes in the call, and more with stream.credit.
 * The agent grants the caller credit with stream.credit; the first one also means that the stream is open.
 */
export const windowSchema = z
  .int()
  .min(1)
  .max(64 * 1024 * 1024);

const call = callIdSchema;

export const agentNotifications = {
  "stream.data": {
    params: z.object({
      call,
      /** process.output only: journal offset of the first byte. */
      offset: z.int().min(0).optional(),
      /** process.output only. */
      source: z.enum(["stdout", "stderr", "pty"]).optional(),
      /** process.output only: bytes before `offset` that the journal had dropped. */
      dropped: z.int().min(1).optional(),
    }),
  },
  /** The sender of this notification has sent its last data on this stream. */
  "stream.end": { params: z.object({ call }) },
  "stream.credit": { params: z.object({ call, bytes: z.int().min(1) }) },
  /** From the caller: the agent stops what the call started, and answers it with the code canceled. */
  cancel: { params: z.object({ call }) },
} as const;
