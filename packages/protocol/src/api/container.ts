import { z } from "zod";

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

/** Options for providers of containers; other providers refuse them. */
export const containerSchema = z
  .strictObject({
    /** Sandboxes of one project share its caches. */
    project: projectNameSchema,
    /** `missing`, the default, uses an existing image; `always` asks the registry first. */
    imagePullPolicy: z.enum(["missing", "always", "never"]),
    /** `none`, the default; `bridge`, or another network that the node's operator allows. */
    network: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/),
    /** Ports inside that are published on the engine's loopback; the engine chooses the port of each. */
    ports: z.array(z.int().min(1).max(65_535)).max(64),
    /** Directories that sandboxes of the same project share. */
    caches: z.array(z.strictObject({ name: cacheNameSchema, path: insidePath })).max(16),
    /** Directories of the engine's machine that the node's operator allows. */
    binds: z
      .array(z.strictObject({ source: hostPath, target: insidePath, isReadOnly: z.boolean().default(true) }))
      .max(16),
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
