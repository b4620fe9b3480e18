import { z } from "zod";
import { checkpointFields, checkpointRow } from "../tool/checkpoint-row.ts";
import { defineSandboxTool } from "../tool/tool.ts";

export const checkpointSandbox = defineSandboxTool({
  name: "checkpoint_sandbox",
  title: "Save a sandbox",
  description:
    "Saves the current state of a sandbox: its files and, if its provider supports it, its running processes. The sandbox keeps running. restore_sandbox returns to the checkpoint; fork_sandbox creates copies from it.",
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  input: {
    name: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/)
      .optional()
      .describe("A name for the checkpoint: letters, digits, dots, dashes."),
  },
  output: checkpointFields,
  async run({ name }, { sandbox, signal }) {
    const row = checkpointRow(await sandbox.checkpoint({ ...(name !== undefined && { name }), signal }));
    const what = row.keeps === "memory" ? "its files and processes" : "its files";
    return {
      text: `Sandbox ${sandbox.id} is saved with ${what} as checkpoint ${row.name ?? row.checkpoint_id}.`,
      structured: row,
    };
  },
});
