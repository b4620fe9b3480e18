import { z } from "zod";
import { fileUri, mediaTypeOf } from "../resources/file-uri.ts";
import { filePartEnd, filePartInput } from "../tool/fields.ts";
import { defineSandboxTool } from "../tool/tool.ts";

export const downloadFile = defineSandboxTool({
  name: "download_file",
  title: "Download a binary file",
  description:
    "Reads a file of a sandbox as bytes, in base64; images can be viewed. A long file comes in parts: next_offset is the start of the next part. Use read_file for text.",
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  input: filePartInput,
  output: { path: z.string(), content_base64: z.string(), ...filePartEnd },
  async run({ path, offset = 0, length }, { sandbox, session, signal }) {
    const { transferBytes } = session.limits;
    const lengthBytes = Math.min(length ?? transferBytes, transferBytes);
    const { path: absolute, sizeBytes } = await sandbox.files.stat(path, { signal });
    const bytes = await sandbox.files.read(path, { offset, lengthBytes, signal });
    const end = offset + bytes.length;
    const next = end < sizeBytes ? end : null;
    const blob = Buffer.from(bytes).toString("base64");
    const mimeType = mediaTypeOf(path);
    const isWholePicture = mimeType.startsWith("image/") && offset === 0 && next === null;
    const rest = next === null ? "" : ` ${sizeBytes - next} more bytes; continue with download_file at offset ${next}.`;
    return {
      text: `Bytes ${offset} to ${end} of ${path}, which has ${sizeBytes}.${rest}`,
      blocks: [
        isWholePicture
          ? { type: "image", data: blob, mimeType }
          : { type: "resource", resource: { uri: fileUri(sandbox.id, absolute), mimeType, blob } },
      ],
      structured: { path, content_base64: blob, size_bytes: sizeBytes, next_offset: next },
    };
  },
});
