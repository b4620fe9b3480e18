import { z } from "zod";
import { labelsSchema } from "./names.ts";

/** An image reference that `docker pull` accepts. */
const REFERENCE = /^[A-Za-z0-9](?:[A-Za-z0-9_-]|[./:@](?![./:@])){0,254}$/;

/** "host", the name of an image of the node, or for providers of containers a reference such as python:3.13-slim. */
export const imageSchema = z.string().regex(REFERENCE).meta({
  description: '"host", the name of an image of the node, or for containers a reference such as python:3.13.',
});

export const cacheNameSchema = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,62}$/);
/** Shorter than other names, because a node adds the tenant as a prefix. */
export const projectNameSchema = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,39}$/);
const insidePath = z
  .string()
  .max(1024)
  .regex(/^(?:\/(?!\.{1,2}(?:\/|$))[^/\0:]+)+$/);
const hostPath = z
  .string()
  .max(1024)
  .regex(/^\/[^\0:]*$/);
/** Neither an option of git or a shell, nor a path of the host. */
const gitUrl = z
  .string()
  .max(2048)
  .regex(/^(?:https?|git|ssh):\/\/[^\s\0]+$/);

/** The name that the engine gave to a volume that a destroyed sandbox left. */
export const volumeNameSchema = z.string().regex(/^sandpiper-(?:data|workspace)-[0-9a-f-]{36}$/);

const portNumber = z.int().min(1).max(65_535);
const publishedPortSchema = z
  .strictObject({
    /** The port inside. */
    container: portNumber,
    /** A port of the engine's machine that the node's operator allows; the engine chooses one if omitted. */
    host: portNumber.optional(),
    /** `tcp`, the default, or `udp`. */
    protocol: z.enum(["tcp", "udp"]).optional(),
    /** An address of the engine's machine that the node's operator allows; 127.0.0.1 if omitted. */
    address: z.union([z.ipv4(), z.ipv6()]).optional(),
  })
  .meta({ id: "PublishedPort" });

/** Docker reserves these for itself, and Docker Compose removes containers that carry its labels. */
const ENGINE_LABEL = /^(?:com\.docker|io\.docker|org\.dockerproject)\./;

/** Options for providers of containers; other providers refuse them. */
export const containerSchema = z
  .strictObject({
    /** Sandboxes of one project share its caches. */
    project: projectNameSchema,
    /** `missing`, the default, uses an existing image; `always` asks the registry first. */
    imagePullPolicy: z.enum(["missing", "always", "never"]),
    /** `none`, the default; `bridge`, or another network that the node's operator allows. */
    network: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/),
    /** Ports inside that are published. A number is a TCP port at a free loopback port of the engine's machine. */
    ports: z
      .array(z.union([portNumber, publishedPortSchema]))
      .max(64)
      .refine((ports) => new Set(ports.map(portKey)).size === ports.length, {
        error: "the same port inside appears twice",
      }),
    /** Labels of the container for other programs that use the engine. */
    labels: labelsSchema.refine((labels) => !Object.keys(labels).some((key) => ENGINE_LABEL.test(key)), {
      error: 'keys that start with "com.docker.", "io.docker." and "org.dockerproject." are reserved',
    }),
    /** Runs the image's own entrypoint and command as process `service`, next to the agent. */
    service: z.strictObject({
      /** `on-failure`, the default, starts it again after a non-zero exit. */
      restart: z.enum(["always", "on-failure", "never"]).optional(),
    }),
    /** Directories that sandboxes of the same project share. */
    caches: z.array(z.strictObject({ name: cacheNameSchema, path: insidePath })).max(16),
    /** Directories of the engine's machine that the node's operator allows. */
    binds: z
      .array(z.strictObject({ source: hostPath, target: insidePath, isReadOnly: z.boolean().default(true) }))
      .max(16),
    /** Kept volumes of destroyed sandboxes, mounted where they were or at another path. */
    volumes: z.array(z.strictObject({ name: volumeNameSchema, path: insidePath.optional() })).max(16),
    /** The content of /workspace: such a directory, or a repository that is cloned inside. It survives rebuilds. */
    workspace: z.union([
      z.strictObject({ path: hostPath }),
      z.strictObject({
        git: gitUrl,
        ref: z
          .string()
          .regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,254}$/)
          .optional(),
      }),
    ]),
    /** The image is read-only; /tmp, /run, /.data, /workspace and caches stay writable. */
    isRootReadOnly: z.boolean(),
  })
  .partial()
  .meta({ id: "Container" });

/** Longer than the connections of most clients last. */
const MAX_STOP_MS = 600_000;

export const stopSandboxBodySchema = z
  .strictObject({
    /** How long its processes have to end after SIGTERM, before SIGKILL; the default is 10 seconds. */
    timeoutMs: z.int().min(0).max(MAX_STOP_MS),
  })
  .partial()
  .meta({ id: "StopSandbox" });

export type StopSandboxBody = z.infer<typeof stopSandboxBodySchema>;
export type ContainerBody = z.infer<typeof containerSchema>;

/** How `addresses` and the engine name a port inside; `3000` or `53/udp`. */
export function portKey(
  port: number | { readonly container: number; readonly protocol?: "tcp" | "udp" | undefined },
): string {
  const { container, protocol } = typeof port === "number" ? { container: port, protocol: undefined } : port;
  return protocol === "udp" ? `${container}/udp` : `${container}`;
}
