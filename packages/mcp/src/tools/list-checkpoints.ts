import { z } from "zod";
import { checkpointFields, checkpointRow } from "../tool/checkpoint-row.ts";
import { sandboxIdInput, sandboxIdOutput } from "../tool/fields.ts";
import { defineTool } from "../tool/tool.ts";

export const listCheckpoints = defineTool({
  name: "list_checkpoints",
  title: "List checkpoints",
  description: "Lists the checkpoints of a sandbox, newest first.",
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  input: z.object({ sandbox_id: sandboxIdInput }),
  output: z.object({ sandbox_id: sandboxIdOutput, checkpoints: z.array(z.object(checkpointFields)) }),
  async run({ sandbox_id }, { session, signal }) {
    const sandbox = await session.sandbox(sandbox_id, signal);
    const checkpoints = (await sandbox.checkpoints({ signal })).map(checkpointRow);
    const lines = checkpoints.map(({ checkpoint_id, name, keeps, created_at }) => {
      return `${checkpoint_id}${name === null ? "" : ` (${name})`} of ${created_at}, keeps ${keeps}`;
    });
    return {
      text: lines.length === 0 ? "The sandbox has no checkpoints." : lines.join("\n"),
      structured: { sandbox_id: sandbox.id, checkpoints },
    };
  },
});
