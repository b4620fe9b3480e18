import { Interruption } from "../command/interruption.ts";
import type { Verb } from "../command/verb.ts";
import { followOption } from "../output/show.ts";

export const logsVerb: Verb = {
  name: "logs",
  usage: "[OPTIONS] SANDBOX [PROCESS]",
  summary: "show what a process has written so far: the newest, or the one named",
  options: [
    { ...followOption, summary: "go on until the process ends" },
    { name: "json", summary: "print JSON: one object, or with --follow one for each piece of output" },
  ],
  operands: { min: 1, max: 2, example: "sandpiper logs SANDBOX" },
  details: `
Standard output and standard error come out as they went in. A process is named by its id, the beginning of it, or its
pid; sandpiper ps SANDBOX lists them. Ctrl-C ends --follow, and the process goes on.`,
  async run(arguments_) {
    using interruption = new Interruption();
    const [name, processName] = arguments_.operands;
    const { requireNode } = await import("../target/find-node.ts");
    const { findSandbox } = await import("../target/find-sandbox.ts");
    const { newestProcess, pickProcess } = await import("../target/find-process.ts");
    const { showLogs } = await import("./show-logs.ts");
    const sandbox = await findSandbox(await requireNode(), name as string);
    const known = await sandbox.processes();
    const chosen = processName === undefined ? newestProcess(sandbox, known) : pickProcess(processName, known);
    const process_ = await sandbox.attach(chosen.id, { offset: chosen.startOffset });
    interruption.signal.addEventListener("abort", () => process_.detach());
    const isFollowed = arguments_.has("follow");
    try {
      await showLogs(chosen, process_.output, { isFollowed, isJson: arguments_.has("json"), interruption });
    } catch (error) {
      if (interruption.exitCode === undefined) throw error;
    }
    process_.detach();
    return interruption.exitCode ?? 0;
  },
};
