import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";

export type AgentProcess = ChildProcessByStdio<Writable, Readable, null>;

export interface AgentProcessOptions {
  readonly agent: string;
  readonly home: string;
  readonly journals: string;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Starts an agent that ends when its stdin closes, with everything it started; at the latest when this program ends.
 */
export async function startAgentProcess({ agent, home, journals, env }: AgentProcessOptions): Promise<AgentProcess> {
  const child = spawn(agent, ["--channel", "stdio", "--exit-on-eof", "--journal-dir", journals], {
    cwd: home,
    env,
    stdio: ["pipe", "pipe", "ignore"],
    // Ctrl-C in the terminal must reach only the host program, which then cleans up.
    detached: true,
  });
  // Writes to an ended agent are lost; the exit event reports its end.
  child.stdin.on("error", () => {});
  await once(child, "spawn");
  return child;
}
