import { z } from "zod";
import { checkpointFields, checkpointRow } from "../tool/checkpoint-row.ts";
import { sandboxIdInput, sandboxIdOutput } from "../tool/fields.ts";
import { defineTool } from "../tool/tool.ts";

export const checkpointSandbox = defineTool({
  name: "checkpoint_sandbox",
  title: "Save a sandbox",
  description:
    "Saves the current state of a sandbox: its files and, if its provider supports it, its running processes. The sandbox keeps running. restore_sandbox returns to the checkpoint; fork_sandbox creates copies from it.",
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  input: z.object({
    sandbox_id: sandboxIdInput,
    name: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/)
      .optional()
      .describe("A name for the checkpoint: letters, digits, dots, dashes."),
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
