import type { Verb } from "../command/verb.ts";
import { quietOption, sandboxJsonOption } from "../options/shared-options.ts";
import { withProgress } from "../output/progress.ts";
import { showResult } from "../output/show.ts";
import { findCheckpoint } from "../target/find-checkpoint.ts";
import { firstSandbox } from "../target/find-sandbox.ts";

export const rollbackVerb: Verb = {
  name: "rollback",
  summary: "reset a sandbox to a checkpoint and print the checkpoint's ID",
  operands: ["SANDBOX", "[CHECKPOINT]"],
  options: [sandboxJsonOption, quietOption],
  details: `CHECKPOINT is an ID, the beginning of an ID, or a name from "sandpiper checkpoints SANDBOX"; the default is the newest that
you took, or else the newest automatic one.
All changes since the checkpoint are lost.`,
  examples: ["sandpiper rollback build", "sandpiper rollback build before-tests"],
  learnMore: "docs/checkpoints.md",
  async run(arguments_) {
    const wanted = arguments_.operands[1];
    const sandbox = await firstSandbox(arguments_);
    const checkpoint = wanted === undefined ? undefined : (await findCheckpoint(sandbox, wanted)).id;
    const info = await withProgress("rolling back", arguments_, () => sandbox.rollback(checkpoint));
    await showResult(arguments_, { json: info, lines: [info.rolledBackTo?.checkpoint ?? ""] });
  },
};
