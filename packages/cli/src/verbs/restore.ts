import type { Verb } from "../command/verb.ts";
import { parseDuration } from "../options/duration-option.ts";
import { progressOf, quietOption } from "../options/quiet-option.ts";
import { ownFrom, ownOptions } from "../options/sandbox-options.ts";
import { print } from "../output/print.ts";

export const restoreVerb: Verb = {
  name: "restore",
  usage: "[OPTIONS] CHECKPOINT",
  summary: "make a new sandbox from a checkpoint and print its id",
  options: [
    ...ownOptions,
    { name: "idle-timeout", value: "TIME", summary: "destroy it when it was not used for this time (never)" },
    { name: "json", summary: "print the whole sandbox as one JSON object" },
    quietOption,
  ],
  operands: { min: 1, max: 1, example: "sandpiper restore CHECKPOINT" },
  details: `A checkpoint is named by its whole id, or as SANDBOX:CHECKPOINT by the beginning of its id or its name. The sandbox
that it was taken of is not touched; sandpiper rollback sets that one back.

Example:
  sandpiper restore build:before-tests --name again`,
  async run(arguments_) {
    const own = { ...ownFrom(arguments_), idleTimeoutMs: parseDuration(arguments_, "idle-timeout") };
    const { requireNode } = await import("../target/find-node.ts");
    const { findCheckpointId } = await import("../target/find-checkpoint.ts");
    const { Progress } = await import("../output/progress.ts");
    const client = await requireNode();
    const checkpoint = await findCheckpointId(client, arguments_.operands[0] as string);
    using progress = new Progress("restoring", progressOf(arguments_));
    const { info } = await client.sandboxes.create({ ...own, checkpoint });
    progress[Symbol.dispose]();
    await print(arguments_.has("json") ? `${JSON.stringify(info)}\n` : `${info.id}\n`);
    return 0;
  },
};
