import { z } from "zod";
import { sandboxIdSchema } from "../sandbox-id.ts";
import { instantSchema, queryFlagSchema, queryNumberSchema } from "./names.ts";

export const eventKindSchema = z.enum([
  "sandbox.created",
  "sandbox.ready",
  "sandbox.updated",
  "sandbox.checkpointed",
  "sandbox.paused",
  "sandbox.resumed",
  "sandbox.stopped",
  "sandbox.started",
  "sandbox.forked",
  "sandbox.rolled_back",
  "sandbox.rebuilt",
  "sandbox.moved",
  "sandbox.failed",
  "sandbox.expired",
  "sandbox.destroyed",
  "checkpoint.deleted",
  "process.started",
  "process.exited",
  "network.allowed",
  "network.denied",
  "network.asked",
  "port.opened",
  "port.closed",
  "node.started",
  "node.reconciled",
  "node.draining",
  "node.stopping",
]);

/** The kind of a replayed state; only streams and lists with `replay` contain it. */
const STATE_KIND = "sandbox.state";

/** Something that happened on the node, in the order of its ids. */
export const eventSchema = z
  .strictObject({
    id: z.int(),
    at: instantSchema,
    kind: z.enum([...eventKindSchema.options, STATE_KIND]),
    /** Null for events of the whole node. */
    sandboxId: sandboxIdSchema.nullable(),
    details: z.record(z.string(), z.json()),
  })
  .meta({ id: "Event" });

/** With `Accept: text/event-stream` the answer also streams new events; `Last-Event-ID` is the same as `after`. */
export const listEventsQuerySchema = z
  .strictObject({
    /** Only events after this id. */
    after: queryNumberSchema,
    sandbox: sandboxIdSchema,
    limit: queryNumberSchema.pipe(z.int().min(1).max(1000)),
    /** Begin with one `sandbox.state` event for each sandbox of the node, instead of past events; excludes `after`. */
    replay: queryFlagSchema,
  })
  .partial()
  .refine(({ after, replay }) => after === undefined || replay !== true, {
    error: "give after or replay, not both",
  });

export const eventListSchema = z.strictObject({ items: z.array(eventSchema) }).meta({ id: "EventList" });

export type EventKind = z.infer<typeof eventKindSchema>;
export type EventBody = z.infer<typeof eventSchema>;
