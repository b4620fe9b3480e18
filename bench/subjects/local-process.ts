import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { guestPrograms } from "../guest-programs.ts";
import { listProcesses, proportionalMemory } from "../processes.ts";
import type { SubjectDefinition } from "../subject.ts";
import { repeated, timed, timeToExit, timeToFirstByte } from "../timed-run.ts";

type Child = ChildProcessByStdio<Writable, Readable, null>;

export const subject: SubjectDefinition = {
  name: "local-process",
  title: "a bare process on the host, without isolation",
  async open(workspace) {
    const programs = await guestPrograms(workspace);
    const filePath = join(await workspace.makeDir("local-process"), "file");
    const start = () => spawn(programs.floor, [programs.true], { stdio: ["pipe", "pipe", "inherit"] });
    return {
      async createToReady() {
        const startedAt = performance.now();
        const child = start();
        await ping(child);
        const tookMs = performance.now() - startedAt;
        await end(child);
        return tookMs;
      },

      createToFirstOutput: () => timeToFirstByte(programs.say, []),
      execTrue: (count) => repeated(count, () => timeToExit(programs.true, [])),

      async ping(count) {
        const child = start();
        const samples = await repeated(count, () => timed(() => ping(child)));
        await end(child);
        return samples;
      },

      writeFile: (hostPath) => timed(() => copyFile(hostPath, filePath)),
      readFile: (hostPath) => timed(() => copyFile(filePath, hostPath)),

      async idleMemory(count) {
        const children = Array.from({ length: count }, start);
        try {
          for (const child of children) await ping(child);
          const all = await listProcesses();
          return await Promise.all(children.map(({ pid }) => proportionalMemory(all.filter((one) => one.id === pid))));
        } finally {
          await Promise.all(children.map(end));
        }
      },
    };
  },
};

async function ping({ stdin, stdout }: Child): Promise<void> {
  stdin.write("p\n");
  await once(stdout, "data");
}

async function end(child: Child): Promise<void> {
  child.stdin.end();
  await once(child, "close");
}
