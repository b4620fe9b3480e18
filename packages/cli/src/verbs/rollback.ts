import type { Verb } from "../command/verb.ts";
import { progressOf, quietOption } from "../options/quiet-option.ts";
import { print } from "../output/print.ts";

export const rollbackVerb: Verb = {
  name: "rollback",
  usage: "[OPTIONS] SANDBOX [CHECKPOINT]",
  summary: "set a sandbox back to a checkpoint, the newest by default, and print that checkpoint's id",
  options: [{ name: "json", summary: "print the whole sandbox as one JSON object" }, quietOption],
  operands: { min: 1, max: 2, example: "sandpiper rollback SANDBOX" },
  details: `What happened since that checkpoint is lost, and whoever reads output of the sandbox is told so. A checkpoint is named by
its id, the beginning of it, or its name; sandpiper checkpoints SANDBOX lists them.`,
  async run(arguments_) {
    const [name, wanted] = arguments_.operands;
    const { requireNode } = await import("../target/find-node.ts");
    const { findSandbox } = await import("../target/find-sandbox.ts");
    const { findCheckpoint } = await import("../target/find-checkpoint.ts");
    const { Progress } = await import("../output/progress.ts");
    const sandbox = await findSandbox(await requireNode(), name as string);
    const checkpoint = wanted === undefined ? undefined : (await findCheckpoint(sandbox, wanted)).id;
    using progress = new Progress("rolling back", progressOf(arguments_));
    const info = await sandbox.rollback(checkpoint);
    progress[Symbol.dispose]();
    await print(arguments_.has("json") ? `${JSON.stringify(info)}\n` : `${info.rolledBackTo?.checkpoint ?? ""}\n`);
    return 0;
  },
};
