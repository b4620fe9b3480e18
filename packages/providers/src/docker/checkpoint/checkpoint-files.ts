import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, readFile, rename, rm, stat, statfs, writeFile } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { SandboxError } from "@sandpiper/core";
import { extract, pack } from "tar-stream";

/** Unchanged from the engine. */
const CONFIG = "config.json";
const IMAGE = "image.json";
const DIGEST = /^[0-9a-f]{64}$/;
/** Twice as many files as an image of 128 layers has in the format with the most files. */
const MAX_ENTRIES = 1024;
const MAX_MANIFEST_BYTES = 1024 * 1024;
const MAX_PATH_BYTES = 4095;
/** A sparse file of a container has any size in an archive, and must not fill the disk of this host. */
const KEPT_FREE_BYTES = 256 * 1024 * 1024;
const BYTES_BETWEEN_CHECKS = 64 * 1024 * 1024;

/** The names of the config and the layers in `manifest.json`, which every engine writes. */
interface ArchiveManifest {
  readonly Config: string;
  readonly Layers: readonly string[];
}

interface ArchiveFile {
  readonly path: string;
  readonly digest: string;
}

/**
 * Unpacks the archive of an engine's `save`. Each layer becomes a file named by its digest, so that checkpoints with the same
 * layer have the same file.
 */
export async function unpackImage(archive: NodeJS.ReadableStream, directory: string): Promise<void> {
  const { files, links } = await writeEntries(archive, directory).catch(explainFlaw);
  const found = (name: string): ArchiveFile => {
    const file = files.get(links.get(name) ?? name);
    if (file === undefined) throw unknownFormat(`${name} is missing`);
    return file;
  };
  const { Config, Layers } = parseManifest(await readManifest(found("manifest.json").path));
  const layers = Layers.map(found);
  const config = found(Config);
  if (layers.some(({ path }) => path === config.path)) throw unknownFormat("its config is one of its layers");
  await rename(config.path, join(directory, CONFIG));
  for (const { digest, path } of new Map(layers.map((layer) => [layer.digest, layer])).values()) {
    await rename(path, layerPath(directory, digest));
  }
  for (const { path } of files.values()) await rm(path, { force: true });
  await writeImage(
    directory,
    layers.map(({ digest }) => digest),
  );
}

/** The fields of an image's config. */
export type ImageConfig = Readonly<Record<string, unknown>>;

/** Writes all files of a container as one layer, because engines limit the number of layers. */
export async function flattenImage(
  files: AsyncIterable<unknown>,
  directory: string,
  config: ImageConfig,
): Promise<void> {
  const draft = join(directory, "layer");
  const { digest } = await writeHashed(files, draft);
  await rename(draft, layerPath(directory, digest));
  const rootfs = { type: "layers", diff_ids: [`sha256:${digest}`] };
  const history = [{ created: config["created"], created_by: "sandpiper checkpoint" }];
  await writeFile(join(directory, CONFIG), JSON.stringify({ ...config, rootfs, history }));
  await writeImage(directory, [digest]);
}

export interface PackOptions {
  readonly reference: string;
  /** Replace the labels of the container that was saved, perhaps of another sandbox or home. */
  readonly labels: Readonly<Record<string, string>>;
}

/** Packs the archive for an engine's `load`. */
export async function packImage(directory: string, { reference, labels }: PackOptions): Promise<Readable> {
  const { layers, config: saved } = await readImage(directory);
  const config = withLabels(saved, labels, directory);
  const configName = `${createHash("sha256").update(config).digest("hex")}.json`;
  const archive = pack();
  const write = async () => {
    const Layers = layers.map((digest) => `${digest}.tar`);
    const manifest = JSON.stringify([{ Config: configName, RepoTags: [reference], Layers }]);
    archive.entry({ name: "manifest.json" }, manifest);
    archive.entry({ name: configName }, config);
    for (const digest of new Set(layers)) {
      const path = layerPath(directory, digest);
      const { size } = await stat(path);
      await pipeline(createReadStream(path), archive.entry({ name: `${digest}.tar`, size }));
    }
    archive.finalize();
  };
  write().catch((error: Error) => archive.destroy(error));
  return Readable.from(archive);
}

export function damagedCheckpoint(directory: string, why: string, cause?: unknown): SandboxError {
  return new SandboxError("checkpoint_damaged", {
    message: `cannot restore the checkpoint in ${directory}: ${why}`,
    hint: "restore an earlier checkpoint",
    cause,
  });
}

/** Writes a stream to a new file; a failed write is reported as this host's error, not the sender's. */
export async function writeContent(
  content: AsyncIterable<unknown>,
  path: string,
  onPiece?: (piece: Uint8Array) => void,
): Promise<void> {
  const cannotWrite = (cause: unknown) => {
    throw writeError(path, cause);
  };
  await using file = await open(path, "wx").catch(cannotWrite);
  let unchecked = BYTES_BETWEEN_CHECKS;
  for await (const piece of content as AsyncIterable<Uint8Array>) {
    onPiece?.(piece);
    unchecked += piece.length;
    if (unchecked >= BYTES_BETWEEN_CHECKS) {
      await requireFree(dirname(path));
      unchecked = 0;
    }
    await file.writeFile(piece).catch(cannotWrite);
  }
}

