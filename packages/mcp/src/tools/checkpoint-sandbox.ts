import { z } from "zod";
import { checkpointFields, checkpointRow } from "../tool/checkpoint-row.ts";
import { sandboxIdInput, sandboxIdOutput } from "../tool/fields.ts";
import { defineTool } from "../tool/tool.ts";

export const checkpointSandbox = defineTool({
  name: "checkpoint_sandbox",
  title: "Save a sandbox",
  description:
    "Saves a sandbox as it is now, with its files and, where its provider can, its running processes. It goes on running. restore_sandbox sets it back to this; fork_sandbox makes copies from it.",
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  input: z.object({
    sandbox_id: sandboxIdInput,
    name: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/)
      .optional()
      .describe("To name it by later: letters, digits, dots, dashes."),
  }),
  output: z.object({ sandbox_id: sandboxIdOutput, ...checkpointFields }),
  async run({ sandbox_id, name }, { session, signal }) {
    const sandbox = await session.sandbox(sandbox_id, signal);
    const row = checkpointRow(await sandbox.checkpoint({ ...(name !== undefined && { name }), signal }));
    const what = row.keeps === "memory" ? "its files and processes" : "its files";
    return {
      text: `Sandbox ${sandbox.id} is saved with ${what} as checkpoint ${row.name ?? row.checkpoint_id}.`,
      structured: { sandbox_id: sandbox.id, ...row },
    };
  },
});
