import type { Verb } from "../command/verb.ts";
import { progressOf, quietOption } from "../options/quiet-option.ts";

export const pauseVerb: Verb = {
  name: "pause",
  usage: "[OPTIONS] SANDBOX…",
  summary: "hold sandboxes as they are, with nothing of them running",
  options: [quietOption],
  operands: { min: 1, max: Number.POSITIVE_INFINITY, example: "sandpiper pause SANDBOX" },
  details: "With sandpiper resume they go on exactly where they were.",
  async run(arguments_) {
    const { requireNode } = await import("../target/find-node.ts");
    const { findSandboxes } = await import("../target/find-sandbox.ts");
    const { eachSandbox } = await import("./each-sandbox.ts");
    const sandboxes = await findSandboxes(await requireNode(), arguments_.operands);
    return eachSandbox(sandboxes, { label: "pausing", ...progressOf(arguments_) }, (sandbox) => sandbox.pause());
  },
};
