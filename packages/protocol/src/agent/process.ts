import { z } from "zod";
import { windowSchema } from "./stream.ts";

/** Chosen by the caller, so that a repeated spawn after a lost answer does not start a second process. */
export const processIdSchema = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/);

const exitStatusSchema = z.object({
  /** Null when a signal ended the process. */
  exit_code: z.int().nullable(),
  /** For example "SIGKILL"; null unless a signal ended the process. */
  signal: z.string().nullable(),
  timed_out: z.boolean(),
  out_of_memory: z.boolean(),
});
export type ExitStatus = z.infer<typeof exitStatusSchema>;

export const processInfoSchema = z.object({
  process: processIdSchema,
  pid: z.int(),
  argv: z.array(z.string()),
  cwd: z.string(),
  user: z.string(),
  pty: z.boolean(),
  started_at_ms: z.int(),
  /** Oldest journal offset that can still be read. */
  start_offset: z.int(),
  /** Journal offset of the next byte of output. */
  end_offset: z.int(),
  /** Bytes of standard input accepted so far. */
  stdin_offset: z.int(),
  /** Null while the process runs. */
  status: exitStatusSchema.nullable(),
});
export type ProcessInfo = z.infer<typeof processInfoSchema>;

const size = { rows: z.int().min(1).max(65535), cols: z.int().min(1).max(65535) };
const env = z.record(z.string().regex(/^[^=\0]+$/), z.string());
const timeout = z.int().min(1);

/** At most one of argv, command and code. With none of them, it starts the sandbox's shell: $SHELL, bash or sh. */
const spawnParamsSchema = z.object({
  process: processIdSchema.optional(),
  argv: z.array(z.string()).min(1).optional(),
  /** Run by /bin/sh -c. */
  command: z.string().optional(),
  /** A source file already in the sandbox, run by its language's interpreter and removed when `ephemeral`. */
  code: z.object({ language: z.string(), path: z.string(), ephemeral: z.boolean().optional() }).optional(),
  cwd: z.string().optional(),
  env: env.optional(),
  /** A name of /etc/passwd, or "uid" or "uid:gid". */
  user: z.string().optional(),
  /** True: a pipe fed by process.stdin; false or absent: /dev/null. Ignored with a pty, which always has input. */
  stdin: z.boolean().optional(),
  pty: z.object(size).optional(),
  /** After this time the whole process tree is killed, and the status has timed_out. */
  timeout_ms: timeout.optional(),
  /** How much output is kept for later readers; older bytes are dropped. */
  journal_bytes: z.int().min(4096).optional(),
});
export type SpawnParams = z.infer<typeof spawnParamsSchema>;

const one = z.object({ process: processIdSchema });
const empty = z.object({});

const execParams = {
  cwd: z.string().optional(),
  env: env.optional(),
  user: z.string().optional(),
  stdin: z.string().optional(),
  timeout_ms: timeout.optional(),
};
/** Text, decoded leniently; for bytes or streams use process.spawn. */
const execResult = z.object({
  /** 128 + signal number when a signal ended it. */
  exit_code: z.int(),
  stdout: z.string(),
  stderr: z.string(),
  signal: z.string().nullable(),
  timed_out: z.boolean(),
  out_of_memory: z.boolean(),
  /** True if the output was longer than one answer; its end is missing. */
  truncated: z.boolean(),
});

export const processMethods = {
  exec: { params: z.object({ cmd: z.string(), ...execParams }), result: execResult },
  exec_code: {
    params: z.object({ lang: z.string(), code: z.string(), ...execParams }),
    result: execResult,
  },
  "process.spawn": { params: spawnParamsSchema, result: z.object({ process: processIdSchema, pid: z.int() }) },
  /** Streams the journal from `offset`; answered when the process has exited and all its output is sent. */
  "process.output": {
    params: z.object({ process: processIdSchema, offset: z.int().min(0).optional(), window: windowSchema }),
    result: z.object({ offset: z.int() }),
  },
  /** Carries bytes; answered when the process's pipe has accepted them. Bytes below stdin_offset are skipped. */
  "process.stdin": {
    params: z.object({ process: processIdSchema, offset: z.int().min(0).optional(), close: z.boolean().optional() }),
    result: z.object({ offset: z.int() }),
  },
  "process.signal": {
    params: z.object({ process: processIdSchema, signal: z.string(), target: z.enum(["process", "tree"]).optional() }),
    result: empty,
  },
  "process.resize": { params: z.object({ process: processIdSchema, ...size }), result: empty },
  "process.wait": {
    params: one,
    result: z.object({ status: exitStatusSchema, duration_ms: z.number(), end_offset: z.int() }),
  },
  "process.list": { params: empty, result: z.object({ processes: z.array(processInfoSchema) }) },
  /** Drops the record and journal of a process that has exited. */
  "process.forget": { params: one, result: empty },
} as const;
