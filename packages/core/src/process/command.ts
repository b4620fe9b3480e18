import type { CommandOptions, SpawnParams } from "@sandpiper/protocol";

/** What process.spawn starts. */
export type SpawnTarget = Pick<SpawnParams, "command"> | Pick<SpawnParams, "argv"> | Pick<SpawnParams, "code">;

export function spawnOptions(options: CommandOptions): Pick<SpawnParams, "cwd" | "env" | "user" | "timeout_ms"> {
  return { cwd: options.cwd, env: options.env, user: options.user, timeout_ms: options.timeoutMs };
}

/** The options of a command, completed from those of its sandbox. */
export function withDefaults({ env, cwd, user, timeoutMs }: CommandOptions, defaults: CommandOptions): CommandOptions {
  return {
    env: Object.keys(defaults.env ?? {}).length === 0 ? env : { ...defaults.env, ...env },
    cwd: cwd ?? defaults.cwd,
    user: user ?? defaults.user,
    timeoutMs: timeoutMs ?? defaults.timeoutMs,
  };
}
