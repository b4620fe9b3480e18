import type { StartProcessBody } from "../api/process.ts";

/** A string is run by /bin/sh. A list is a program and its arguments, which no shell interprets. */
export type Command = string | readonly string[];

/** Source code, run by the interpreter of its language. */
export interface SourceCode {
  readonly code: string;
  /** The default is the sandbox's language. */
  readonly language?: string | undefined;
}

/** What a process runs. */
export type Program = Command | SourceCode;

export interface CommandOptions {
  readonly cwd?: string | undefined;
  /** Added to the sandbox's environment. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** A name, "uid" or "uid:gid". */
  readonly user?: string | undefined;
  /** After this time the whole process tree is killed inside the sandbox. */
  readonly timeoutMs?: number | undefined;
}

/** Without a command, the target is the sandbox's shell. */
export function commandTarget(command: Command | undefined): { command?: string } | { argv?: string[] } {
  if (command === undefined) return {};
  return typeof command === "string" ? { command } : { argv: [...command] };
}

/** The request to run a program, or without one the sandbox's shell. */
export function commandBody(
  program: Program | undefined,
  { cwd, env, user, timeoutMs }: CommandOptions,
): StartProcessBody {
  const target = isSourceCode(program) ? { code: program.code, language: program.language } : commandTarget(program);
  return { ...target, cwd, env, user, timeoutMs };
}

function isSourceCode(program: Program | undefined): program is SourceCode {
  return typeof program === "object" && "code" in program;
}
