import { homedir } from "node:os";
import { join } from "node:path";
import {
  CHECKPOINT_POLICY_SYNTAX,
  NETWORK_SYNTAX,
  parseCheckpointPolicy,
  parseNetwork,
  setPoolBodySchema,
} from "@sandpiper/protocol";
import { z } from "zod";
import { networkSettings } from "./network-settings.ts";
import { providerSettings } from "./provider-settings.ts";
import { absolutePath, count, durationMs, optionalPath } from "./setting-types.ts";

const origin = z.string().refine((text) => /^https?:/.test(text) && URL.parse(text)?.origin === text);
const isAddressWith = (protocol: RegExp, text: string) => {
  const url = URL.parse(text);
  return url !== null && protocol.test(url.protocol) && url.hostname !== "" && !/\s/.test(text);
};
const providerName = z.enum(["gvisor", "qemu", "firecracker", "docker", "vm-docker", "local"]);
const lifetime = durationMs.nullable().default(null);

/**
 * Every setting of a node. Flag names, environment variables, error texts and docs/configuration.md are generated from
 * this schema, so a new setting is declared here only.
 */
export const nodeConfigSchema = z.strictObject({
  host: z
    .string()
    .regex(/^[^\s/\0]+$/)
    .default("127.0.0.1")
    .meta({ description: "Address to listen on.", allowed: "a host name or an IP address" }),
  port: z.int().min(0).max(65_535).default(4747).meta({ description: "Port to listen on; 0 picks a free port." }),
  home: absolutePath
    .default(() => join(homedir(), ".sandpiper"))
    .meta({
      description: "Directory for sandboxes, records and keys.",
      shownDefault: "~/.sandpiper",
    }),
  logLevel: z
    .enum(["silent", "fatal", "error", "warn", "info", "debug", "trace"])
    .default("info")
    .meta({ description: "Minimum severity of log lines." }),
  logFormat: z
    .enum(["auto", "json", "pretty"])
    .default("auto")
    .meta({ description: "Log format; auto is pretty on a terminal and JSON elsewhere." }),
  tls: z
    .strictObject({
      certFile: optionalPath.meta({
        description: "PEM file with the certificate chain. Together with tls.keyFile it enables HTTPS.",
      }),
      keyFile: optionalPath.meta({ description: "PEM file with the certificate's private key." }),
    })
    .prefault({}),
  allowInsecure: z.boolean().default(false).meta({
    description: "Allow listening beyond loopback without TLS. Keys then cross the network unencrypted.",
  }),
  corsOrigins: z.array(origin).default([]).meta({
    description: "Origins whose web pages may call the node.",
    allowed: "origins such as https://app.example.com, without a path",
  }),
  bodyLimitBytes: z
    .int()
    .min(1024)
    .default(16 * 1024 * 1024)
    .meta({ description: "Maximum size of a JSON body. File transfers are streamed and not limited by it." }),
  bodyBudgetBytes: z
    .int()
    .min(0)
    .default(64 * 1024 * 1024)
    .meta({
      description:
        "Maximum size of the JSON bodies of one key that the node holds in memory at the same time; 0 means no limit. All keys together may use four times as much.",
    }),
  bodyTimeoutMs: durationMs.default(120_000).meta({
    description:
      "How long a JSON body may take to arrive, in milliseconds. A file transfer must make progress in this time.",
  }),
  maxConnections: z
    .int()
    .min(0)
    .default(10_000)
    .meta({ description: "Maximum number of open connections; 0 means no limit." }),
  maxConnectionsPerAddress: z.int().min(0).default(2500).meta({
    description: "Maximum number of open connections from one address that is not a trusted proxy; 0 means no limit.",
  }),
  trustedProxies: z
    .array(z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]))
    .default([])
    .meta({
      description: "Proxies whose X-Forwarded-For header names the caller's address.",
      allowed: "addresses and networks, such as 10.0.0.7 and 10.1.0.0/16",
    }),
  rateLimits: z
    .strictObject({
      perKey: z.int().min(0).default(1000).meta({
        description:
          "Requests of one key per second; up to five times as many at once. WebSockets count when they open. 0 means no limit.",
      }),
      perAddress: z.int().min(0).default(200).meta({
        description:
          "Requests without a valid credential from one address per second; up to five times as many at once. 0 means no limit.",
      }),
      failedCreatesPerMinute: z.int().min(0).default(60).meta({
        description: "Sandboxes of one key per minute that may fail to start; 0 means no limit.",
      }),
    })
    .prefault({}),
  stopGraceMs: z
    .int()
    .min(0)
    .max(600_000)
    .default(5000)
    .meta({ description: "How long requests in flight may continue when the node stops, in milliseconds." }),
  maxSandboxes: z
    .int()
    .min(0)
    .default(1000)
    .meta({ description: "Maximum number of sandboxes on the node, over all tenants; 0 means no limit." }),
  maxRecordBytes: z
    .int()
    .min(0)
    .default(64 * 1024 * 1024)
    .meta({
      description:
        "Maximum size of the records of one tenant's sandboxes; 0 means no limit. Records of destroyed sandboxes give way to new ones.",
    }),
  reserve: z
    .strictObject({
      diskMib: z.int().min(0).default(512).meta({
        description:
          "Free disk that the node keeps in its home and its directory store, in MiB. With less, it starts nothing new; 0 turns the check off.",
      }),
      memoryMib: z.int().min(0).default(256).meta({
        description:
          "Available memory that the node keeps on its host, in MiB. With less, it starts nothing new; 0 turns the check off.",
      }),
      pids: z.int().min(0).default(256).meta({
        description:
          "Free process ids that the node keeps on its host. With fewer, it starts nothing new; 0 turns the check off.",
      }),
    })
    .prefault({}),
  imagesDir: optionalPath.meta({
    description: "Directory with the root filesystems that sandboxes can use as their image.",
    shownDefault: "`images` in home",
  }),
  defaultProvider: providerName
    .default("gvisor")
    .meta({ description: "Provider of sandboxes that do not name one. local isolates nothing." }),
  providers: z.array(providerName).default([]).meta({
    description: "Additional providers that sandboxes can name. Every key can use all of them.",
    allowed: "a list of gvisor, qemu, firecracker, docker, vm-docker; local only as the default provider",
  }),
  docker: providerSettings.docker,
  qemu: providerSettings.qemu,
  firecracker: providerSettings.firecracker,
  connectTimeoutMs: durationMs.default(10_000).meta({
    description: "How long a sandbox's agent may take to answer after the sandbox starts, in milliseconds.",
  }),
  vmDocker: providerSettings.vmDocker,
  defaults: z
    .strictObject({
      memoryMib: count.default(256).meta({ description: "Default memory of a sandbox, in MiB." }),
      vcpuCount: z
        .number()
        .positive()
        .refine((value) => Math.abs(value * 100 - Math.round(value * 100)) < 1e-6)
        .default(2)
        .meta({
          description: "Default CPU time of a sandbox, in CPUs.",
          allowed: "a number above 0 with at most two decimals",
        }),
      diskMib: count.default(1024).meta({ description: "Default disk size of a sandbox, in MiB." }),
      maxProcesses: count.default(256).meta({ description: "Default process limit of a sandbox." }),
      ttlMs: lifetime.meta({ description: "Default lifetime of a sandbox after its creation, in milliseconds." }),
      idleTimeoutMs: lifetime.meta({ description: "Default idle timeout of a sandbox, in milliseconds." }),
      timeoutMs: lifetime.meta({ description: "Default time limit of commands, in milliseconds." }),
      network: z
        .string()
        .refine((text) => parseNetwork(text) !== undefined)
        .default("none")
        .meta({
          description: "Default network of a sandbox: which hosts it reaches.",
          allowed: NETWORK_SYNTAX,
        }),
      checkpoints: z
        .string()
        .refine((text) => text === "auto" || parseCheckpointPolicy(text) !== undefined)
        .default("auto")
        .meta({
          description:
            "When the node takes automatic checkpoints of a sandbox; auto means idle,every=5m in a cluster and none on a standalone node.",
          allowed: `auto, or a policy ${CHECKPOINT_POLICY_SYNTAX}`,
        }),
    })
    .prefault({}),
  network: networkSettings,
  pools: z.array(setPoolBodySchema).default([]).meta({
    description:
      "Warm pools: how many instances to keep started for each configuration. Omitted fields take the defaults.",
    allowed: 'a list such as [{"memoryMib": 512, "target": 4}]',
  }),
  poolMaxBoots: count.max(64).default(2).meta({ description: "Maximum number of instances that boot concurrently." }),
  poolMaxAgeMs: durationMs
    .default(3_600_000)
    .meta({ description: "Maximum age of a pooled instance before the node replaces it, in milliseconds." }),
  poolSweepMs: durationMs
    .default(15_000)
    .meta({ description: "How often the node checks pooled instances, in milliseconds." }),
  keepRecordsMs: durationMs
    .default(7 * 24 * 3_600_000)
    .meta({ description: "How long the node keeps the record of an ended sandbox, in milliseconds." }),
  mcp: z
    .strictObject({
      maxSessions: count
        .max(10_000)
        .default(100)
        .meta({ description: "Maximum number of concurrent MCP sessions per key." }),
      idleMs: durationMs.default(30 * 60_000).meta({
        description: "Idle timeout of an MCP session, in milliseconds. The sandboxes that it created end with it.",
      }),
      allowedHosts: z
        .array(z.string().refine((text) => URL.parse(`http://${text}`)?.hostname === text))
        .default([])
        .meta({
          description: "Host names that clients may use for /mcp, besides this machine's addresses and localhost.",
          allowed: "host names such as sandboxes.example.com, without a port",
          shownDefault: "any name, unless host is a loopback address",
        }),
    })
    .prefault({}),
  previews: z
    .strictObject({
      domain: z
        .string()
        .regex(/^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]*[a-z0-9])?(:\d{1,5})?$/)
        .max(200)
        .nullable()
        .default(null)
        .meta({
          description:
            "Domain of previews: a port of a sandbox is at <port>-<sandbox id>.<domain>. Its DNS needs a wildcard record that leads to the node, and the node or a proxy before it a wildcard certificate.",
          allowed: "a domain such as preview.example.com, in lower case, with a port unless it is that of the scheme",
        }),
      scheme: z.enum(["https", "http"]).default("https").meta({
        description: "Scheme of the URLs of previews below previews.domain.",
      }),
    })
    .prefault({}),
  store: z
    .string()
    .regex(/^(file:\/\/\/|(s3|gs):\/\/[^/])\S*$/)
    .nullable()
    .default(null)
    .meta({
      description: "Shared store for leases, checkpoints and keys. Nodes with the same store form a cluster.",
      allowed: "file:///directory, s3://bucket/prefix or gs://bucket/prefix",
    }),
  clusterSecret: z.string().min(16).max(1024).nullable().default(null).meta({
    description: "Secret with which the nodes of a cluster authenticate each other; the same on all nodes.",
    allowed: "at least 16 characters; 32 random bytes as text are better",
    shownDefault: "`cluster-secret` in home",
    isSecret: true,
  }),
  acceptedClusterSecrets: z.array(z.string().min(16).max(1024)).max(8).default([]).meta({
    description: "More secrets that the node accepts while the cluster's secret is being replaced.",
    allowed: "up to 8 secrets of at least 16 characters",
    isSecret: true,
  }),
  advertiseUrl: origin.nullable().default(null).meta({
    description:
      "URL at which the other nodes of the cluster reach this one. A node without one hands its sandboxes over instead of serving other nodes.",
    allowed: "a URL such as http://10.0.0.7:4747, without a path",
    shownDefault: "the address it listens on; none with 0.0.0.0, :: or port 0",
  }),
  leaseMs: durationMs.min(2000).default(15_000).meta({
    description: "Duration of a lease: how long a silent node keeps its sandboxes, in milliseconds.",
  }),
  maxSkewMs: z
    .int()
    .min(0)
    .max(60_000)
    .default(2000)
    .meta({ description: "Maximum clock difference between the nodes of the cluster, in milliseconds." }),
  drainMs: durationMs
    .default(9000)
    .meta({ description: "How long a stopping cluster node may take to save its sandboxes, in milliseconds." }),
  ship: z
    .strictObject({
      file: optionalPath.meta({
        description:
          "File to which the node appends audit entries, events and network records, one JSON object a line.",
      }),
      fileMaxMib: count.max(1024).default(100).meta({
        description: "Size at which the node rotates the file, in MiB.",
      }),
      fileCount: count.max(1000).default(10).meta({
        description: "How many files the node keeps: the current one and rotated ones, such as audit.jsonl.1.",
      }),
      syslog: z
        .string()
        .refine((text) => /^unix:\/\/\/[^\0]+$/.test(text) || isAddressWith(/^(udp|tcp):$/, text))
        .nullable()
        .default(null)
        .meta({
          description: "Syslog receiver of audit entries, events and network records, as RFC 5424.",
          allowed: "unix:///dev/log, udp://host:port or tcp://host:port; ports default to 514 and 601",
        }),
      otlp: z
        .string()
        .refine((text) => isAddressWith(/^https?:$/, text))
        .nullable()
        .default(null)
        .meta({
          description:
            "OpenTelemetry collector of audit entries, events and network records, over OTLP/HTTP; /v1/logs is appended.",
          allowed: "a URL such as http://localhost:4318",
        }),
      otlpHeaders: z
        .array(z.string().regex(/^[A-Za-z0-9-]+=[\x20-\x7e]+$/))
        .default([])
        .meta({
          description: "Headers of requests to the collector, for example its credential.",
          allowed: "name=value",
          isSecret: true,
        }),
    })
    .prefault({}),
  allowPrivateWebhooks: z.boolean().default(false).meta({
    description: "Allow webhooks to this machine and to private networks.",
  }),
});

/** As the operator writes it; every setting has a default. */
export type NodeConfigOptions = z.input<typeof nodeConfigSchema>;

/** Complete and checked. */
export type NodeConfig = z.output<typeof nodeConfigSchema> & { readonly imagesDir: string };
