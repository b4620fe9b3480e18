import type { Verb } from "../command/verb.ts";
import { quietOption } from "../options/shared-options.ts";
import { requireNode } from "../target/find-node.ts";
import { findSandboxes } from "../target/find-sandbox.ts";
import { eachSandbox } from "./each-sandbox.ts";

export const resumeVerb: Verb = {
  name: "resume",
  summary: "resume paused or stopped sandboxes",
  operands: ["SANDBOX…"],
  options: [quietOption],
  details: "A stopped sandbox resumes from its newest checkpoint.",
  async run(arguments_) {
    const sandboxes = await findSandboxes(await requireNode(), arguments_.operands);
    return eachSandbox(sandboxes, { label: "resuming", arguments_ }, (sandbox) => sandbox.resume());
  },
};
