import { z } from "zod";
import { sandboxIdInput, sandboxIdOutput } from "../tool/fields.ts";
import { defineTool } from "../tool/tool.ts";

export const restoreSandbox = defineTool({
  name: "restore_sandbox",
  title: "Restore a sandbox",
  description:
    "Restores a sandbox to one of its checkpoints; later changes are lost. Processes that the checkpoint contains continue from there.",
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  input: z.object({
    sandbox_id: sandboxIdInput,
    checkpoint: z.string().min(1).optional().describe("The id or name of the checkpoint; the default is the newest."),
  }),
  output: z.object({ sandbox_id: sandboxIdOutput, checkpoint_id: z.string(), state: z.string() }),
  async run({ sandbox_id, checkpoint }, { session, signal }) {
    const sandbox = await session.sandbox(sandbox_id, signal);
    const { state, rolledBackTo } = await sandbox.rollback(checkpoint, { signal });
    const id = rolledBackTo?.checkpoint ?? "";
    return {
      text: `Sandbox ${sandbox.id} is restored to checkpoint ${checkpoint ?? id}.`,
      structured: { sandbox_id: sandbox.id, checkpoint_id: id, state },
    };
  },
});
