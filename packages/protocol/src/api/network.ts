import { z } from "zod";
import { parseNetworkTarget, targetText } from "./network-target.ts";

/** Every flow compares its name with the rules of its sandbox. */
export const MAX_NETWORK_RULES = 256;
const MAX_PORT_RANGES = 32;
const MAX_TARGET_CHARS = 1024;

const portSchema = z.int().min(1).max(65_535);
const PORT_RANGE = /^([1-9]\d{0,4})-([1-9]\d{0,4})$/;

/** Undefined unless the text is two ports in order, such as `8000-8100`. */
export function parsePortRange(text: string): readonly [first: number, last: number] | undefined {
  const [, first, last] = PORT_RANGE.exec(text)?.map(Number) ?? [];
  return first === undefined || last === undefined || first > last || last > 65_535 ? undefined : [first, last];
}

const portsSchema = z
  .array(
    z.union([
      portSchema,
      z
        .string()
        .max(11)
        .refine((text) => parsePortRange(text) !== undefined, { error: 'not a range of ports such as "8000-8100"' }),
    ]),
  )
  .min(1)
  .max(MAX_PORT_RANGES);

const targetSchema = z
  .string()
  .min(1)
  .max(MAX_TARGET_CHARS)
  .refine((text) => parseNetworkTarget(text) !== undefined, {
    error: 'not a host name, "*", "*." before a host name, an address, a network, or "@" before a bundle',
  })
  .overwrite((text) => {
    const target = parseNetworkTarget(text);
    return target === undefined ? text : targetText(target);
  })
  .meta({
    description:
      "A host name; `*.` before a name for its sub-domains; an address or a network; `@` and the name of a bundle; `*` for everything.",
  });

/** Without `ports`, the rule is about every port. */
export const networkRuleSchema = z
  .union([
    z.strictObject({ allow: targetSchema, ports: portsSchema.optional() }),
    z.strictObject({ deny: targetSchema, ports: portsSchema.optional() }),
  ])
  .meta({ id: "NetworkRule" });

const limit = z.int().min(1).max(Number.MAX_SAFE_INTEGER).nullable();

/** Null for no limit. */
const networkLimits = {
  /** Open connections at the same time; at most 768 even without a limit. */
  maxConnections: limit,
  /** New connections; as many as in two seconds at once. */
  maxConnectionsPerSecond: limit,
  /** DNS queries; as many as in two seconds at once. */
  maxQueriesPerSecond: limit,
  /** Sent and received together, since the node began to serve the sandbox. Then every connection ends. */
  maxBytes: limit,
  /** Sent and received together. */
  maxBytesPerSecond: limit,
};

const networkLimitsSchema = z.strictObject(networkLimits).meta({ id: "NetworkLimits" });

/** What happens to a connection that no rule is about: `ask` holds it until someone decides. */
const defaultSchema = z.enum(["allow", "deny", "ask"]);

/**
 * Which hosts a sandbox reaches. Private networks and the node's own addresses also need the operator's permission.
 */
export const networkPolicySchema = z
  .strictObject({
    /** The first that is about a connection's host and port decides. */
    rules: z.array(networkRuleSchema).max(MAX_NETWORK_RULES),
    default: defaultSchema,
    limits: networkLimitsSchema,
  })
  .meta({ id: "NetworkPolicy" });

/** `none` refuses every connection, `open` allows the public internet, and `ask` holds each until someone decides. */
export const networkNameSchema = z.enum(["none", "open", "ask"]);

/** As a caller writes it; omitted limits have the defaults. */
export const networkBodySchema = z
  .union([
    networkNameSchema,
    z.strictObject({
      rules: z.array(networkRuleSchema).max(MAX_NETWORK_RULES).optional(),
      default: defaultSchema.optional(),
      limits: networkLimitsSchema.partial().optional(),
    }),
  ])
  .meta({ id: "Network" });

export type NetworkRule = z.infer<typeof networkRuleSchema>;
export type NetworkLimits = z.infer<typeof networkLimitsSchema>;
export type NetworkPolicy = z.infer<typeof networkPolicySchema>;
export type NetworkBody = z.infer<typeof networkBodySchema>;

/** Enough for a browser and for package managers; a loop of connections does not exhaust the node's ports. */
export const DEFAULT_NETWORK_LIMITS: NetworkLimits = Object.freeze({
  maxConnections: 512,
  maxConnectionsPerSecond: 1000,
  maxQueriesPerSecond: 500,
  maxBytes: null,
  maxBytesPerSecond: null,
});

const defaultOf = { none: "deny", open: "allow", ask: "ask" } as const;

export function completeNetwork(
  body: NetworkBody,
  defaultLimits: NetworkLimits = DEFAULT_NETWORK_LIMITS,
): NetworkPolicy {
  if (typeof body === "string") return { rules: [], default: defaultOf[body], limits: { ...defaultLimits } };
  const { rules = [], default: otherwise = "deny", limits = {} } = body;
  return { rules, default: otherwise, limits: { ...defaultLimits, ...withoutUndefined(limits) } };
}

/** Whether no connection can be allowed, so that the node need not serve any. */
export function isNoNetwork({ rules, default: otherwise }: Pick<NetworkPolicy, "rules" | "default">): boolean {
  return otherwise === "deny" && !rules.some((rule) => "allow" in rule);
}

function withoutUndefined(limits: object): Partial<NetworkLimits> {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined));
}