async function requireFree(directory: string): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  if (bavail * bsize >= KEPT_FREE_BYTES) return;
  throw new SandboxError("disk_full", {
    message: `the checkpoint was not saved: the disk of ${directory} has less than ${KEPT_FREE_BYTES} bytes left`,
    hint: "free space on the disk of the node's home; a sparse file in the sandbox counts with its whole size",
  });
}

async function writeEntries(archive: NodeJS.ReadableStream, directory: string) {
  const files = new Map<string, ArchiveFile>();
  /** Older engines write a repeated layer as a link to its first copy. */
  const links = new Map<string, string>();
  const entries = extract();
  let flaw: unknown;
  const fed = pipeline(archive, entries).catch((error: unknown) => {
    flaw = error;
  });
  try {
    let count = 0;
    for await (const entry of entries) {
      count += 1;
      if (count > MAX_ENTRIES) throw unknownFormat(`it has more than ${MAX_ENTRIES} files`);
      const { type, linkname } = entry.header;
      const name = posix.normalize(entry.header.name);
      if (name.length + (linkname ?? "").length > MAX_PATH_BYTES) throw unknownFormat("it contains a long name");
      if (type === "symlink" && linkname) links.set(name, posix.join(posix.dirname(name), linkname));
      else if (type === "link" && linkname) links.set(name, posix.normalize(linkname));
      if (type === "file") {
        const earlier = files.get(name);
        if (earlier !== undefined) await rm(earlier.path);
        files.set(name, await writeHashed(entry, join(directory, `entry-${count}`)));
      } else entry.resume();
    }
  } catch (thrown) {
    entries.destroy();
    await fed;
    // A damaged archive fails the entry as well; a refused entry fails only the archive.
    throw thrown instanceof SandboxError ? thrown : (flaw ?? thrown);
  }
  await fed;
  if (flaw !== undefined) throw flaw;
  return { files, links };
}

/** Errors of a connection have codes, those of an archive do not. */
function explainFlaw(thrown: unknown): never {
  if (thrown instanceof SandboxError || !(thrown instanceof Error) || "code" in thrown) throw thrown;
  throw unknownFormat(thrown.message);
}

async function writeHashed(content: AsyncIterable<unknown>, path: string): Promise<ArchiveFile> {
  const hash = createHash("sha256");
  await writeContent(content, path, (piece) => hash.update(piece));
  return { path, digest: hash.digest("hex") };
}

async function readManifest(path: string): Promise<string> {
  const { size } = await stat(path);
  if (size > MAX_MANIFEST_BYTES) throw unknownFormat(`its manifest has ${size} bytes`);
  return await readFile(path, "utf8");
}

function parseManifest(text: string): ArchiveManifest {
  let images: readonly Partial<ArchiveManifest>[];
  try {
    images = JSON.parse(text);
  } catch {
    throw unknownFormat("its manifest is not JSON");
  }
  const image = Array.isArray(images) && images.length === 1 ? images[0] : undefined;
  const { Config, Layers } = image ?? {};
  const isListed = Array.isArray(Layers) && Layers.length > 0 && Layers.every((name) => typeof name === "string");
  if (typeof Config === "string" && isListed) return { Config, Layers };
  throw unknownFormat("its manifest does not describe exactly one image");
}

function writeImage(directory: string, layers: readonly string[]): Promise<void> {
  return writeFile(join(directory, IMAGE), JSON.stringify({ version: 1, layers }));
}

async function readImage(directory: string): Promise<{ readonly layers: readonly string[]; readonly config: Buffer }> {
  try {
    const [text, config] = await Promise.all([
      readFile(join(directory, IMAGE), "utf8"),
      readFile(join(directory, CONFIG)),
    ]);
    const { version, layers } = JSON.parse(text);
    if (version !== 1) throw new Error(`unknown version ${version} (expected 1)`);
    if (!Array.isArray(layers) || !layers.every((digest) => DIGEST.test(digest))) throw new Error("it lists no layers");
    await Promise.all(layers.map((digest) => stat(layerPath(directory, digest))));
    return { layers, config };
  } catch (thrown) {
    throw damagedCheckpoint(directory, thrown instanceof Error ? thrown.message : String(thrown), thrown);
  }
}

function withLabels(config: Buffer, labels: PackOptions["labels"], directory: string): Buffer {
  try {
    const image = JSON.parse(config.toString());
    const merged = { ...image.config?.Labels, ...labels };
    return Buffer.from(JSON.stringify({ ...image, config: { ...image.config, Labels: merged } }));
  } catch (thrown) {
    throw damagedCheckpoint(directory, "its image config is not JSON", thrown);
  }
}

function layerPath(directory: string, digest: string): string {
  return join(directory, `layer-${digest}`);
}

function unknownFormat(why: string): SandboxError {
  return new SandboxError("unknown_image_format", {
    message: `cannot read the image that the container engine saved: ${why}`,
  });
}

function writeError(path: string, cause: unknown): SandboxError {
  const isFull = cause instanceof Error && "code" in cause && ["ENOSPC", "EDQUOT"].includes(String(cause.code));
  return new SandboxError(isFull ? "disk_full" : "write_failed", {
    message: `cannot write ${path}: ${cause instanceof Error ? cause.message : cause}`,
    hint: isFull ? "free space on the disk of the node's home" : "check the permissions of its directory",
    cause,
  });
}
