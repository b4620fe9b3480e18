import { z } from "zod";
import { sandboxIdInput, sandboxIdOutput } from "../tool/fields.ts";
import { defineTool } from "../tool/tool.ts";

export const restoreSandbox = defineTool({
  name: "restore_sandbox",
  title: "Set a sandbox back",
  description:
    "Sets a sandbox back to a checkpoint of it: everything that happened since is lost. Processes that the checkpoint keeps go on from there.",
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  input: z.object({
    sandbox_id: sandboxIdInput,
    checkpoint: z.string().min(1).optional().describe("Its id or name; the newest unless given."),
  }),
  output: z.object({ sandbox_id: sandboxIdOutput, checkpoint_id: z.string(), state: z.string() }),
  async run({ sandbox_id, checkpoint }, { session, signal }) {
    const sandbox = await session.sandbox(sandbox_id, signal);
    const { state, rolledBackTo } = await sandbox.rollback(checkpoint, { signal });
    const id = rolledBackTo?.checkpoint ?? "";
    return {
      text: `Sandbox ${sandbox.id} is as it was at checkpoint ${checkpoint ?? id}.`,
      structured: { sandbox_id: sandbox.id, checkpoint_id: id, state },
    };
  },
});
