import type { Verb } from "../command/verb.ts";
import { quietOption } from "../options/shared-options.ts";
import { requireNode } from "../target/find-node.ts";
import { findSandboxes } from "../target/find-sandbox.ts";
import { eachSandbox } from "./each-sandbox.ts";

const common = { operands: ["SANDBOX…"], options: [quietOption] };

export const pauseVerb: Verb = {
  ...common,
  name: "pause",
  summary: "pause sandboxes",
  details: `A paused sandbox keeps its memory but runs nothing. "sandpiper resume" continues it.`,
  async run(arguments_) {
    const sandboxes = await findSandboxes(await requireNode(), arguments_.operands);
    return eachSandbox(sandboxes, { label: "pausing", arguments_ }, (sandbox) => sandbox.pause());
  },
};

export const resumeVerb: Verb = {
  ...common,
  name: "resume",
  summary: "resume paused or stopped sandboxes",
  details: "A stopped sandbox resumes from its newest checkpoint.",
  async run(arguments_) {
    const sandboxes = await findSandboxes(await requireNode(), arguments_.operands);
    return eachSandbox(sandboxes, { label: "resuming", arguments_ }, (sandbox) => sandbox.resume());
  },
};
