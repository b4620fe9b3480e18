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

export function commandTarget(command: Command): { command: string } | { argv: string[] } {
  return typeof command === "string" ? { command } : { argv: [...command] };
}

export function commandBody(command: Command, { cwd, env, user, timeoutMs }: CommandOptions): StartProcessBody {
  return { ...commandTarget(command), cwd, env, user, timeoutMs };
}
