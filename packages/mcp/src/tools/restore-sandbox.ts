import { z } from "zod";
import { checkpointInput } from "../tool/fields.ts";
import { defineSandboxTool } from "../tool/tool.ts";

export const restoreSandbox = defineSandboxTool({
  name: "restore_sandbox",
  title: "Restore a sandbox",
  description:
    "Restores a sandbox to one of its checkpoints; later changes are lost. Processes that the checkpoint contains continue from there.",
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  input: {
    checkpoint: checkpointInput.describe("The id or name of the checkpoint; the default is the newest."),
  },
  output: { checkpoint_id: z.string(), state: z.string() },
  async run({ checkpoint }, { sandbox, signal }) {
    const { state, rolledBackTo } = await sandbox.rollback(checkpoint, { signal });
    const id = rolledBackTo?.checkpoint ?? "";
    return {
      text: `Sandbox ${sandbox.id} is restored to checkpoint ${checkpoint ?? id}.`,
      structured: { checkpoint_id: id, state },
    };
  },
});
