import { createHash } from "node:crypto";
import type * as Gcs from "@google-cloud/storage";
import type { PutCondition, StoredObjectInfo } from "@sandpiper/core";

/** The entry of an object's metadata that identifies the write. */
const MARK = "sandpiper-write";

interface Upload {
  readonly bytes: Uint8Array;
  readonly mark: string;
  readonly condition: PutCondition | undefined;
}

/** Writes an object in one request, and returns its generation. */
export async function upload(file: Gcs.File, { bytes, mark, condition }: Upload): Promise<string> {
  await file.save(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), {
    resumable: false,
    // The server compares the hash before it writes. The client's own validation would delete a bad object afterwards.
    validation: false,
    metadata: {
      contentType: "application/octet-stream",
      md5Hash: md5Of(bytes),
      metadata: { [MARK]: mark },
    },
    ...(condition === undefined ? {} : { preconditionOpts: { ifGenerationMatch: generationOf(condition) } }),
  });
  return String(file.metadata.generation);
}

/**
 * Reads an object with the generation of exactly these bytes. The client's download has too many streams: Node.js warns of a leak of
 * listeners for each large object.
 */
export async function download(
  file: Gcs.File,
  checkSize: (size: number, tag: string) => void,
): Promise<{ readonly tag: string; readonly bytes: Uint8Array }> {
  const { baseUrl, authClient, timeout = 0, customEndpoint } = file.storage;
  const url = `${baseUrl}/b/${file.bucket.name}/o/${encodeURIComponent(file.name)}?alt=media`;
  const headers = customEndpoint ? {} : await authClient.getRequestHeaders(url);
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(timeout) });
  if (!response.ok) throw Object.assign(new Error(await response.text()), { code: response.status });
  const tag = response.headers.get("x-goog-generation");
  const pieces: Uint8Array[] = [];
  let size = 0;
  // Counted as it arrives: the server or this program may unpack an object that was stored with an encoding.
  for await (const piece of response.body ?? []) {
    size += piece.length;
    checkSize(size, tag ?? "");
    pieces.push(piece);
  }
  const bytes = Buffer.concat(pieces);
  const hash = /md5=([^,]+)/.exec(response.headers.get("x-goog-hash") ?? "")?.[1];
  if (tag === null || hash !== md5Of(bytes)) throw new Error(`the response for ${file.name} is incomplete`);
  return { tag, bytes };
}

export function infoOf(key: string, { size, updated, generation }: Gcs.FileMetadata): StoredObjectInfo {
  return { key, size: Number(size), modifiedAt: new Date(updated ?? 0), tag: String(generation) };
}

export function markOf({ metadata }: Gcs.FileMetadata): unknown {
  return metadata?.[MARK];
}

/** Generation 0 means that no object exists. */
function generationOf(condition: PutCondition): string | number {
  return "ifAbsent" in condition ? 0 : condition.ifMatch;
}

function md5Of(bytes: Uint8Array): string {
  return createHash("md5").update(bytes).digest("base64");
}
