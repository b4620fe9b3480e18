import type { CommandOptions, SpawnParams } from "@sandpiper/protocol";

/** What process.spawn starts. */
export type SpawnTarget = Pick<SpawnParams, "command"> | Pick<SpawnParams, "argv"> | Pick<SpawnParams, "code">;

export function spawnOptions(options: CommandOptions): Pick<SpawnParams, "cwd" | "env" | "user" | "timeout_ms"> {
  return { cwd: options.cwd, env: options.env, user: options.user, timeout_ms: options.timeoutMs };
}
