import type { StartProcessBody } from "@sandpiper/protocol";

/** A text is run by /bin/sh; a list is a program and its arguments, and nothing interprets it. */
export type Command = string | readonly string[];

export interface CommandOptions {
  readonly cwd?: string | undefined;
  /** Added to the sandbox's environment. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** A name, "uid" or "uid:gid". */
  readonly user?: string | undefined;
  /** When it passes, the whole process tree is killed inside the sandbox. */
  readonly timeoutMs?: number | undefined;
}

export function commandBody(command: Command, options: CommandOptions): StartProcessBody {
  const { cwd, env, user, timeoutMs } = options;
  const target = typeof command === "string" ? { command } : { argv: [...command] };
  return { ...target, cwd, env, user, timeoutMs };
}
