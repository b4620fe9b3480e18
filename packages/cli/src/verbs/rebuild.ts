import type { Verb } from "../command/verb.ts";
import { progressOf, quietOption } from "../options/quiet-option.ts";
import { print } from "../output/print.ts";

export const rebuildVerb: Verb = {
  name: "rebuild",
  usage: "[OPTIONS] SANDBOX",
  summary: "give a container what its image means now, with its volumes",
  options: [{ name: "json", summary: "print the whole sandbox as one JSON object" }, quietOption],
  operands: { min: 1, max: 1, example: "sandpiper rebuild SANDBOX" },
  details: `What is in /.data, /workspace and in caches stays; everything else of the container is as in the image, and what ran in it has
ended. Also brings back one that has failed.`,
  async run(arguments_) {
    const { requireNode } = await import("../target/find-node.ts");
    const { findSandbox } = await import("../target/find-sandbox.ts");
    const { Progress } = await import("../output/progress.ts");
    const sandbox = await findSandbox(await requireNode(), arguments_.operands[0] as string);
    using progress = new Progress("rebuilding", progressOf(arguments_));
    const { token: _, ...info } = await sandbox.rebuild();
    progress[Symbol.dispose]();
    if (arguments_.has("json")) await print(`${JSON.stringify(info)}\n`);
    return 0;
  },
};
