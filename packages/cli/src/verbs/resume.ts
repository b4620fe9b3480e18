import type { Verb } from "../command/verb.ts";
import { progressOf, quietOption } from "../options/quiet-option.ts";

export const resumeVerb: Verb = {
  name: "resume",
  usage: "[OPTIONS] SANDBOX…",
  summary: "let paused or stopped sandboxes go on",
  options: [quietOption],
  operands: { min: 1, max: Number.POSITIVE_INFINITY, example: "sandpiper resume SANDBOX" },

  async run(arguments_) {
    const { requireNode } = await import("../target/find-node.ts");
    const { findSandboxes } = await import("../target/find-sandbox.ts");
    const { eachSandbox } = await import("./each-sandbox.ts");
    const sandboxes = await findSandboxes(await requireNode(), arguments_.operands);
    return eachSandbox(sandboxes, { label: "resuming", ...progressOf(arguments_) }, (sandbox) => sandbox.resume());
  },
};
