import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type PullOptions, type PullProgress, SandboxError } from "@sandpiper/core";
import { parseImageReference } from "../../host/image-reference.ts";
import { publishFile } from "../../host/publish-file.ts";
import { registryCredential } from "../../host/registry-credential.ts";
import { Semaphore } from "../../host/semaphore.ts";
import { SharedPulls } from "../../host/shared-pulls.ts";
import { BlobCache } from "./blob-cache.ts";
import { type Descriptor, findManifest, type ImageManifest } from "./image-manifest.ts";
import { RegistryClient } from "./registry-client.ts";

const CONCURRENT_DOWNLOADS = 3;
const SHORT_DIGEST = "sha256:".length + 12;

export interface HostImagesOptions {
  readonly directory: string;
  /** The size of the cache; the least recently used images are evicted. */
  readonly maxBytes: number;
  /** Larger images do not fit into a machine, and are not pulled. */
  readonly maxImageBytes: number;
}

/** An image on this host. */
export interface HostImage extends ImageManifest {
  readonly reference: string;
  /** The file of one of its parts. */
  path(part: Descriptor): string;
}

/** Images that this host pulled from registries, for machines, which have no network. */
export class HostImages {
  readonly #directory: string;
  readonly #maxImageBytes: number;
  readonly #blobs: BlobCache;
  readonly #pulls = new SharedPulls<HostImage>();

  constructor({ directory, maxBytes, maxImageBytes }: HostImagesOptions) {
    this.#directory = directory;
    this.#maxImageBytes = maxImageBytes;
    this.#blobs = new BlobCache(join(directory, "blobs"), maxBytes);
  }

  /** The image that the reference named at its last pull, if all of it is still here. */
  async find(reference: string): Promise<HostImage | undefined> {
    const text = await readFile(this.#recordPath(reference), "utf8").catch(() => undefined);
    if (text === undefined) return undefined;
    const manifest = JSON.parse(text) as ImageManifest;
    const parts = await Promise.all([manifest.config, ...manifest.layers].map((part) => this.#blobs.has(part)));
    return parts.every(Boolean) ? this.#image(reference, manifest) : undefined;
  }

  /** Policy `always` asks the registry, and downloads only what is missing. Logs in as Docker's client on this host. */
  async pull(reference: string, { policy, signal, onProgress }: PullOptions): Promise<HostImage> {
    if (policy !== "always") {
      const found = await this.find(reference);
      if (found !== undefined) return found;
      if (policy === "never") throw notFound(reference);
    }
    const work = (abort: AbortSignal, report: (progress: PullProgress) => void) =>
      this.#download(reference, abort, report);
    return await this.#pulls.join(reference, work, { signal, onProgress });
  }

  async #download(
    reference: string,
    signal: AbortSignal,
    report: (progress: PullProgress) => void,
  ): Promise<HostImage> {
    const credential = await registryCredential(parseImageReference(reference).registry);
    const client = new RegistryClient(reference, credential);
    const manifest = await findManifest(client, reference, signal);
    // An image may contain the same layer twice.
    const parts = [...new Map([manifest.config, ...manifest.layers].map((part) => [part.digest, part])).values()];
    const sizeBytes = parts.reduce((sum, { size }) => sum + size, 0);
    if (sizeBytes > this.#maxImageBytes) throw tooLarge(reference, sizeBytes, this.#maxImageBytes);
    const slots = new Semaphore(CONCURRENT_DOWNLOADS);
    const failed = new AbortController();
    const both = AbortSignal.any([signal, failed.signal]);
    const downloads = parts.map((part) =>
      slots.run(() => this.#downloadPart(part, { reference, client, signal: both, report }), both),
    );
    try {
      await Promise.all(downloads);
    } catch (thrown) {
      // Ends the other downloads before the error is reported.
      failed.abort(thrown);
      await Promise.allSettled(downloads);
      throw thrown;
    }
    await publishFile(this.#recordPath(reference), (draft) =>
      writeFile(draft, JSON.stringify(manifest), { mode: 0o600 }),
    );
    await this.#blobs.evict(parts);
    return this.#image(reference, manifest);
  }

  async #downloadPart(
    part: Descriptor,
    options: {
      readonly reference: string;
      readonly client: RegistryClient;
      readonly signal: AbortSignal;
      readonly report: (progress: PullProgress) => void;
    },
  ): Promise<void> {
    const { reference, client, signal, report } = options;
    const { digest, size } = part;
    const common = { image: reference, layer: digest.slice("sha256:".length, SHORT_DIGEST), totalBytes: size };
    if (!(await this.#blobs.has(part))) {
      await this.#blobs.download(part, {
        reference,
        fetch: () => client.get(`blobs/${digest}`, { accept: "*/*", signal }),
        signal,
        onBytes: (doneBytes) => report({ ...common, status: "downloading", doneBytes }),
      });
    }
    report({ ...common, status: "complete", doneBytes: size });
  }

  #image(reference: string, manifest: ImageManifest): HostImage {
    return { ...manifest, reference, path: (part) => this.#blobs.path(part) };
  }

  #recordPath(reference: string): string {
    return join(this.#directory, "references", createHash("sha256").update(reference).digest("hex"));
  }
}

function notFound(reference: string): SandboxError {
  return new SandboxError("image_not_found", {
    message: `image ${reference} not found on this host, and imagePullPolicy is "never"`,
    hint: 'set imagePullPolicy to "missing", or list a file with the image in vmDocker.images',
    details: { image: reference },
  });
}

function tooLarge(reference: string, sizeBytes: number, maxBytes: number): SandboxError {
  const mib = (bytes: number) => Math.ceil(bytes / 2 ** 20);
  return new SandboxError("image_too_large", {
    message: `image ${reference} is not pulled: its ${mib(sizeBytes)} MiB do not fit on the machine's disk of ${mib(maxBytes)} MiB`,
    hint: "use a smaller image; the operator can raise vmDocker.diskMib",
    details: { image: reference },
  });
}
