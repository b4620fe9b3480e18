import { z } from "zod";
import { windowSchema } from "./stream.ts";

const fileKindSchema = z.enum(["file", "directory", "symlink", "fifo", "socket", "block_device", "char_device"]);

/** The answer of file.stat, and one line of a file.list stream. */
export const fileInfoSchema = z.object({
  /** Absolute in file.stat; relative to the listed directory in file.list. */
  path: z.string(),
  kind: fileKindSchema,
  size: z.int(),
  /** Permission bits, 0…0o7777. */
  mode: z.int(),
  uid: z.int(),
  gid: z.int(),
  modified_at_ms: z.number(),
  /** Symlinks only. */
  target: z.string().optional(),
});
export type FileInfo = z.infer<typeof fileInfoSchema>;

/** One line of a file.watch stream. The first line is always `ready`. */
export const watchEventSchema = z.object({
  kind: z.enum(["ready", "create", "write", "remove", "rename", "chmod", "overflow"]),
  /** Relative to the watched directory; empty for the watched path itself. */
  path: z.string(),
  /** rename only: the new path. */
  to: z.string().optional(),
});
export type WatchEvent = z.infer<typeof watchEventSchema>;

/** Relative paths start at the default user's home directory. */
const path = z.string().min(1).max(4096);
const mode = z.int().min(0).max(0o7777);
const empty = z.object({});

export const fileMethods = {
  /** Text of at most half a line's limit; for anything else use file.read. */
  read_file: { params: z.object({ path }), result: z.object({ content: z.string() }) },
  write_file: { params: z.object({ path, content: z.string() }), result: z.object({ success: z.literal(true) }) },
  list_dir: {
    params: z.object({ path }),
    result: z.object({ entries: z.array(z.object({ name: z.string(), is_dir: z.boolean(), size: z.int() })) }),
  },
  "file.stat": {
    /** `follow` false describes a symlink itself. */
    params: z.object({ path, follow: z.boolean().optional() }),
    result: fileInfoSchema,
  },
  /** Streams FileInfo as JSON lines, sorted by path. depth 1 = the directory's own entries (default), 0 = no limit. */
  "file.list": {
    params: z.object({ path, depth: z.int().min(0).optional(), window: windowSchema }),
    result: z.object({ count: z.int() }),
  },
  "file.mkdir": {
    params: z.object({ path, parents: z.boolean().optional(), mode: mode.optional(), owner: z.string().optional() }),
    result: z.object({ created: z.boolean() }),
  },
  "file.move": {
    params: z.object({ from: path, to: path, overwrite: z.boolean().optional() }),
    result: empty,
  },
  "file.remove": {
    params: z.object({ path, recursive: z.boolean().optional(), missing_ok: z.boolean().optional() }),
    result: empty,
  },
  "file.chmod": { params: z.object({ path, mode, recursive: z.boolean().optional() }), result: empty },
  /** Streams the file's bytes; `size` is how many were sent. */
  "file.read": {
    params: z.object({
      path,
      offset: z.int().min(0).optional(),
      length: z.int().min(0).optional(),
      window: windowSchema,
    }),
    result: z.object({ size: z.int() }),
  },
  /**
   * Writes stream.data until stream.end to a temporary file that then replaces `path`: a reader sees the old file or
   * the new one, never a part. Missing parents are created. A replaced file keeps its mode and owner by default; a new
   * file gets 0644 and the default user.
   */
  "file.write": {
    params: z.object({ path, mode: mode.optional(), owner: z.string().optional() }),
    result: z.object({ size: z.int() }),
  },
  /** Streams WatchEvent as JSON lines until canceled. */
  "file.watch": {
    params: z.object({ path, recursive: z.boolean().optional(), window: windowSchema }),
    result: empty,
  },
} as const;
