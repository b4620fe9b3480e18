import { z } from "zod";
import { instantSchema, queryFlagSchema, queryNumberSchema, sandboxPathSchema } from "./names.ts";

const modeSchema = z.int().min(0).max(0o7777);
const octal = z
  .string()
  .regex(/^[0-7]{1,4}$/)
  .transform((text) => Number.parseInt(text, 8));
const ownerSchema = z.string().min(1).max(128);

export const fileEntrySchema = z
  .strictObject({
    /** Absolute; in a list relative to the listed directory. */
    path: z.string(),
    kind: z.enum(["file", "directory", "symlink", "fifo", "socket", "block_device", "char_device"]),
    sizeBytes: z.int(),
    mode: modeSchema,
    uid: z.int(),
    gid: z.int(),
    modifiedAt: instantSchema,
    /** Symlinks only. */
    target: z.string().nullable(),
  })
  .meta({ id: "FileEntry" });

export const fileListSchema = z.strictObject({ items: z.array(fileEntrySchema) }).meta({ id: "FileList" });

export const pathQuerySchema = z.strictObject({ path: sandboxPathSchema });

/** Equivalent to a `Range` header. */
export const readFileQuerySchema = z.strictObject({
  path: sandboxPathSchema,
  offset: queryNumberSchema.optional(),
  lengthBytes: queryNumberSchema.optional(),
});

export const writeFileQuerySchema = z.strictObject({
  path: sandboxPathSchema,
  /** Octal, such as 755. */
  mode: octal.optional(),
  owner: ownerSchema.optional(),
});

export const statFileQuerySchema = z.strictObject({ path: sandboxPathSchema, follow: queryFlagSchema.optional() });

export const listFilesQuerySchema = z.strictObject({
  path: sandboxPathSchema,
  /** 1: the directory's own entries; 0: no limit. */
  depth: queryNumberSchema.optional(),
});

export const removeFileQuerySchema = z.strictObject({
  path: sandboxPathSchema,
  recursive: queryFlagSchema.optional(),
  missingOk: queryFlagSchema.optional(),
});

export const watchFilesQuerySchema = z.strictObject({ path: sandboxPathSchema, recursive: queryFlagSchema.optional() });

export const makeDirectoryBodySchema = z
  .strictObject({
    path: sandboxPathSchema,
    parents: z.boolean().optional(),
    mode: modeSchema.optional(),
    owner: ownerSchema.optional(),
  })
  .meta({ id: "MakeDirectory" });

export const makeDirectoryResultSchema = z.strictObject({ created: z.boolean() }).meta({ id: "MakeDirectoryResult" });

export const moveFileBodySchema = z
  .strictObject({ from: sandboxPathSchema, to: sandboxPathSchema, overwrite: z.boolean().optional() })
  .meta({ id: "MoveFile" });

export const changeModeBodySchema = z
  .strictObject({ path: sandboxPathSchema, mode: modeSchema, recursive: z.boolean().optional() })
  .meta({ id: "ChangeMode" });

export const writeResultSchema = z.strictObject({ sizeBytes: z.int() }).meta({ id: "WriteResult" });

export const fileEventSchema = z
  .strictObject({
    /** `overflow` means that changes were missed: read the directory again. */
    kind: z.enum(["create", "write", "remove", "rename", "chmod", "overflow"]),
    /** Relative to the watched path; empty for the watched path itself. */
    path: z.string(),
    /** rename only: the new path. */
    to: z.string().nullable(),
  })
  .meta({ id: "FileEvent" });

export const sandboxMetricsSchema = z
  .strictObject({
    /** CPU time used by everything in the sandbox since boot. */
    cpuMs: z.number(),
    memoryUsedBytes: z.number(),
    memoryTotalBytes: z.number(),
    diskUsedBytes: z.number(),
    diskTotalBytes: z.number(),
    processes: z.int(),
    uptimeMs: z.number(),
  })
  .meta({ id: "SandboxMetrics" });

export type FileEntryBody = z.infer<typeof fileEntrySchema>;
export type FileEventBody = z.infer<typeof fileEventSchema>;
export type SandboxMetricsBody = z.infer<typeof sandboxMetricsSchema>;
