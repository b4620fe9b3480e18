import { z } from "zod";
import { checkpointFields, checkpointRow } from "../tool/checkpoint-row.ts";
import { defineSandboxTool } from "../tool/tool.ts";

export const listCheckpoints = defineSandboxTool({
  name: "list_checkpoints",
  title: "List checkpoints",
  description: "Lists the checkpoints of a sandbox, newest first.",
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  input: {},
  output: { checkpoints: z.array(z.object(checkpointFields)) },
  async run(_, { sandbox, signal }) {
    const checkpoints = (await sandbox.checkpoints({ signal })).map(checkpointRow);
    const lines = checkpoints.map(({ checkpoint_id, name, keeps, created_at }) => {
      return `${checkpoint_id}${name === null ? "" : ` (${name})`} of ${created_at}, keeps ${keeps}`;
    });
    return {
      text: lines.length === 0 ? "The sandbox has no checkpoints." : lines.join("\n"),
      structured: { checkpoints },
    };
  },
});
