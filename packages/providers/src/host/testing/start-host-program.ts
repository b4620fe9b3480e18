import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { SandboxConfigOptions } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { HostProgramMessage } from "./host-program.ts";

export interface HostProgram {
  /** Once the program has begun to make its sandbox. */
  creating(): Promise<SandboxId>;
  /** Once its sandbox is ready and its command runs. */
  ready(): Promise<ReadySandbox>;
  /** Ends it with SIGKILL: it gets no chance to clean up. */
  kill(): Promise<void>;
}

interface ReadySandbox {
  readonly id: SandboxId;
  readonly process: string | undefined;
  /** What the program has read of its command's output. */
  readonly output: string;
}

export interface HostProgramOptions {
  readonly config?: SandboxConfigOptions;
  /** Run in its sandbox. */
  readonly command?: string;
  /** How much of the command's output it reads, at least, before it is ready. */
  readonly readBytes?: number;
  /** The sandbox to adopt instead of creating one. */
  readonly adopt?: SandboxId;
}

/** `script` calls `runHostProgram`, which gives the provider's options back to it. */
export function startHostProgram(script: string, provider: object, options: HostProgramOptions): HostProgram {
  const { config = {}, command, readBytes = 0, adopt } = options;
  const args = [script, `--provider=${JSON.stringify(provider)}`, `--config=${JSON.stringify(config)}`];
  args.push(`--read=${readBytes}`);
  if (command !== undefined) args.push(`--command=${command}`);
  if (adopt !== undefined) args.push(`--adopt=${adopt}`);
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const next = async (): Promise<HostProgramMessage> => {
    const { value, done } = await lines.next();
    if (done) throw new Error("the host program ended by itself");
    return JSON.parse(value);
  };
  return {
    creating: async () => {
      const message = await next();
      if ("creating" in message) return message.creating;
      throw new Error("the host program did not say what it creates");
    },
    ready: async () => {
      for (;;) {
        const message = await next();
        if ("ready" in message) return { ...message, id: message.ready };
      }
    },
    kill: async () => {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}
