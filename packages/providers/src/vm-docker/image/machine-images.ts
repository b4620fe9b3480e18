import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { KeyedMutex, type PullOptions, SandboxError } from "@sandpiper/core";
import { type Pack, pack } from "tar-stream";
import { parseImageReference } from "../../host/image-reference.ts";
import { callEngine } from "../driver/engine-http.ts";
import type { Vm } from "../vm/vm-driver.ts";
import type { HostImage, HostImages } from "./host-images.ts";
import type { SavedArchives } from "./saved-archives.ts";

/** The layer that progress reports name while an image is loaded into a machine. */
const MACHINE_LAYER = "machine";
const TAG_DIGITS = 32;

export interface MachineImagesOptions {
  readonly host: HostImages;
  readonly archives: SavedArchives;
}

type Target = Pick<Vm, "id" | "engineUrl">;

/** Brings images into machines, which have no network: the host pulls them, and each machine loads them once. */
export class MachineImages {
  readonly #host: HostImages;
  readonly #archives: SavedArchives;
  readonly #loading = new KeyedMutex<string>();

  constructor({ host, archives }: MachineImagesOptions) {
    this.#host = host;
    this.#archives = archives;
  }

  /** Pulls an image to the host, before it is known which machine needs it. */
  async pull(reference: string, options: PullOptions): Promise<void> {
    if (options.policy !== "always" && (await this.#archives.mayContain(reference))) return;
    await this.#host.pull(reference, options);
  }

  /**
   * Ensures that a machine has an image, and returns its name there. A machine that has another image than the host's last
   * pull loads the newer one.
   */
  provide(vm: Target, reference: string, options: PullOptions): Promise<string> {
    return this.#loading.run(`${vm.id} ${reference}`, async () => {
      options.signal.throwIfAborted();
      const name = engineName(reference);
      const present = await imageId(vm, name, options.signal);
      const isPresent = present !== undefined && options.policy !== "always";
      const image = isPresent ? await this.#host.find(reference) : await this.#host.pull(reference, options);
      if (image !== undefined && image.config.digest !== present) await load(vm, { image, name, ...options });
      return name;
    });
  }

  /** Loads the image that the host pulled last, unless the machine has it. */
  async refresh(vm: Target, reference: string, signal: AbortSignal): Promise<void> {
    if ((await this.#host.find(reference)) !== undefined) {
      await this.provide(vm, reference, { policy: "missing", signal });
    }
  }
}

/** An archive cannot name an image by a digest, so such an image gets a tag that follows from it. */
function engineName(reference: string): string {
  const { name, tag } = parseImageReference(reference);
  const [algorithm, digits] = tag.split(":");
  return digits === undefined ? reference : `${name}:${algorithm}-${digits.slice(0, TAG_DIGITS)}`;
}

async function imageId({ engineUrl }: Target, name: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const path = `/images/${encodeURIComponent(name)}/json`;
    return (JSON.parse(await callEngine(engineUrl, { method: "GET", path, signal })) as { readonly Id?: string }).Id;
  } catch (thrown) {
    signal.throwIfAborted();
    if (SandboxError.from(thrown).details["statusCode"] === 404) return undefined;
    throw thrown;
  }
}

interface LoadOptions extends Pick<PullOptions, "signal" | "onProgress"> {
  readonly image: HostImage;
  readonly name: string;
}

async function load({ engineUrl }: Target, { image, name, signal, onProgress }: LoadOptions): Promise<void> {
  const totalBytes = image.layers.reduce((sum, { size }) => sum + size, 0);
  const report = (status: "unpacking" | "complete", doneBytes: number) =>
    onProgress?.({ image: image.reference, layer: MACHINE_LAYER, status, doneBytes, totalBytes });
  const archive = pack();
  const failed = new AbortController();
  const writing = writeArchive(archive, { image, name, onBytes: (bytes) => report("unpacking", bytes) });
  writing.catch((error: unknown) => failed.abort(error));
  const body = Readable.from(archive as AsyncIterable<Uint8Array>);
  const both = AbortSignal.any([signal, failed.signal]);
  try {
    const answer = await callEngine(engineUrl, { method: "POST", path: "/images/load?quiet=1", body, signal: both });
    if (answer.includes('"error"')) throw new Error(answer.trim().slice(0, 500));
  } catch (thrown) {
    signal.throwIfAborted();
    const cause = failed.signal.aborted ? failed.signal.reason : thrown;
    throw new SandboxError("image_load", {
      message: `could not load image ${image.reference} into the machine: ${SandboxError.from(cause).message}`,
      hint: "check that the machine has room for the image (vmDocker.diskMib)",
      cause,
    });
  } finally {
    archive.destroy();
  }
  report("complete", totalBytes);
}

interface ArchiveOptions {
  readonly image: HostImage;
  readonly name: string;
  readonly onBytes: (doneBytes: number) => void;
}

/** In the format of `docker save`; the engine checks each layer's content against the image's configuration. */
async function writeArchive(archive: Pack, { image, name, onBytes }: ArchiveOptions): Promise<void> {
  const fileOf = (digest: string) => digest.slice("sha256:".length);
  const Config = `${fileOf(image.config.digest)}.json`;
  const Layers = image.layers.map(({ digest }) => `${fileOf(digest)}.tar`);
  archive.entry({ name: "manifest.json" }, JSON.stringify([{ Config, RepoTags: [name], Layers }]));
  archive.entry({ name: Config }, await readFile(image.path(image.config)));
  let doneBytes = 0;
  for (const layer of new Map(image.layers.map((part) => [part.digest, part])).values()) {
    const entry = archive.entry({ name: `${fileOf(layer.digest)}.tar`, size: layer.size });
    const content = createReadStream(image.path(layer));
    content.on("data", (piece) => {
      doneBytes += piece.length;
      onBytes(doneBytes);
    });
    await pipeline(content, entry);
  }
  archive.finalize();
}
