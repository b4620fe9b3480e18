import { homedir } from "node:os";
import { join } from "node:path";
import { imageSchema, setPoolBodySchema } from "@sandpiper/protocol";
import { z } from "zod";

const absolutePath = z.string().regex(/^\/[^\0]*$/);
const count = z.int().min(1);
const durationMs = z
  .int()
  .min(1)
  .max(365 * 24 * 3_600_000);
const lifetime = durationMs.nullable().default(null);

/**
 * Everything that can be set on a node. The names of flags and environment variables, the texts of errors and the
 * reference in docs/configuration.md are all made from this: a new key needs no other place.
 */
export const nodeConfigSchema = z.strictObject({
  host: z
    .string()
    .regex(/^[^\s/\0]+$/)
    .default("127.0.0.1")
    .meta({ description: "Address to listen on.", allowed: "a host name or an IP address" }),
  port: z.int().min(0).max(65_535).default(4747).meta({ description: "Port to listen on; 0 takes a free one." }),
  home: absolutePath
    .default(() => join(homedir(), ".sandpiper"))
    .meta({
      description: "Where everything is kept: sandboxes, records, keys.",
      allowed: "an absolute path",
      shownDefault: "~/.sandpiper",
    }),
  logLevel: z
    .enum(["silent", "fatal", "error", "warn", "info", "debug", "trace"])
    .default("info")
    .meta({ description: "The least important lines that are logged." }),
  logFormat: z
    .enum(["auto", "json", "pretty"])
    .default("auto")
    .meta({ description: "How lines are logged; auto is pretty on a terminal and JSON elsewhere." }),
  tls: z
    .strictObject({
      certFile: absolutePath.nullable().default(null).meta({
        description: "PEM file with the certificate and its chain; turns HTTPS on, together with the key.",
        allowed: "an absolute path",
      }),
      keyFile: absolutePath.nullable().default(null).meta({
        description: "PEM file with the certificate's private key.",
        allowed: "an absolute path",
      }),
    })
    .prefault({}),
  allowInsecure: z.boolean().default(false).meta({
    description: "Listen beyond this machine without TLS. Keys then cross the network in the clear.",
  }),
  corsOrigins: z
    .array(z.string().refine((text) => /^https?:/.test(text) && URL.parse(text)?.origin === text))
    .default([])
    .meta({
      description: "Web pages of these origins may call the node.",
      allowed: "origins such as https://app.example.com, without a path",
    }),
  bodyLimitBytes: z
    .int()
    .min(1024)
    .default(16 * 1024 * 1024)
    .meta({ description: "The largest JSON body that is read. Files are streamed and have no such limit." }),
  stopGraceMs: z
    .int()
    .min(0)
    .max(600_000)
    .default(5000)
    .meta({ description: "How long requests under way may go on when the node stops." }),
  maxSandboxes: z
    .int()
    .min(0)
    .default(1000)
    .meta({ description: "How many sandboxes there may be at once, all tenants together; 0 for no limit." }),
  imagesDir: absolutePath.nullable().default(null).meta({
    description: "Directory with the root filesystems that sandboxes may name as their image.",
    allowed: "an absolute path",
    shownDefault: "`images` in home",
  }),
  defaultProvider: z
    .enum(["gvisor", "qemu", "firecracker", "docker", "vm-docker", "local"])
    .default("gvisor")
    .meta({ description: "What runs sandboxes that name no provider; local isolates nothing." }),
  providers: z
    .array(z.enum(["gvisor", "qemu", "firecracker", "docker", "vm-docker", "local"]))
    .default([])
    .meta({
      description: "What sandboxes may name as their provider beside the default one. Every key may name any of them.",
      allowed: "a list of gvisor, qemu, firecracker, docker, vm-docker; local only as the default provider",
    }),
  docker: z
    .strictObject({
      url: z
        .string()
        .regex(/^(?:unix:\/\/\/|tcp:\/\/|https?:\/\/)\S+$/)
        .nullable()
        .default(null)
        .meta({
          description: "Where the container engine listens.",
          allowed: "unix:///path, tcp://host:port, http:// or https://",
          shownDefault: "as DOCKER_HOST, the docker context or the usual sockets say",
        }),
      image: imageSchema
        .default("python:3.13-slim")
        .meta({ description: "Image of containers that name none.", allowed: "a reference such as python:3.13-slim" }),
      allowedPaths: z.array(absolutePath).default([]).meta({
        description: "Directories of the engine's machine that sandboxes may mount, with all that is below them.",
        allowed: "absolute paths",
      }),
      networks: z
        .array(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/))
        .default(["bridge"])
        .meta({
          description: "Networks that sandboxes may ask for; without asking they have none.",
          allowed: "names of networks of the engine",
        }),
      runtime: z
        .string()
        .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/)
        .nullable()
        .default(null)
        .meta({
          description: "Runtime of the engine that runs containers.",
          allowed: "the name of a runtime of the engine",
          shownDefault: "runsc where the engine has it, else the engine's own",
        }),
    })
    .prefault({}),
  qemu: z
    .strictObject({
      prepared: z.int().min(0).max(64).default(0).meta({
        description: "How many prepared virtual machines the provider keeps for each shape that sandboxes have used.",
        allowed: "a whole number from 0 to 64",
      }),
    })
    .prefault({}),
  vmDocker: z
    .strictObject({
      images: z.array(absolutePath).default([]).meta({
        description: "Files written by `docker save`, whose images every project's machine has.",
        allowed: "absolute paths",
      }),
      machineImage: absolutePath.nullable().default(null).meta({
        description: "What machines are made of on macOS (a disk) and Windows (an archive).",
        allowed: "an absolute path",
        shownDefault: "on Linux the image that set-up builds",
      }),
      memoryMib: count.default(2048).meta({ description: "Memory of a project's machine, in MiB." }),
      vcpuCount: count.default(2).meta({ description: "Processors of a project's machine." }),
      diskMib: count.default(20_480).meta({ description: "Disk of a project's machine, in MiB." }),
      idleMs: durationMs.default(30 * 60_000).meta({
        description: "A machine without sandboxes stops after this, in milliseconds.",
      }),
    })
    .prefault({}),
  defaults: z
    .strictObject({
      memoryMib: count.default(256).meta({ description: "Memory of a sandbox that says nothing else, in MiB." }),
      vcpuCount: z
        .number()
        .positive()
        .refine((value) => Math.abs(value * 100 - Math.round(value * 100)) < 1e-6)
        .default(2)
        .meta({
          description: "How many CPUs' worth of time it may use.",
          allowed: "a number above 0 with at most two decimals",
        }),
      diskMib: count.default(1024).meta({ description: "How much it may write to its disk, in MiB." }),
      maxProcesses: count.default(256).meta({ description: "How many processes it may have at once." }),
      ttlMs: lifetime.meta({ description: "How long it lives after its creation, in milliseconds." }),
      idleTimeoutMs: lifetime.meta({ description: "How long it may be idle, in milliseconds." }),
      timeoutMs: lifetime.meta({ description: "Time limit of its commands, in milliseconds." }),
    })
    .prefault({}),
  pools: z.array(setPoolBodySchema).default([]).meta({
    description: "Instances to keep ready, for each key how many; what a key leaves out is taken from the defaults.",
    allowed: 'a list such as [{"memoryMib": 512, "target": 4}]',
  }),
  poolMaxBoots: count.max(64).default(2).meta({ description: "How many instances boot at the same time." }),
  poolMaxAgeMs: durationMs
    .default(3_600_000)
    .meta({ description: "A ready instance older than this is replaced, in milliseconds." }),
  poolSweepMs: durationMs
    .default(15_000)
    .meta({ description: "How often ready instances are looked after, in milliseconds." }),
  keepRecordsMs: durationMs
    .default(7 * 24 * 3_600_000)
    .meta({ description: "How long a sandbox that has ended can still be looked up, in milliseconds." }),
  mcp: z
    .strictObject({
      maxSessions: count
        .max(10_000)
        .default(100)
        .meta({ description: "How many MCP sessions one key may have at once." }),
      idleMs: durationMs.default(30 * 60_000).meta({
        description: "An MCP session that nobody uses ends after this, with the sandboxes it made, in milliseconds.",
      }),
      allowedHosts: z
        .array(z.string().refine((text) => URL.parse(`http://${text}`)?.hostname === text))
        .default([])
        .meta({
          description: "Names by which clients reach /mcp, beside this machine's addresses and localhost.",
          allowed: "host names such as sandboxes.example.com, without a port",
          shownDefault: "any, unless host is of this machine alone",
        }),
    })
    .prefault({}),
  store: z
    .string()
    .regex(/^(file:\/\/\/|s3:\/\/[^/])\S*$/)
    .nullable()
    .default(null)
    .meta({
      description: "What nodes share: leases, checkpoints, keys. Nodes with the same store are one cluster.",
      allowed: "file:///directory or s3://bucket/prefix",
    }),
  clusterSecret: z.string().min(16).max(1024).nullable().default(null).meta({
    description: "What the nodes of a cluster know of each other by; the same on all of them.",
    allowed: "at least 16 characters, better 32 random bytes as text",
    shownDefault: "`cluster-secret` in home",
    isSecret: true,
  }),
  advertiseUrl: z
    .string()
    .refine((text) => /^https?:/.test(text) && URL.parse(text)?.origin === text)
    .nullable()
    .default(null)
    .meta({
      description: "Where the other nodes of the cluster reach this one.",
      allowed: "a URL such as http://10.0.0.7:4747, without a path",
      shownDefault: "where it listens",
    }),
  leaseMs: durationMs.min(2000).default(15_000).meta({
    description: "How long a node that has gone silent keeps its sandboxes to itself, in milliseconds.",
  }),
  maxSkewMs: z
    .int()
    .min(0)
    .max(60_000)
    .default(2000)
    .meta({ description: "How far the clocks of the cluster's nodes may be apart, in milliseconds." }),
  drainMs: durationMs
    .default(9000)
    .meta({ description: "How long a node of a cluster that stops may take to save its sandboxes, in milliseconds." }),
  allowPrivateWebhooks: z.boolean().default(false).meta({
    description: "Webhooks may call addresses of this machine and of private networks.",
  }),
});

/** What may be said; everything has a default. */
export type NodeConfigOptions = z.input<typeof nodeConfigSchema>;

/** Complete and checked. */
export type NodeConfig = z.output<typeof nodeConfigSchema> & { readonly imagesDir: string };
