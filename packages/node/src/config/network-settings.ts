import { parseNetworkTarget, parseTargetText } from "@sandpiper/protocol";
import { z } from "zod";
import { count, durationMs, optionalPath } from "./setting-types.ts";

const cidr = z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]);
const server = z.string().refine((text) => {
  const { target = "", ports = [] } = parseTargetText(text) ?? {};
  return parseNetworkTarget(target)?.kind === "cidr" && !target.includes("/") && ports.length <= 1;
});
const target = z
  .string()
  .max(1024)
  .refine((text) => {
    const kind = parseNetworkTarget(parseTargetText(text)?.target ?? "")?.kind;
    return kind !== undefined && kind !== "bundle";
  });

export const networkSettings = z
  .strictObject({
    allowedCidrs: z.array(cidr).max(1000).default([]).meta({
      description:
        "Networks outside the public internet that policies of sandboxes may allow, also loopback and private ones.",
      allowed: "addresses and networks, such as 10.0.0.7 and 10.1.0.0/16",
    }),
    resolvers: z.array(server).max(16).default([]).meta({
      description: "DNS servers that resolve the names that sandboxes connect to.",
      allowed: "addresses, with or without a port, such as 10.0.0.53 and [2001:db8::53]:5353",
      shownDefault: "those of the system",
    }),
    bundles: z
      .record(z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/), z.array(target).max(256))
      .default({})
      .meta({
        description:
          "Bundles of hosts that network rules name as @bundle, besides pypi, npm, debian, github, crates and go. One with such a name replaces it.",
        allowed: 'lists of hosts by name, such as {"mirror": ["pypi.example.com:443"]}',
        shownDefault: "`{}`",
      }),
    extraCaFile: optionalPath.meta({
      description:
        "PEM file with authorities that the node trusts, besides the usual ones, when it connects to the hosts of secrets.",
    }),
    maxConnections: z.int().min(0).default(20_000).meta({
      description: "Maximum number of open connections of all sandboxes together; 0 means no limit.",
    }),
    askTimeoutMs: durationMs.max(3_600_000).default(60_000).meta({
      description:
        "How long a connection to a host that no rule is about waits for a decision, in milliseconds. Then the node denies it.",
    }),
    logRecordsPerSandbox: count.max(1_000_000).default(10_000).meta({
      description: "How many connections and DNS queries of one sandbox the node keeps in its log.",
    }),
    logRecordsPerTenant: count.max(10_000_000).default(100_000).meta({
      description:
        "How many connections and DNS queries of all sandboxes of one tenant the node keeps. The longest logs give way first.",
    }),
  })
  .prefault({});
