import { createWriteStream } from "node:fs";
import { mkdir, rm, stat } from "node:fs/promises";
import { join, posix } from "node:path";
import { pipeline } from "node:stream/promises";
import { type CreateInstanceOptions, SandboxError } from "@sandpiper/core";
import { findLayers } from "./image-layers.ts";
import { LayerTarget, type UnpackLimits } from "./layer-target.ts";
import { type ArchiveEntry, readArchive } from "./read-archive.ts";

/** Larger blobs are layers, not manifests. */
const MAX_DOCUMENT_BYTES = 1024 * 1024;
/** Of all manifests together: they are in memory, and a compressed archive of any size can contain them. */
const MAX_DOCUMENTS_BYTES = 16 * 1024 * 1024;
const MAX_LINKS = 1000;
const BLOBS = "blobs/sha256/";
const MAX_PATH_BYTES = 4095;

export interface UnpackImageOptions {
  readonly path: string;
  /** An empty directory for the root filesystem. */
  readonly root: string;
  /** A directory for temporary files; must not exist. */
  readonly scratch: string;
  readonly limits?: UnpackLimits | undefined;
  readonly onProgress?: CreateInstanceOptions["onProgress"];
}

const LIMITS: UnpackLimits = { maxBytes: 16 * 2 ** 30, maxEntries: 1_000_000 };

interface Contents {
  readonly documents: ReadonlyMap<string, string>;
  /** Old engines write a repeated layer as a link to its first copy. */
  readonly links: ReadonlyMap<string, string>;
}

/** Unpacks the layers of an image into one directory, or an archive that is itself a root filesystem. */
export async function unpackImage(options: UnpackImageOptions): Promise<void> {
  const { path, root, scratch, limits = LIMITS } = options;
  try {
    const { documents, links } = await readDocuments(path, limits);
    const names = findLayers(documents);
    const target = new LayerTarget(root, limits);
    if (names === undefined) {
      await addLayer(target, 0, { file: path, options });
      return;
    }
    const layers = names.map((name) => links.get(name) ?? name);
    await mkdir(scratch);
    const files = await extractFiles(path, layers, scratch, limits);
    for (const [index, name] of layers.entries()) {
      const file = files.get(name);
      if (file === undefined) throw new Error(`its layer ${JSON.stringify(name)} is missing`);
      await addLayer(target, index, { file, options });
    }
    await rm(scratch, { recursive: true });
  } catch (thrown) {
    if (thrown instanceof SandboxError) throw thrown;
    const { message, code } = thrown as NodeJS.ErrnoException;
    if (code === "ENOSPC" || code === "EDQUOT") throw thrown;
    throw archiveError(path, message, thrown);
  }
}

/** Reads the manifests of an image, if there are any. */
async function readDocuments(path: string, { maxBytes }: UnpackLimits): Promise<Contents> {
  const documents = new Map<string, string>();
  const links = new Map<string, string>();
  let documentsBytes = 0;
  for await (const entry of readArchive(path, { maxBytes })) {
    const { type, size = 0 } = entry.header;
    const linkname = entry.header.linkname ?? "";
    const name = posix.normalize(entry.header.name);
    const isShort = name.length <= MAX_PATH_BYTES && linkname.length <= MAX_PATH_BYTES;
    if (type === "symlink" && isShort && isLayer(name) && links.size < MAX_LINKS) {
      links.set(name, posix.join(posix.dirname(name), linkname));
    }
    if (type === "file" && size <= MAX_DOCUMENT_BYTES && isShort && isDocument(name)) {
      const text = await textOf(entry);
      // Small layers look like manifests by their names.
      if (!name.startsWith(BLOBS) || text.startsWith("{")) {
        documentsBytes += text.length;
        documents.set(name, text);
      }
      if (documentsBytes > MAX_DOCUMENTS_BYTES) {
        throw new Error(`it contains more than ${MAX_DOCUMENTS_BYTES} bytes of manifests`);
      }
    }
    entry.resume();
  }
  return { documents, links };
}

/** The name of a layer in an archive of an old engine. */
function isLayer(name: string): boolean {
  return name.endsWith("/layer.tar");
}

function isDocument(name: string): boolean {
  return ["manifest.json", "index.json", "oci-layout"].includes(name) || name.startsWith(BLOBS);
}

async function textOf(entry: ArchiveEntry): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of entry as AsyncIterable<Uint8Array>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Extracts files under generated names, because those in the archive are untrusted. */
async function extractFiles(
  path: string,
  names: readonly string[],
  directory: string,
  { maxBytes }: UnpackLimits,
): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  const wanted = new Set(names);
  for await (const entry of readArchive(path, { maxBytes })) {
    const name = posix.normalize(entry.header.name);
    if (wanted.has(name) && entry.header.type === "file" && !files.has(name)) {
      const file = join(directory, String(files.size));
      files.set(name, file);
      await pipeline(entry as AsyncIterable<Uint8Array>, createWriteStream(file, { flags: "wx", mode: 0o600 }));
    }
    entry.resume();
  }
  return files;
}

interface Layer {
  readonly file: string;
  readonly options: UnpackImageOptions;
}

async function addLayer(target: LayerTarget, index: number, { file, options }: Layer): Promise<void> {
  const { path: image, limits = LIMITS, onProgress } = options;
  const totalBytes = (await stat(file)).size;
  const report = (status: "unpacking" | "complete", doneBytes: number) =>
    onProgress?.({ image, layer: `layer ${index + 1}`, status, doneBytes, totalBytes });
  report("unpacking", 0);
  const onRead = (bytes: number) => report("unpacking", bytes);
  for await (const entry of readArchive(file, { maxBytes: limits.maxBytes, onRead })) await target.add(entry, index);
  report("complete", totalBytes);
}

function archiveError(path: string, why: string, cause: unknown): SandboxError {
  return new SandboxError("rootfs_not_an_archive", {
    message: `cannot use archive ${JSON.stringify(path)} as a root filesystem: ${why}`,
    hint: "use a file that `docker save` wrote for one image or `docker export` for a container, or a tar archive of an OCI layout",
    cause,
  });
}
