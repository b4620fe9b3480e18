import { usageError } from "../command/usage-error.ts";
import type { Verb } from "../command/verb.ts";
import { quietOption } from "../options/shared-options.ts";
import { requireNode } from "../target/find-node.ts";
import { findSandboxes, livingSandboxes } from "../target/find-sandbox.ts";
import { eachSandbox } from "./each-sandbox.ts";

export const rmVerb: Verb = {
  name: "rm",
  summary: "destroy sandboxes",
  operands: ["[SANDBOX…]"],
  options: [
    { name: "all", summary: "destroy all sandboxes that your key can access" },
    { name: "keep-volumes", summary: "keep the volumes of containers; sandpiper volumes lists them" },
    quietOption,
  ],
  details: "Does not ask for confirmation. The exit code is 1 if a sandbox cannot be destroyed.",
  examples: ["sandpiper rm build", "sandpiper rm --all", "sandpiper rm --keep-volumes build"],
  async run(arguments_) {
    const { operands } = arguments_;
    if (operands.length === 0 && !arguments_.has("all")) {
      throw usageError("rm: missing argument SANDBOX", "name the sandboxes, or use --all");
    }
    if (operands.length > 0 && arguments_.has("all")) {
      throw usageError("rm: --all cannot be combined with SANDBOX", "use --all alone, or name the sandboxes");
    }
    const client = await requireNode();
    const sandboxes = operands.length > 0 ? await findSandboxes(client, operands) : await livingSandboxes(client);
    const options = arguments_.has("keep-volumes") ? ({ volumes: "keep" } as const) : {};
    return eachSandbox(sandboxes, { label: "destroying", arguments_ }, (sandbox) => sandbox.destroy(options));
  },
};
