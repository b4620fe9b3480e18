import type { Verb } from "../command/verb.ts";
import { ownFrom, ownOptions, secretOption, secretsFrom } from "../options/sandbox-options.ts";
import { checkpointsOption, idleTimeoutOption, sandboxJsonOption } from "../options/shared-options.ts";
import { parseDuration, parsePolicy } from "../options/values.ts";
import { showResult } from "../output/show.ts";
import { firstSandbox } from "../target/find-sandbox.ts";

export const updateVerb: Verb = {
  name: "update",
  summary: "change a sandbox's name, labels, secrets, lifetime or checkpoint policy",
  operands: ["SANDBOX"],
  options: [...ownOptions, secretOption, idleTimeoutOption, checkpointsOption, sandboxJsonOption],
  details:
    "Options that you omit stay unchanged. --label replaces all labels, and --secret all secrets. --ttl counts from now.",
  examples: ["sandpiper update build --checkpoints idle,every=5m", "sandpiper update build --name release --ttl 2h"],
  learnMore: "docs/checkpoints.md",
  async run(arguments_) {
    const change = {
      ...ownFrom(arguments_),
      secrets: secretsFrom(arguments_),
      idleTimeoutMs: parseDuration(arguments_, "idle-timeout"),
      checkpointPolicy: await parsePolicy(arguments_, "checkpoints"),
    };
    const sandbox = await firstSandbox(arguments_);
    const given = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
    const info = await sandbox.update(given);
    await showResult(arguments_, { json: info, lines: [sandbox.id] });
  },
};
