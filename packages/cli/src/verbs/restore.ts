import type { Verb } from "../command/verb.ts";
import { ownFrom, ownOptions } from "../options/sandbox-options.ts";
import { idleTimeoutOption, quietOption, sandboxJsonOption } from "../options/shared-options.ts";
import { parseDuration } from "../options/values.ts";
import { withProgress } from "../output/progress.ts";
import { showResult } from "../output/show.ts";
import { findCheckpointId } from "../target/find-checkpoint.ts";
import { requireNode } from "../target/find-node.ts";

export const restoreVerb: Verb = {
  name: "restore",
  summary: "create a sandbox from a checkpoint and print its ID",
  operands: ["CHECKPOINT"],
  options: [...ownOptions, idleTimeoutOption, sandboxJsonOption, quietOption],
  details: `CHECKPOINT is a whole ID, or SANDBOX:CHECKPOINT with names or beginnings of IDs. The original sandbox does not change;
use "sandpiper rollback" to reset it.`,
  examples: ["sandpiper restore build:before-tests --name again"],
  learnMore: "docs/checkpoints.md",
  async run(arguments_) {
    const own = { ...ownFrom(arguments_), idleTimeoutMs: parseDuration(arguments_, "idle-timeout") };
    const client = await requireNode();
    const checkpoint = await findCheckpointId(client, arguments_.operands[0] as string);
    const restored = await withProgress("restoring", arguments_, () => client.sandboxes.create({ ...own, checkpoint }));
    await showResult(arguments_, { json: restored.info, lines: [restored.id] });
  },
};
