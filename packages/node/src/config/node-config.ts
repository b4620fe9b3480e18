import { homedir } from "node:os";
import { join } from "node:path";
import { imageSchema, setPoolBodySchema } from "@sandpiper/protocol";
import { z } from "zod";

const absolutePath = z
  .string()
  .regex(/^\/[^\0]*$/)
  .meta({ allowed: "an absolute path" });
const optionalPath = absolutePath.nullable().default(null);
const origin = z.string().refine((text) => /^https?:/.test(text) && URL.parse(text)?.origin === text);
const gitHost = z.string().refine((text) => URL.parse(`https://${text}`)?.host === text);
const providerName = z.enum(["gvisor", "qemu", "firecracker", "docker", "vm-docker", "local"]);
const engineName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/);
const count = z.int().min(1);
const durationMs = z
  .int()
  .min(1)
  .max(365 * 24 * 3_600_000);
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
  docker: z
    .strictObject({
      url: z
        .string()
        .regex(/^(?:unix:\/\/\/|tcp:\/\/|https?:\/\/)\S+$/)
        .nullable()
        .default(null)
        .meta({
          description: "Address of the container engine.",
          allowed: "unix:///path, tcp://host:port, http:// or https://",
          shownDefault: "from DOCKER_HOST, the docker context or the usual sockets",
        }),
      image: imageSchema.default("python:3.13-slim").meta({
        description: "Image of containers that do not name one.",
        allowed: "a reference such as python:3.13-slim",
      }),
      allowedPaths: z.array(absolutePath).default([]).meta({
        description: "Directories on the engine's machine that sandboxes can mount, including their subdirectories.",
        allowed: "absolute paths",
      }),
      networks: z.array(engineName).default(["bridge"]).meta({
        description: "Networks that sandboxes can join. A sandbox that does not ask for one has no network.",
        allowed: "names of networks of the engine",
      }),
      hostPorts: z
        .array(z.string().regex(/^\d{1,5}(?:-\d{1,5})?$/))
        .default([])
        .meta({
          description:
            "Ports of the engine's machine that sandboxes can choose. Every key can use them. The default allows none: the engine chooses free ports.",
          allowed: "ports and ranges, such as 8080 and 9000-9100",
        }),
      hostAddresses: z
        .array(z.union([z.ipv4(), z.ipv6()]))
        .default([])
        .meta({
          description: "Addresses of the engine's machine at which sandboxes can publish ports, besides 127.0.0.1.",
          allowed: "IP addresses; 0.0.0.0 for all",
        }),
      runtime: engineName.nullable().default(null).meta({
        description: "The engine's runtime for containers.",
        allowed: "the name of a runtime of the engine",
        shownDefault: "runsc if the engine has it, otherwise the engine's default",
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
  firecracker: z
    .strictObject({
      kernel: optionalPath.meta({
        description: "Kernel of the virtual machines, unpacked or packed with LZ4, gzip or zstd.",
        shownDefault: "the kernel that set-up downloads",
      }),
      bootTimeoutMs: durationMs.default(10_000).meta({
        description: "How long the guest that checks KVM may take to boot, in milliseconds.",
      }),
    })
    .prefault({}),
  connectTimeoutMs: durationMs.default(10_000).meta({
    description: "How long a sandbox's agent may take to answer after the sandbox starts, in milliseconds.",
  }),
  vmDocker: z
    .strictObject({
      images: z.array(absolutePath).default([]).meta({
        description: "Files written by `docker save`; every project's machine loads their images.",
        allowed: "absolute paths",
      }),
      allowedPaths: z.array(absolutePath).default([]).meta({
        description: "Directories of this host that sandboxes can copy as their workspace, including subdirectories.",
        allowed: "absolute paths",
      }),
      gitHosts: z.array(gitHost).default([]).meta({
        description:
          "Hosts of repositories that may have a private address or use http. Public hosts with https are always allowed.",
        allowed: "host names, with :port unless it is the usual one",
      }),
      workspaceMib: count.default(2048).meta({ description: "Maximum size of a workspace, in MiB." }),
      imageCacheMib: z.int().min(0).default(20_480).meta({
        description: "How much of the images that it pulled the node keeps for the machines of other projects, in MiB.",
      }),
      machineImage: optionalPath.meta({
        description:
          "Root filesystem of the machines: on Linux a directory, an ext4 image or an archive; on macOS a disk; on Windows an archive.",
        shownDefault: "on Linux, the one that set-up builds",
      }),
      kernel: optionalPath.meta({ description: "Kernel of the machines (Linux).", shownDefault: "Debian's" }),
      initrd: optionalPath.meta({
        description: "Initramfs of the machines (Linux), with the modules of `kernel`. Sandpiper adds its agent.",
        shownDefault: "the modules of Debian's kernel",
      }),
      volumesMib: count.default(20_480).meta({
        description: "Disk of a project's volumes and caches, in MiB. It outlives the machine if it has caches.",
      }),
      memoryMib: count.default(2048).meta({ description: "Memory of a project's machine, in MiB." }),
      vcpuCount: count.default(2).meta({ description: "CPUs of a project's machine." }),
      diskMib: count.default(20_480).meta({ description: "Disk of a project's machine, in MiB." }),
      idleMs: z
        .int()
        .min(0)
        .default(30 * 60_000)
        .meta({
          description:
            "How long a machine without sandboxes keeps running, in milliseconds; 0 stops it with its last sandbox.",
        }),
    })
    .prefault({}),
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
    })
    .prefault({}),
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
  allowPrivateWebhooks: z.boolean().default(false).meta({
    description: "Allow webhooks to this machine and to private networks.",
  }),
});

/** As the operator writes it; every setting has a default. */
export type NodeConfigOptions = z.input<typeof nodeConfigSchema>;

/** Complete and checked. */
export type NodeConfig = z.output<typeof nodeConfigSchema> & { readonly imagesDir: string };
