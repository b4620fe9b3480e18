import { SandboxError } from "@sandpiper/sdk";
import { z } from "zod";
import { textOf, withoutCutEnd } from "../output/utf8.ts";
import { filePartEnd, filePartInput } from "../tool/fields.ts";
import { defineSandboxTool } from "../tool/tool.ts";

export const readFile = defineSandboxTool({
  name: "read_file",
  title: "Read a text file",
  description:
    "Reads a text file of a sandbox. A long file comes in parts: next_offset is the start of the next part. Use download_file for binary content.",
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  input: filePartInput,
  output: { path: z.string(), content: z.string(), ...filePartEnd },
  async run({ path, offset = 0, length }, { sandbox, session, signal }) {
    const lengthBytes = Math.min(length ?? session.limits.fileBytes, session.limits.fileBytes);
    const { sizeBytes } = await sandbox.files.stat(path, { signal });
    const read = await sandbox.files.read(path, { offset, lengthBytes, signal });
    // Files in /proc report a size of 0.
    const isCut = offset + read.length < sizeBytes;
    const bytes = isCut ? withoutCutEnd(read) : read;
    if (bytes.includes(0)) {
      throw new SandboxError("binary_file", { message: `${path} is a binary file of ${sizeBytes} bytes, not text` });
    }
    const content = textOf(bytes);
    const next = isCut ? offset + bytes.length : null;
    const note =
      next === null ? "" : `\n[… ${sizeBytes - next} more bytes; continue with read_file at offset ${next} …]`;
    return { text: `${content}${note}`, structured: { path, content, size_bytes: sizeBytes, next_offset: next } };
  },
});
