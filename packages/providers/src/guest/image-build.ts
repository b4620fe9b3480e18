import { createHash, randomUUID } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { mkdir, open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type CreateInstanceOptions, SandboxError } from "@sandpiper/core";
import { findProgram } from "../host/find-program.ts";
import { currentOwner } from "../host/process-owner.ts";
import { runProgram } from "../host/run-program.ts";
import { removeAbandoned, transientName } from "../host/transient-name.ts";
import { type ImageTree, readImageTree } from "./image-tree.ts";

const IMAGE = "root.ext4";
const DIGEST = "sha256";
/** Raised when the way to build images changes. */
const GENERATION = 2;
const SYSTEM_PATH = "/usr/sbin:/sbin:/usr/bin:/bin";
const PROGRESS_INTERVAL_MS = 250;

/** Without a journal and checksums, because the image is read-only and translated guests pay for each check. */
const FORMAT = [
  ...["-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-I", "256", "-L", "base"],
  ...["-O", "^has_journal,^resize_inode,^metadata_csum", "-E", "nodiscard,root_owner=0:0,lazy_itable_init=1"],
];

/** A root filesystem as one file, which all machines read and none can write to. */
export interface GuestImage {
  readonly path: string;
  /**
   * The digest of every byte: saved memory contains parts of the image, so it can be restored only with the same image.
   */
  readonly sha: string;
}

export interface GuestImageOptions {
  /** The directory of built images; a directory that changes gets a new one. */
  readonly imagesDirectory: string;
  readonly stateDirectory: string;
  /** No program writes to the directory any more, so it is not checked for changes. */
  readonly isSealed?: boolean | undefined;
  readonly onProgress?: CreateInstanceOptions["onProgress"];
}

/** Built once for the content of the directory. */
export async function directoryGuestImage(root: string, options: GuestImageOptions): Promise<GuestImage> {
  const version = options.isSealed === true ? await sealedVersion(root) : (await readImageTree(root)).version;
  return await cachedImage(version, { source: root, makeRoot: async () => root }, options);
}

/** Built once for the content of the archive; the unpacked files are removed afterwards. */
export async function archiveGuestImage(path: string, digest: string, options: GuestImageOptions): Promise<GuestImage> {
  const makeRoot = async (draft: string) => {
    const root = join(draft, "root");
    await mkdir(root, { mode: 0o755 });
    // Loaded on demand, because most machines never need it.
    const { unpackImage } = await import("./archive/unpack-image.ts");
    await unpackImage({ path, root, scratch: join(draft, "layers"), onProgress: options.onProgress });
    return root;
  };
  return await cachedImage(digest, { source: path, makeRoot }, options);
}

interface ImageSource {
  /** Its name in progress and errors. */
  readonly source: string;
  /** Fills an empty directory, which is removed afterwards. */
  readonly makeRoot: (draft: string) => Promise<string>;
}

/** An image gets its final name only when it is complete. */
async function cachedImage(version: string, source: ImageSource, options: GuestImageOptions): Promise<GuestImage> {
  const target = join(options.imagesDirectory, `${version.slice(0, 24)}-${GENERATION}`);
  if (!existsSync(target)) await build(source, target, options);
  return { path: join(target, IMAGE), sha: await readFile(join(target, DIGEST), "utf8") };
}

/** The directory got its name when it was complete; a changed one would have another name. */
async function sealedVersion(root: string): Promise<string> {
  const { dev, ino, ctimeNs } = await stat(root, { bigint: true });
  return createHash("sha256").update(`${root} ${dev} ${ino} ${ctimeNs}`).digest("hex");
}

async function build({ source, makeRoot }: ImageSource, target: string, options: GuestImageOptions): Promise<void> {
  const { imagesDirectory } = options;
  await mkdir(imagesDirectory, { recursive: true, mode: 0o700 });
  await removeAbandoned(imagesDirectory);
  const draft = join(imagesDirectory, transientName(randomUUID(), await currentOwner()));
  try {
    const [made, work] = [join(draft, "made"), join(draft, "work")];
    await mkdir(made, { recursive: true, mode: 0o700 });
    await mkdir(work, { mode: 0o700 });
    await fill(join(made, IMAGE), source, await makeRoot(work), options);
    await writeFile(join(made, DIGEST), await digestFile(join(made, IMAGE)));
    await rename(made, target);
  } catch (error) {
    // Another program may have built the same image in the meantime.
    if (!existsSync(target)) throw error;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

export async function digestFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of createReadStream(path, { highWaterMark: 1024 * 1024 })) hash.update(piece);
  return hash.digest("hex");
}

async function fill(path: string, image: string, root: string, { onProgress }: GuestImageOptions): Promise<void> {
  const tree = await readImageTree(root);
  // Readable for the users of machines; only root may enter the directory.
  await using file = await open(path, "wx", 0o644);
  await file.truncate(sizeOf(tree));
  const tell = async (status: "building" | "complete") => {
    const doneBytes =
      status === "complete" ? tree.dataBytes : Math.min((await stat(path)).blocks * 512, tree.dataBytes);
    onProgress?.({ image, layer: "disk image", status, doneBytes, totalBytes: tree.dataBytes });
  };
  await tell("building");
  const timer = setInterval(() => void tell("building").catch(() => {}), PROGRESS_INTERVAL_MS);
  try {
    await format(path, root, tree);
  } finally {
    clearInterval(timer);
  }
  await tell("complete");
}

async function format(path: string, root: string, tree: ImageTree): Promise<void> {
  await run(root, ["mke2fs", ...FORMAT, "-N", String(tree.entries + 64), "-d", root, path]);
  // The directory for repaired files, which mkfs adds.
  await run(root, ["debugfs", "-w", "-R", "rmdir lost+found", path]);
}

async function run(root: string, [name, ...args]: readonly [string, ...string[]]): Promise<void> {
  const program = findProgram(name, SYSTEM_PATH);
  const result = program === undefined ? undefined : await runProgram([program, ...args], { keepOutput: false });
  if (result?.exitCode === 0) return;
  const why = result === undefined ? `${name} not found` : `${name} failed (${result.failure ?? result.exitCode})`;
  throw new SandboxError("image_build_failed", { message: `the image of ${root} could not be built: ${why}` });
}

/** With room for tables and directories; the image is sparse. */
function sizeOf({ entries, dataBytes }: ImageTree): number {
  const mib = Math.ceil((dataBytes * 1.1 + entries * 512) / 2 ** 20) + 32;
  return mib * 2 ** 20;
}
