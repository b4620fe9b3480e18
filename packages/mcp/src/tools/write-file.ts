import { z } from "zod";
import { modeInput, modeOf, sandboxIdInput, sandboxIdOutput } from "../tool/fields.ts";
import { defineTool } from "../tool/tool.ts";

export const writeFile = defineTool({
  name: "write_file",
  title: "Write a text file",
  description:
    "Writes a text file in a sandbox. Replaces an existing file and creates missing directories. Use upload_file for binary content.",
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  input: z.object({
    sandbox_id: sandboxIdInput,
    path: z.string().min(1).describe("Relative paths start at the user's home directory."),
    content: z.string(),
    mode: modeInput,
  }),
  output: z.object({ sandbox_id: sandboxIdOutput, path: z.string(), size_bytes: z.int() }),
  async run({ sandbox_id, path, content, mode }, { session, signal }) {
    const sandbox = await session.sandbox(sandbox_id, signal);
    const { sizeBytes } = await sandbox.files.write(path, content, { mode: modeOf(mode), signal });
    return {
      text: `Wrote ${sizeBytes} bytes to ${path}.`,
      structured: { sandbox_id: sandbox.id, path, size_bytes: sizeBytes },
    };
  },
});
