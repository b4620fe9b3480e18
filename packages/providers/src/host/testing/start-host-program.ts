import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { HostProgram, HostProgramOptions } from "@sandpiper/core/testing";
import type { HostProgramMessage } from "./host-program.ts";

export type { HostProgram, HostProgramOptions };

/** Starts `program`, which calls `runHostProgram` and creates its provider with these options. */
export function startHostProgram(program: URL, provider: object, options: HostProgramOptions): HostProgram {
  const args = [fileURLToPath(program), JSON.stringify(provider), JSON.stringify(options)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const next = async (): Promise<HostProgramMessage> => {
    const { value, done } = await lines.next();
    if (done) throw new Error("the host program ended before it was killed");
    return JSON.parse(value);
  };
  return {
    creating: async () => {
      const message = await next();
      if ("creating" in message) return message.creating;
      throw new Error("the host program did not print the id of its sandbox");
    },
    ready: async () => {
      for (;;) {
        const message = await next();
        if ("ready" in message) return message.ready;
      }
    },
    kill: async () => {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}
