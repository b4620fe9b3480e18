import type { Verb } from "../command/verb.ts";
import { parseDuration } from "../options/duration-option.ts";
import { parseNumber } from "../options/number-option.ts";
import { progressOf, quietOption } from "../options/quiet-option.ts";
import { print } from "../output/print.ts";

export const checkpointVerb: Verb = {
  name: "checkpoint",
  usage: "[OPTIONS] SANDBOX",
  summary: "save a sandbox as it is and print the checkpoint's id",
  options: [
    { name: "name", value: "NAME", summary: "a name to call the checkpoint by" },
    { name: "stop", summary: "stop the sandbox with it; otherwise it goes on" },
    { name: "ttl", value: "TIME", summary: "delete the checkpoint after this time, such as 90 (seconds), 10m or 2h" },
    { name: "keep-last", value: "N", summary: "delete the sandbox's older checkpoints beyond this many" },
    { name: "json", summary: "print the whole checkpoint as one JSON object" },
    quietOption,
  ],
  operands: { min: 1, max: 1, example: "sandpiper checkpoint SANDBOX" },
  details: `Running processes are saved too where the provider can; "fidelity" in --json says what was. A sandbox that was
stopped goes on with sandpiper resume.

Example:
  sandpiper checkpoint build --name before-tests`,
  async run(arguments_) {
    const options = {
      name: arguments_.get("name"),
      stop: arguments_.has("stop") ? true : undefined,
      ttlMs: parseDuration(arguments_, "ttl"),
      keepLast: parseNumber(arguments_, "keep-last", { example: 3 }),
    };
    const { requireNode } = await import("../target/find-node.ts");
    const { findSandbox } = await import("../target/find-sandbox.ts");
    const { Progress } = await import("../output/progress.ts");
    const sandbox = await findSandbox(await requireNode(), arguments_.operands[0] as string);
    using progress = new Progress("saving", progressOf(arguments_));
    const made = await sandbox.checkpoint(options);
    progress[Symbol.dispose]();
    await print(arguments_.has("json") ? `${JSON.stringify(made)}\n` : `${made.id}\n`);
    return 0;
  },
};
