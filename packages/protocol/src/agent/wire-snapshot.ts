import { z } from "zod";
import { notificationSchema, requestSchema, responseSchema } from "./envelope.ts";
import { fileInfoSchema, watchEventSchema } from "./file.ts";
import {
  MAX_ATTACHMENT_BYTES,
  MAX_CALLS_IN_FLIGHT,
  MAX_LINE_BYTES,
  MAX_PENDING_STDIN_BYTES,
  PROTOCOL_GENERATION,
} from "./generation.ts";
import { agentMethods } from "./methods.ts";
import { networkEventSchema, portEventSchema } from "./network.ts";
import { agentNotifications } from "./stream.ts";

/** The whole contract between an agent and its caller, as deterministic JSON. */
export function createWireSnapshot(): unknown {
  return {
    generation: PROTOCOL_GENERATION,
    limits: { MAX_LINE_BYTES, MAX_ATTACHMENT_BYTES, MAX_CALLS_IN_FLIGHT, MAX_PENDING_STDIN_BYTES },
    envelopes: mapSchemas({ request: requestSchema, notification: notificationSchema, response: responseSchema }),
    methods: mapValues(agentMethods, ({ params, result }) => mapSchemas({ params, result })),
    notifications: mapValues(agentNotifications, ({ params }) => mapSchemas({ params })),
    lines: mapSchemas({
      "file.list": fileInfoSchema,
      "file.watch": watchEventSchema,
      "net.serve": networkEventSchema,
      "port.watch": portEventSchema,
    }),
  };
}

function mapSchemas(schemas: Readonly<Record<string, z.ZodType>>): Record<string, unknown> {
  return mapValues(schemas, (schema) => {
    // "input": a receiver ignores fields it does not know, and a closed schema would say the opposite.
    const { $schema: _, ...jsonSchema } = z.toJSONSchema(schema, { io: "input" });
    return jsonSchema;
  });
}

function mapValues<V>(record: Readonly<Record<string, V>>, map: (value: V) => unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]));
}
