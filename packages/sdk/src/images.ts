import { errorFromBody, type PullImageBody, type PullProgressBody, SandboxError } from "@sandpiper/protocol";
import type { CallOptions } from "./call-options.ts";
import type { HttpTransport } from "./http/http-transport.ts";
import { sentEvents } from "./http/sent-events.ts";

export interface PullOptions extends Omit<PullImageBody, "image">, CallOptions {
  /** Called repeatedly for each layer. */
  readonly onProgress?: ((progress: PullProgressBody) => void) | undefined;
}

/** Images of a node's container engine; in a cluster each node has its own. */
export class Images {
  readonly #http: HttpTransport;

  constructor(http: HttpTransport) {
    this.#http = http;
  }

  /** Resolves when the node has the image. With the policy `missing` it does not update an existing image. */
  async pull(image: string, { signal, onProgress, ...body }: PullOptions = {}): Promise<void> {
    const request = { json: { ...body, image }, signal, isRepeatable: true };
    for await (const { kind, data } of sentEvents(await this.#http.stream("pullImage", request))) {
      if (kind === "progress") onProgress?.(data as PullProgressBody);
      if (kind === "error") throw errorFromBody(data, { status: 500 });
      if (kind === "done") return;
    }
    throw new SandboxError("answer_cut", { message: `the node's answer ended before image ${image} was complete` });
  }
}
