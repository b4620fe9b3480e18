import { z } from "zod";
import { processIdSchema } from "../agent/process.ts";
import {
  durationMsSchema,
  envSchema,
  instantSchema,
  isWithinBytes,
  queryFlagSchema,
  queryNumberSchema,
} from "./names.ts";

/** A message of the socket, which carries code as JSON, may be four times as long. */
export const MAX_CODE_BYTES = 4 * 1024 * 1024;
/** What Linux accepts for all arguments of a program together. */
const MAX_ARGUMENT_BYTES = 2 * 1024 * 1024;
const MAX_ARGUMENTS = 128 * 1024;
/** As large as a body by default. Larger input is streamed. */
const MAX_STDIN_CHARS = 16 * 1024 * 1024;

const commandFields = {
  /** Run by /bin/sh. */
  command: z.string().min(1).max(MAX_ARGUMENT_BYTES).optional(),
  /** A program and its arguments, which no shell interprets. */
  argv: z
    .array(z.string().max(MAX_ARGUMENT_BYTES))
    .min(1)
    .max(MAX_ARGUMENTS)
    .refine((argv) => isWithinBytes(argv, MAX_ARGUMENT_BYTES), {
      error: `longer than ${MAX_ARGUMENT_BYTES} bytes in total; write large arguments to a file`,
    })
    .optional(),
  /** Source code, which the interpreter of its language runs from a file; standard input stays free. */
  code: z
    .string()
    .max(MAX_CODE_BYTES)
    .refine((code) => isWithinBytes([code], MAX_CODE_BYTES), { error: `longer than ${MAX_CODE_BYTES} bytes` })
    .optional(),
  /** The language of `code`: python, javascript, typescript, bash or sh. The default is the sandbox's language. */
  language: z.string().min(1).max(128).optional(),
  cwd: z.string().min(1).max(4096).optional(),
  env: envSchema.optional(),
  user: z.string().min(1).max(128).optional(),
  timeoutMs: durationMsSchema.optional(),
};

interface ProgramFields {
  readonly command?: string | undefined;
  readonly argv?: readonly string[] | undefined;
  readonly code?: string | undefined;
  readonly language?: string | undefined;
}

function hasOneProgram({ command, argv, code }: ProgramFields): boolean {
  return [command, argv, code].filter((given) => given !== undefined).length === 1;
}
const oneProgram = { error: "give one of command, argv and code" };

function hasCodeForLanguage({ code, language }: ProgramFields): boolean {
  return language === undefined || code !== undefined;
}
const codeForLanguage = { error: "language needs code", path: ["language"] };

function hasAtMostOneProgram({ command, argv, code }: ProgramFields): boolean {
  return [command, argv, code].filter((given) => given !== undefined).length <= 1;
}
const atMostOneProgram = { error: "give one of command, argv and code; without them, the sandbox's shell starts" };

export const execBodySchema = z
  .strictObject({
    ...commandFields,
    /** Sent to standard input, which then ends. */
    stdin: z.string().max(MAX_STDIN_CHARS).optional(),
  })
  .refine(hasOneProgram, oneProgram)
  .refine(hasCodeForLanguage, codeForLanguage)
  .meta({ id: "Exec" });

export const execResultSchema = z
  .strictObject({
    /** 128 + the signal's number when a signal ended it. */
    exitCode: z.int(),
    signal: z.string().nullable(),
    stdout: z.string(),
    stderr: z.string(),
    durationMs: z.number(),
    timedOut: z.boolean(),
    outOfMemory: z.boolean(),
    /** True if the output was longer than one answer; its end is missing. */
    truncated: z.boolean(),
  })
  .meta({ id: "ExecResult" });

export const terminalSizeSchema = z.strictObject({
  rows: z.int().min(1).max(65_535),
  cols: z.int().min(1).max(65_535),
});

/** Without command, argv and code, it starts the sandbox's shell: $SHELL, bash or sh. */
export const startProcessBodySchema = z
  .strictObject({
    /** Chosen by the caller, so that a retry does not start a second process. */
    process: processIdSchema.optional(),
    ...commandFields,
    /** If true, later requests send its standard input, which is empty otherwise. */
    stdin: z.boolean().optional(),
    pty: terminalSizeSchema.optional(),
    /** How much output the agent keeps for later readers. */
    journalBytes: z.int().min(1).optional(),
  })
  .refine(hasAtMostOneProgram, atMostOneProgram)
  .refine(hasCodeForLanguage, codeForLanguage)
  .meta({ id: "StartProcess" });

export const processExitSchema = z
  .strictObject({
    exitCode: z.int(),
    signal: z.string().nullable(),
    timedOut: z.boolean(),
    outOfMemory: z.boolean(),
    durationMs: z.number(),
  })
  .meta({ id: "ProcessExit" });

export const processResourceSchema = z
  .strictObject({
    id: processIdSchema,
    pid: z.int(),
    argv: z.array(z.string()),
    cwd: z.string(),
    user: z.string(),
    hasPty: z.boolean(),
    startedAt: instantSchema,
    /** Oldest offset of its output that can still be read. */
    startOffset: z.int(),
    /** Offset of its next byte of output. */
    endOffset: z.int(),
    isRunning: z.boolean(),
    exitCode: z.int().nullable(),
    signal: z.string().nullable(),
  })
  .meta({ id: "Process" });

export const processListSchema = z.strictObject({ items: z.array(processResourceSchema) }).meta({ id: "ProcessList" });

export const outputQuerySchema = z
  .strictObject({
    offset: queryNumberSchema,
    /** Streams until the process has ended; otherwise the answer is the output so far. */
    follow: queryFlagSchema,
    source: z.enum(["stdout", "stderr", "all"]),
  })
  .partial();

export const stdinQuerySchema = z
  .strictObject({
    /** Position of the first byte in all input; bytes that have already arrived are skipped. */
    offset: queryNumberSchema,
    /** Ends the input after these bytes. */
    close: queryFlagSchema,
  })
  .partial();

export const stdinResultSchema = z.strictObject({ offset: z.int() }).meta({ id: "StdinResult" });

export const signalBodySchema = z
  .strictObject({
    signal: z.string().regex(/^(SIG)?[A-Z0-9+-]{1,20}$/),
    target: z.enum(["process", "tree"]).optional(),
  })
  .meta({ id: "Signal" });

export const waitQuerySchema = z.strictObject({ timeoutMs: queryNumberSchema }).partial();

export type ExecResultBody = z.infer<typeof execResultSchema>;
export type TerminalSize = Readonly<z.infer<typeof terminalSizeSchema>>;
export type StartProcessBody = z.infer<typeof startProcessBodySchema>;
export type ProcessExitBody = z.infer<typeof processExitSchema>;
export type ProcessResource = z.infer<typeof processResourceSchema>;
