import type { VolumeResource } from "@sandpiper/protocol";
import type { CallOptions } from "./call-options.ts";
import type { HttpTransport } from "./http/http-transport.ts";

/** Volumes that destroyed sandboxes left on a node; in a cluster each node has its own. */
export class Volumes {
  readonly #http: HttpTransport;

  constructor(http: HttpTransport) {
    this.#http = http;
  }

  async list({ signal }: CallOptions = {}): Promise<readonly VolumeResource[]> {
    return (await this.#http.json<{ items: VolumeResource[] }>("listVolumes", { signal })).items;
  }

  /** Deletes the volume with its files; refused while a sandbox mounts it. */
  async remove(name: string, { signal }: CallOptions = {}): Promise<void> {
    await this.#http.empty("removeVolume", { path: { volume: name }, signal });
  }
}
