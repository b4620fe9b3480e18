import type { SpawnParams } from "@sandpiper/protocol";

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

/** What process.spawn starts. */
export type SpawnTarget = Pick<SpawnParams, "command"> | Pick<SpawnParams, "argv"> | Pick<SpawnParams, "code">;

export function spawnTarget(command: Command): SpawnTarget {
  return typeof command === "string" ? { command } : { argv: [...command] };
}

export function spawnOptions(options: CommandOptions): Pick<SpawnParams, "cwd" | "env" | "user" | "timeout_ms"> {
  return { cwd: options.cwd, env: options.env, user: options.user, timeout_ms: options.timeoutMs };
}
