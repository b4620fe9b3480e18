import { z } from "zod";
import { processInfoSchema } from "./process.ts";
import { windowSchema } from "./stream.ts";

const empty = z.object({});

const metricsSchema = z.object({
  /** CPU time used by everything in the sandbox since boot. */
  cpu_ms: z.number(),
  memory_used_bytes: z.int(),
  memory_total_bytes: z.int(),
  disk_used_bytes: z.int(),
  disk_total_bytes: z.int(),
  processes: z.int(),
  uptime_ms: z.number(),
});

export const systemMethods = {
  ping: { params: empty, result: z.object({ pong: z.literal(true) }) },
  /**
   * Opens a channel. Calls that an earlier caller left on the same byte stream are canceled, a quiesced agent thaws.
   * Its id is a fresh random string, so that a new caller finds the answer among bytes meant for the earlier one.
   */
  hello: {
    params: z.object({ generation: z.int().min(1) }),
    result: z.object({
      generation: z.int(),
      version: z.string(),
      /** New at every boot, kept by a checkpoint. */
      boot_id: z.string(),
      /** Set by system.thaw; 0 until then. */
      epoch: z.int(),
      /** Methods of this agent; a call of another one fails with unimplemented. */
      methods: z.array(z.string()),
      /** Languages with an interpreter in this sandbox. */
      languages: z.array(z.string()),
      processes: z.array(processInfoSchema),
    }),
  },
  "system.metrics": { params: empty, result: metricsSchema },
  /** Answered when no frame is half-written; the agent then sends nothing until system.thaw or hello. */
  "system.quiesce": { params: empty, result: empty },
  "system.thaw": { params: z.object({ epoch: z.int().min(0).optional() }), result: empty },
  /** Connects to a TCP port on the sandbox's loopback or to a Unix socket, and forwards bytes in both directions. */
  "port.dial": {
    params: z.object({ port: z.int().min(1).max(65535).optional(), path: z.string().optional(), window: windowSchema }),
    result: z.object({ sent: z.int(), received: z.int() }),
  },
} as const;
