import type { Verb } from "../command/verb.ts";
import { quietOption } from "../options/shared-options.ts";
import { parseDuration } from "../options/values.ts";
import { requireNode } from "../target/find-node.ts";
import { findSandboxes } from "../target/find-sandbox.ts";
import { eachSandbox } from "./each-sandbox.ts";

export const stopVerb: Verb = {
  name: "stop",
  summary: "stop the containers of sandboxes, keeping their files",
  operands: ["SANDBOX…"],
  options: [
    {
      name: "timeout",
      value: "DURATION",
      summary: "kill the processes that do not end within DURATION, such as 30 (seconds) or 2m",
      default: "10s",
    },
    quietOption,
  ],
  details: `Sends SIGTERM to the processes. "sandpiper start" starts the sandbox again, also after a restart of the node.

Works with providers of containers: docker and vm-docker. Use "sandpiper pause" for the others, which also keeps memory.`,
  examples: ["sandpiper stop build", "sandpiper stop --timeout 1m build"],
  learnMore: "docs/docker.md",
  async run(arguments_) {
    const timeoutMs = parseDuration(arguments_, "timeout");
    const sandboxes = await findSandboxes(await requireNode(), arguments_.operands);
    return eachSandbox(sandboxes, { label: "stopping", arguments_ }, (sandbox) => sandbox.stop({ timeoutMs }));
  },
};

export const startVerb: Verb = {
  name: "start",
  summary: "start stopped sandboxes",
  operands: ["SANDBOX…"],
  options: [quietOption],
  details:
    "Starts with the files that the sandbox had when it was stopped, and no processes. Also resumes paused sandboxes.",
  examples: ["sandpiper start build"],
  async run(arguments_) {
    const sandboxes = await findSandboxes(await requireNode(), arguments_.operands);
    return eachSandbox(sandboxes, { label: "starting", arguments_ }, (sandbox) => sandbox.start());
  },
};
