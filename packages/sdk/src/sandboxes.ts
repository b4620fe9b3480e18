import type { CreateSandboxBody, SandboxPage, SandboxResource } from "@sandpiper/protocol";
import type { CallOptions } from "./call-options.ts";
import type { HttpTransport } from "./http/http-transport.ts";
import type { Images, PullOptions } from "./images.ts";
import { randomId } from "./random-id.ts";
import type { SandboxHandle } from "./sandbox-handle.ts";

export interface CreateOptions extends CreateSandboxBody, CallOptions {
  /** Asking twice with the same key makes one sandbox; a fresh key by default. */
  readonly idempotencyKey?: string | undefined;
  /** Told how far the download of a container's image is, or what virtual machines are made of, where it is not there yet. */
  readonly onProgress?: PullOptions["onProgress"];
}

export interface ListOptions extends CallOptions {
  readonly state?: SandboxResource["state"] | undefined;
  readonly provider?: SandboxResource["provider"] | undefined;
  readonly name?: string | undefined;
  /** All must fit; a null value fits any. */
  readonly labels?: Readonly<Record<string, string | null>> | undefined;
  /** How many are asked for at a time. */
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

  /** Resolves when it is ready to be used. */
  async create({ idempotencyKey, signal, onProgress, ...body }: CreateOptions = {}): Promise<SandboxHandle> {
    const { provider, image, container } = body;
    // A download may take longer than anything on the way lets a request without an answer wait.
    if (provider === "docker" && image !== undefined) {
      await this.#images.pull(image, { provider, policy: container?.imagePullPolicy, signal, onProgress });
    }
    // The first virtual machine of a node waits for what all are made of.
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

  /** Every one that fits, newest first, page after page. */
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
