import { usageError } from "../command/usage-error.ts";
import type { Verb } from "../command/verb.ts";
import { progressOf, quietOption } from "../options/quiet-option.ts";

export const rmVerb: Verb = {
  name: "rm",
  usage: "[OPTIONS] SANDBOX…",
  summary: "destroy sandboxes with everything in them",
  options: [{ name: "all", summary: "all of the node's sandboxes that this key may see" }, quietOption],
  operands: { min: 0, max: Number.POSITIVE_INFINITY, example: "sandpiper rm SANDBOX" },
  details: "Nothing is asked. What cannot be destroyed is said, and the exit code is then 1.",
  async run(arguments_) {
    const { operands } = arguments_;
    if (operands.length === 0 && !arguments_.has("all")) {
      throw usageError("rm needs to know which sandboxes", "write sandpiper rm SANDBOX, or sandpiper rm --all");
    }
    if (operands.length > 0 && arguments_.has("all")) throw usageError("--all names every sandbox", "give no others");
    const { requireNode } = await import("../target/find-node.ts");
    const { findSandboxes, livingSandboxes } = await import("../target/find-sandbox.ts");
    const { eachSandbox } = await import("./each-sandbox.ts");
    const client = await requireNode();
    const sandboxes = operands.length > 0 ? await findSandboxes(client, operands) : await livingSandboxes(client);
    return eachSandbox(sandboxes, { label: "destroying", ...progressOf(arguments_) }, (sandbox) => sandbox.destroy());
  },
};
