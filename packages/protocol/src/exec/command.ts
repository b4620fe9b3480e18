import type { StartProcessBody } from "../api/process.ts";

/** A string is run by /bin/sh. A list is a program and its arguments, which no shell interprets. */
export type Command = string | readonly string[];

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

export function commandBody(
  command: Command | undefined,
  { cwd, env, user, timeoutMs }: CommandOptions,
): StartProcessBody {
  return { ...commandTarget(command), cwd, env, user, timeoutMs };
}
