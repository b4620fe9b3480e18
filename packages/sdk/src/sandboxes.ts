import type { CreateSandboxBody, SandboxPage, SandboxResource } from "@sandpiper/protocol";
import type { CallOptions } from "./call-options.ts";
import type { HttpTransport } from "./http/http-transport.ts";
import type { Images, PullOptions } from "./images.ts";
import { randomId } from "./random-id.ts";
import type { SandboxHandle } from "./sandbox-handle.ts";

export interface CreateOptions extends CreateSandboxBody, CallOptions {
  /** Two requests with the same key create one sandbox; the default is a new key. */
  readonly idempotencyKey?: string | undefined;
  /** Called with the progress of downloads: a container's image, or the parts of virtual machines. */
  readonly onProgress?: PullOptions["onProgress"];
}

export interface ListOptions extends CallOptions {
  readonly state?: SandboxResource["state"] | undefined;
  readonly provider?: SandboxResource["provider"] | undefined;
  readonly name?: string | undefined;
  /** All must match; null matches any value. */
  readonly labels?: Readonly<Record<string, string | null>> | undefined;
  /** The number of sandboxes per request. */
  readonly pageSize?: number | undefined;
}

export interface SandboxesParts {
  readonly handle: (info: SandboxResource) => SandboxHandle;
  readonly images: Images;
}

/** The sandboxes of a node. */
export class Sandboxes {
  readonly #http: HttpTransport;
  readonly #handle: (info: SandboxResource) => SandboxHandle;
  readonly #images: Images;

  constructor(http: HttpTransport, { handle, images }: SandboxesParts) {
    this.#http = http;
    this.#handle = handle;
    this.#images = images;
  }

  /** Resolves when the sandbox is ready. */
  async create({ idempotencyKey, signal, onProgress, ...body }: CreateOptions = {}): Promise<SandboxHandle> {
    const { provider, image, container } = body;
    // A download may take longer than proxies let a request wait for its answer.
    if (provider === "docker" && image !== undefined) {
      await this.#images.pull(image, { provider, policy: container?.imagePullPolicy, signal, onProgress });
    }
    // The first virtual machine of a node waits for the download of its parts.
    if (provider === "qemu" && onProgress !== undefined) {
      await this.#images.pull("host", { provider, signal, onProgress });
    }
    const headers = { "idempotency-key": idempotencyKey ?? randomId() };
    const request = { json: body, headers, signal, isRepeatable: true };
    return this.#handle(await this.#http.json<SandboxResource>("createSandbox", request));
  }

  async connect(id: string, { signal }: CallOptions = {}): Promise<SandboxHandle> {
    return this.#handle(await this.#http.json<SandboxResource>("getSandbox", { path: { id }, signal }));
  }

  /** All matching sandboxes, newest first, page by page. */
  async *list(options: ListOptions = {}): AsyncGenerator<SandboxHandle, void, undefined> {
    const { state, provider, name, labels = {}, pageSize: limit, signal } = options;
    const label = Object.entries(labels).map(([key, value]) => (value === null ? key : `${key}=${value}`));
    let cursor: string | undefined;
    do {
      const query = { state, provider, name, label, limit, cursor };
      const page = await this.#http.json<SandboxPage>("listSandboxes", { query, signal });
      for (const info of page.items) yield this.#handle(info);
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
  }
}
