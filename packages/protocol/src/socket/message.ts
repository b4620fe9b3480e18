import { z } from "zod";
import { processIdSchema } from "../agent/process.ts";
import { eventSchema, listEventsQuerySchema } from "../api/event.ts";
import { fileEventSchema } from "../api/file.ts";
import { sandboxPathSchema } from "../api/names.ts";
import { portNumberSchema } from "../api/preview.ts";
import { processExitSchema, startProcessBodySchema } from "../api/process.ts";
import { errorBodySchema } from "../errors/error-body.ts";
import { sandboxIdSchema } from "../sandbox-id.ts";

/** WebSocket subprotocol of `/v1/socket`. A browser sends its credential as a second one: `bearer.<key or token>`. */
export const SOCKET_PROTOCOL = "sandpiper.v1";

/** How much input of one `stdin` stream may wait for its `ack`; a stream with more fails. */
export const STDIN_WINDOW_BYTES = 1024 * 1024;

/** The client chooses the numbers of its streams and uses each once per connection. */
const stream = z
  .int()
  .min(0)
  .max(2 ** 32 - 1);
const offset = z.int().min(0);
/** How many bytes or items may be in flight. */
const window = z
  .int()
  .min(1)
  .max(64 * 1024 * 1024);

/** How often the sandbox was rolled back. Offsets are only comparable while it stays the same. */
const rollbacks = z.int().min(0).optional();

const open = {
  type: z.literal("open"),
  stream,
};

/** The stream was open on an earlier connection. It waits for a paused sandbox, which a new stream would wake. */
const continued = z.boolean().optional();

const openMessageSchema = z.discriminatedUnion("kind", [
  /**
   * A process's output from an offset, and then its exit. With `spawn` the process is started unless it exists, so that
   * the same message resumes the stream after a lost connection.
   */
  z.strictObject({
    ...open,
    kind: z.literal("process"),
    sandbox: sandboxIdSchema,
    process: processIdSchema,
    spawn: startProcessBodySchema.optional(),
    offset,
    window,
    continued,
    /** The client sent `spawn` before, without an answer. */
    repeated: z.boolean().optional(),
  }),
  /** Drops an ended process whose output the client has read; answered by `end`. */
  z.strictObject({ ...open, kind: z.literal("forget"), sandbox: sandboxIdSchema, process: processIdSchema }),
  /** Standard input of a process; acknowledged by `ack`. */
  z.strictObject({
    ...open,
    kind: z.literal("stdin"),
    sandbox: sandboxIdSchema,
    process: processIdSchema,
    continued,
  }),
  z.strictObject({
    ...open,
    kind: z.literal("watch"),
    sandbox: sandboxIdSchema,
    path: sandboxPathSchema,
    recursive: z.boolean().optional(),
    window,
    continued,
  }),
  /**
   * A TCP connection to a port in the sandbox. Bytes to it are sent and acknowledged as those of `stdin`. A lost
   * WebSocket ends it.
   */
  z.strictObject({ ...open, kind: z.literal("connect"), sandbox: sandboxIdSchema, port: portNumberSchema, window }),
  /** The node's events after an id. */
  z.strictObject({
    ...open,
    kind: z.literal("events"),
    after: offset,
    /** Begin with the current state of every sandbox, and ignore `after`. */
    replay: z.boolean().optional(),
    sandbox: listEventsQuerySchema.shape.sandbox,
    window,
  }),
]);

/** From the client, as text. Input of a `stdin` or `connect` stream is sent as binary frames. */
export const clientMessageSchema = z.discriminatedUnion("type", [
  openMessageSchema,
  /** Lets the server send this many more bytes or items. */
  z.strictObject({ type: z.literal("credit"), stream, amount: window }),
  /** Ends the input of a `stdin` or `connect` stream after the bytes before this offset. */
  z.strictObject({ type: z.literal("finish"), stream, offset }),
  /** Closes a stream; the process keeps running. */
  z.strictObject({ type: z.literal("close"), stream }),
]);

/** From the server, as text. Output is sent as binary frames. */
export const serverMessageSchema = z.discriminatedUnion("type", [
  /**
   * The stream is open and misses no later item. A `stdin` stream reports the input that has already arrived.
   * An omitted `rollbacks` is 0.
   */
  z.strictObject({ type: z.literal("opened"), stream, offset: offset.optional(), pid: z.int().optional(), rollbacks }),
  /** One event of a `watch` or `events` stream; uses one item of its window. */
  z.strictObject({ type: z.literal("item"), stream, item: z.union([fileEventSchema, eventSchema]) }),
  /** The process's pipe, or the connection, has accepted the input up to this offset. */
  z.strictObject({ type: z.literal("ack"), stream, offset }),
  /** The other end of a `connect` stream sends nothing after the bytes before this offset; it may still receive. */
  z.strictObject({ type: z.literal("finished"), stream, offset }),
  /** The last message of a stream; that of a `process` stream has the exit and the end of the output. */
  z.strictObject({
    type: z.literal("end"),
    stream,
    exit: processExitSchema.optional(),
    offset: offset.optional(),
  }),
  /**
   * The failure of a stream or, without `stream`, of the connection, which then closes. With `rollbacks` a client
   * distinguishes a forgotten process from one that a rollback undid; omitted if unknown.
   */
  z.strictObject({ type: z.literal("error"), stream: stream.optional(), error: errorBodySchema, rollbacks }),
]);

export type ClientMessage = z.infer<typeof clientMessageSchema>;
export type ServerMessage = z.infer<typeof serverMessageSchema>;
