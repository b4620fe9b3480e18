import { benchDaemon, IMAGE, WAIT } from "../docker/bench-image.ts";
import { settledMemory } from "../processes.ts";
import type { SubjectDefinition } from "../subject.ts";
import { repeated, timeToExit, timeToFirstByte } from "../timed-run.ts";

export const subject: SubjectDefinition = {
  name: "docker",
  title: "docker run / exec / cp, Debian's Docker Engine with runc, an image of static programs",
  async open(workspace) {
    const daemon = await benchDaemon(workspace);
    const startContainer = async () => {
      const started = await daemon.run(["run", "--detach", "--interactive", "--network", "none", IMAGE, ...WAIT]);
      return started.stdout.trim();
    };
    const remove = (containers: readonly string[]) => daemon.run(["rm", "--force", ...containers]);
    const time = (args: readonly string[]) => timeToExit(daemon.engine.docker, daemon.clientArgs(args));
    const container = await startContainer();
    workspace.defer(() => remove([container]));
    return {
      async createToReady() {
        const startedAt = performance.now();
        const created = await startContainer();
        const tookMs = performance.now() - startedAt;
        await remove([created]);
        return tookMs;
      },

      createToFirstOutput() {
        const args = daemon.clientArgs(["run", "--rm", "--network", "none", IMAGE, "/bin/say"]);
        return timeToFirstByte(daemon.engine.docker, args);
      },

      execTrue: (count) => repeated(count, () => time(["exec", container, "/bin/true"])),
      writeFile: (hostPath) => time(["cp", hostPath, `${container}:/tmp/file`]),
      readFile: (hostPath) => time(["cp", `${container}:/tmp/file`, hostPath]),

      async idleMemory(count, signal) {
        const containers: string[] = [];
        try {
          while (containers.length < count) {
            signal.throwIfAborted();
            containers.push(await startContainer());
          }
          return await settledMemory(containers);
        } finally {
          if (containers.length > 0) await remove(containers);
        }
      },
    };
  },
};
