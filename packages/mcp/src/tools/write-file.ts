import { z } from "zod";
import { modeInput, modeOf, pathInput, textInput } from "../tool/fields.ts";
import { defineSandboxTool } from "../tool/tool.ts";

export const writeFile = defineSandboxTool({
  name: "write_file",
  title: "Write a text file",
  description:
    "Writes a text file in a sandbox. Replaces an existing file and creates missing directories. Use upload_file for binary content.",
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  input: {
    path: pathInput,
    content: textInput,
    mode: modeInput,
  },
  output: { path: z.string(), size_bytes: z.int() },
  async run({ path, content, mode }, { sandbox, signal }) {
    const { sizeBytes } = await sandbox.files.write(path, content, { mode: modeOf(mode), signal });
    return { text: `Wrote ${sizeBytes} bytes to ${path}.`, structured: { path, size_bytes: sizeBytes } };
  },
});
