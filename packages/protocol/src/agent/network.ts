import { z } from "zod";
import { windowSchema } from "./stream.ts";

const flowId = z.int().min(1);
const queryId = z.int().min(1);
const port = z.int().min(1).max(65535);
const pid = z.int().min(1).nullable();
/** The first 15 bytes of the program's name, as the kernel keeps it. */
const program = z.string().max(64).nullable();
const address = z.string().max(45);
/** Lower case, without the last dot. */
const name = z.string().min(1).max(253);

/**
 * One line of a net.serve stream. The first line is `ready`. A `flow` is a connection that waits for net.accept or net.refuse, a
 * `query` a DNS question that waits for net.answer. `gone` means that the other end closed a flow before its accept.
 */
export const networkEventSchema = z.discriminatedUnion("kind", [
  /** `redirected` is false where nothing redirects connections to the agent, so that no flow will come. */
  z.object({ kind: z.literal("ready"), redirected: z.boolean() }),
  z.object({
    kind: z.literal("flow"),
    flow: flowId,
    /** The name whose stand-in address was dialed; null for an address. */
    name: name.nullable(),
    address,
    port,
    pid,
    program,
  }),
  /** `type` is as in zone files; an unknown one is written TYPE123. */
  z.object({ kind: z.literal("query"), query: queryId, name, type: z.string().regex(/^[A-Z][A-Z0-9]{0,15}$/) }),
  z.object({ kind: z.literal("gone"), flow: flowId }),
  /** UDP other than DNS, which the agent drops; `count` is how many since the last such line. */
  z.object({
    kind: z.literal("datagram"),
    address: address.nullable(),
    port: port.nullable(),
    count: z.int().min(1),
  }),
]);
export type NetworkEvent = z.infer<typeof networkEventSchema>;

/** `stand_in` answers A with the name's stand-in address, and other types with an empty answer. */
const dnsOutcomeSchema = z.enum(["stand_in", "empty", "name_error", "refused", "server_failure"]);
export type DnsOutcome = z.infer<typeof dnsOutcomeSchema>;

/** A TCP port on which something in the sandbox listens. */
export const listeningPortSchema = z.object({
  port,
  /** The most open address of those that it listens on: "0.0.0.0", "::", or a single one. */
  address,
  pid,
  program,
});
export type ListeningPort = z.infer<typeof listeningPortSchema>;

/** One line of a port.watch stream. The ports that are open at its beginning come before `ready`. */
export const portEventSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("ready") }),
  listeningPortSchema.extend({ kind: z.enum(["opened", "closed"]) }),
]);
export type PortEvent = z.infer<typeof portEventSchema>;

const empty = z.object({});

export const networkMethods = {
  /**
   * Streams NetworkEvent as JSON lines until canceled; a newer call replaces it. While none is open, the agent resets each
   * connection and refuses each query at once.
   */
  "net.serve": { params: z.object({ window: windowSchema }), result: empty },
  /** Takes a flow and forwards bytes in both directions, like port.dial. */
  "net.accept": {
    params: z.object({ flow: flowId, window: windowSchema }),
    result: z.object({ sent: z.int(), received: z.int() }),
  },
  /** Resets a flow. Does nothing if it is gone. */
  "net.refuse": { params: z.object({ flow: flowId }), result: empty },
  /** Answers a query. Does nothing if it is no longer open. */
  "net.answer": { params: z.object({ query: queryId, outcome: dnsOutcomeSchema }), result: empty },
  "port.list": { params: empty, result: z.object({ ports: z.array(listeningPortSchema) }) },
  /** Streams PortEvent as JSON lines until canceled. */
  "port.watch": { params: z.object({ window: windowSchema }), result: empty },
} as const;
