import { SandboxError } from "@sandpiper/sdk";
import { z } from "zod";
import { modeInput, modeOf, pathInput, sandboxIdInput, sandboxIdOutput, textInput } from "../tool/fields.ts";
import { defineTool } from "../tool/tool.ts";

export const uploadFile = defineTool({
  name: "upload_file",
  title: "Upload a binary file",
  description:
    "Writes a binary file in a sandbox. Replaces an existing file and creates missing directories. Use write_file for text.",
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  input: z.object({
    sandbox_id: sandboxIdInput,
    path: pathInput,
    content_base64: textInput.describe("The bytes, in base64."),
    mode: modeInput,
  }),
  output: z.object({ sandbox_id: sandboxIdOutput, path: z.string(), size_bytes: z.int() }),
  async run({ sandbox_id, path, content_base64, mode }, { session, signal }) {
    const bytes = bytesOf(content_base64);
    const { transferBytes } = session.limits;
    if (bytes.length > transferBytes) throw tooLarge(bytes.length, transferBytes);
    const sandbox = await session.sandbox(sandbox_id, signal);
    const { sizeBytes } = await sandbox.files.write(path, bytes, { mode: modeOf(mode), signal });
    return {
      text: `Wrote ${sizeBytes} bytes to ${path}.`,
      structured: { sandbox_id: sandbox.id, path, size_bytes: sizeBytes },
    };
  },
});

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  try {
    // Unlike Buffer, atob refuses what is not base64.
    return new Uint8Array(Buffer.from(atob(base64), "latin1"));
  } catch (cause) {
    throw new SandboxError("invalid_base64", { message: "content_base64 is not valid base64", cause });
  }
}

function tooLarge(sizeBytes: number, limit: number): SandboxError {
  return new SandboxError("upload_too_large", {
    message: `nothing was written: the content has ${sizeBytes} bytes, and one upload carries at most ${limit}`,
  });
}
