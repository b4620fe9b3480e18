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

/** Starts an agent that ends, with everything it started, when its stdin does: at the latest when this program ends. */
export async function startAgentProcess({ agent, home, journals, env }: AgentProcessOptions): Promise<AgentProcess> {
  const child = spawn(agent, ["--channel", "stdio", "--exit-on-eof", "--journal-dir", journals], {
    cwd: home,
    env,
    stdio: ["pipe", "pipe", "ignore"],
    // A Ctrl-C in the terminal is for the host program alone, which then cleans up in order.
    detached: true,
  });
  // What is written to an agent that has ended is lost; its end is reported by the exit event.
  child.stdin.on("error", () => {});
  await once(child, "spawn");
  return child;
}
