import { closeSync, openSync } from "node:fs";
import { guestPrograms } from "../guest-programs.ts";
import { settledMemory } from "../processes.ts";
import { PING, RunscInstance } from "../runsc/runsc-instance.ts";
import { runscTemplate } from "../runsc/runsc-template.ts";
import type { SubjectDefinition } from "../subject.ts";
import { repeated, timed, timeToExit } from "../timed-run.ts";

const TRUE_PATH = "/tmp/true";
const FILE_PATH = "/tmp/file";

export const subject: SubjectDefinition = {
  name: "raw-runsc",
  title:
    "runsc run / exec / checkpoint / restore by hand, with the bundle, flags and agent of Sandpiper; files through runsc exec cat",
  async open(workspace) {
    const template = await runscTemplate(workspace);
    const own = workspace.own(await RunscInstance.prepare(template));
    await own.start(PING);
    await own.upload((await guestPrograms(workspace)).true, TRUE_PATH);
    const timeStart = async (instance: RunscInstance, line: string) => {
      await using _ = instance;
      return await timed(() => instance.start(line));
    };
    const timeExec = (command: readonly string[], stdin: "ignore" | number, stdout: "ignore" | number) =>
      timeToExit(own.runscPath, own.args("exec", own.id, ...command), { stdin, stdout });
    return {
      createToReady: async () => timeStart(await RunscInstance.prepare(template), PING),
      createToFirstOutput: async () =>
        timeStart(await RunscInstance.prepare(template, { args: ["/bin/echo", "ready"] }), ""),
      execTrue: (count) => repeated(count, () => timeExec([TRUE_PATH], "ignore", "ignore")),

      async writeFile(hostPath) {
        const source = openSync(hostPath, "r");
        const tookMs = await timeExec(["/bin/sh", "-c", `cat > ${FILE_PATH}`], source, "ignore");
        closeSync(source);
        return tookMs;
      },

      async readFile(hostPath) {
        const target = openSync(hostPath, "w");
        const tookMs = await timeExec(["/bin/cat", FILE_PATH], "ignore", target);
        closeSync(target);
        return tookMs;
      },

      async idleMemory(count, signal) {
        await using live = new AsyncDisposableStack();
        const ids: string[] = [];
        while (ids.length < count) {
          signal.throwIfAborted();
          const instance = await RunscInstance.prepare(template);
          await instance.start(PING);
          ids.push(live.use(instance).id);
        }
        return await settledMemory(ids);
      },
    };
  },
};
