import { createWriteStream } from "node:fs";
import { mkdir, rm, stat } from "node:fs/promises";
import { join, posix } from "node:path";
import { pipeline } from "node:stream/promises";
import { type CreateInstanceOptions, SandboxError } from "@sandpiper/core";
import { archiveError } from "./archive-error.ts";
import { findLayers } from "./image-layers.ts";
import { LayerTarget, type UnpackLimits } from "./layer-target.ts";
import { type ArchiveEntry, readArchive } from "./read-archive.ts";

/** What describes an image is small; blobs that are larger are its layers. */
const MAX_DOCUMENT_BYTES = 1024 * 1024;
const MAX_DOCUMENTS = 1000;

export interface UnpackImageOptions {
  readonly path: string;
  /** Empty; where the root filesystem comes to be. */
  readonly root: string;
  /** For what is needed meanwhile. */
  readonly scratch: string;
  readonly limits?: UnpackLimits | undefined;
  readonly onProgress?: CreateInstanceOptions["onProgress"];
}

const LIMITS: UnpackLimits = { maxBytes: 16 * 2 ** 30, maxEntries: 1_000_000 };

interface Contents {
  readonly documents: ReadonlyMap<string, string>;
  /** Old engines write a layer that is there already as a link to it. */
  readonly links: ReadonlyMap<string, string>;
}

/** Puts the layers of an image together as one directory, or unpacks the one that a root filesystem is. */
export async function unpackImage(options: UnpackImageOptions): Promise<void> {
  const { path, root, scratch, limits = LIMITS } = options;
  try {
    const { documents, links } = await lookInto(path, limits);
    const names = findLayers(documents);
    const target = new LayerTarget(root, limits);
    if (names === undefined) {
      await addLayer(target, 0, { file: path, options });
      return;
    }
    const layers = names.map((name) => links.get(name) ?? name);
    await mkdir(scratch);
    const files = await takeOut(path, layers, scratch, limits);
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

/** Reads what describes an image, if something does. */
async function lookInto(path: string, { maxBytes }: UnpackLimits): Promise<Contents> {
  const documents = new Map<string, string>();
  const links = new Map<string, string>();
  for await (const entry of readArchive(path, { maxBytes })) {
    const { type, size = 0, linkname = "" } = entry.header;
    const name = posix.normalize(entry.header.name);
    if (type === "symlink") links.set(name, posix.join(posix.dirname(name), linkname));
    if (type === "file" && size <= MAX_DOCUMENT_BYTES && isDocument(name) && documents.size < MAX_DOCUMENTS) {
      documents.set(name, await textOf(entry));
    }
    entry.resume();
  }
  return { documents, links };
}

function isDocument(name: string): boolean {
  return ["manifest.json", "index.json", "oci-layout"].includes(name) || name.startsWith("blobs/sha256/");
}

async function textOf(entry: ArchiveEntry): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of entry as AsyncIterable<Uint8Array>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Writes the named files under names of our own. */
async function takeOut(
  path: string,
  names: readonly string[],
  directory: string,
  { maxBytes }: UnpackLimits,
): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  for await (const entry of readArchive(path, { maxBytes })) {
    const name = posix.normalize(entry.header.name);
    if (names.includes(name) && entry.header.type === "file" && !files.has(name)) {
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
  const tell = (status: "unpacking" | "complete", doneBytes: number) =>
    onProgress?.({ image, layer: `layer ${index + 1}`, status, doneBytes, totalBytes });
  tell("unpacking", 0);
  const onRead = (bytes: number) => tell("unpacking", bytes);
  for await (const entry of readArchive(file, { maxBytes: limits.maxBytes, onRead })) await target.add(entry, index);
  tell("complete", totalBytes);
}
