import { guestPrograms } from "../guest-programs.ts";
import { run } from "../run.ts";
import { RunscInstance } from "../runsc/runsc-instance.ts";
import { runscTemplate } from "../runsc/runsc-template.ts";
import { EXEC_INSTANCES, nextInTurn, type SubjectDefinition } from "../subject.ts";

const TRUE_PATH = "/tmp/true";

export const subject: SubjectDefinition = {
  name: "floor",
  title:
    "the baseline: the same gVisor bundle and FIFOs with a minimal C program that only does vfork, exec and wait, queried by another C program",
  async open(workspace) {
    const programs = await guestPrograms(workspace);
    const replacement = { program: programs.floor, args: ["/.sandpiper/agent", TRUE_PATH] };
    const instances: RunscInstance[] = [];
    for (let k = 0; k < EXEC_INSTANCES; k++) {
      const instance = await RunscInstance.prepare(await runscTemplate(workspace), replacement);
      instances.push(workspace.own(instance));
      await instance.start("p\n");
      await instance.upload(programs.true, TRUE_PATH);
    }
    const ask = async (command: string, count: number, restMs: number) => {
      const { inPath, outPath } = nextInTurn(instances);
      const { stdout } = await run(programs.ask, [inPath, outPath, command, String(count), String(restMs)]);
      const lines = stdout.trim().split("\n");
      return lines.map((nanoseconds) => Number(nanoseconds) / 1e6);
    };
    return {
      execTrue: (count, restMs) => ask("t", count, restMs),
      ping: (count) => ask("p", count, 0),
    };
  },
};
