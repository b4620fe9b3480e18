import { SandboxError } from "@sandpiper/sdk";
import { z } from "zod";
import { textOf, withoutCutEnd } from "../output/utf8.ts";
import { filePartInput, filePartOutput, sandboxIdInput, sandboxIdOutput } from "../tool/fields.ts";
import { defineTool } from "../tool/tool.ts";

export const readFile = defineTool({
  name: "read_file",
  title: "Read a text file",
  description:
    "Reads a text file of a sandbox. A long file comes in parts: next_offset is the start of the next part. Use download_file for binary content.",
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  input: z.object({
    sandbox_id: sandboxIdInput,
    ...filePartInput,
  }),
  output: z.object({
    sandbox_id: sandboxIdOutput,
    path: z.string(),
    content: z.string(),
    ...filePartOutput,
  }),
  async run({ sandbox_id, path, offset = 0, length }, { session, signal }) {
    const sandbox = await session.sandbox(sandbox_id, signal);
    const lengthBytes = Math.min(length ?? session.limits.fileBytes, session.limits.fileBytes);
    const { sizeBytes } = await sandbox.files.stat(path, { signal });
    const read = await sandbox.files.read(path, { offset, lengthBytes, signal });
    // Files in /proc report a size of 0.
    const isCut = offset + read.length < sizeBytes;
    const bytes = isCut ? withoutCutEnd(read) : read;
    if (isBinary(bytes)) throw binaryFile(path, sizeBytes);
    const content = textOf(bytes);
    const next = isCut ? offset + bytes.length : null;
    const note =
      next === null ? "" : `\n[… ${sizeBytes - next} more bytes; continue with read_file at offset ${next} …]`;
    return {
      text: `${content}${note}`,
      structured: { sandbox_id: sandbox.id, path, content, size_bytes: sizeBytes, next_offset: next },
    };
  },
});

function isBinary(bytes: Uint8Array): boolean {
  return bytes.includes(0);
}

function binaryFile(path: string, sizeBytes: number): SandboxError {
  return new SandboxError("binary_file", { message: `${path} is a binary file of ${sizeBytes} bytes, not text` });
}
