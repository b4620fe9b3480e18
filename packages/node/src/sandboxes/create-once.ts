import { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type {
  IdempotencyRecords,
  IdempotentRequest,
  SandboxRecord,
  SandboxRecords,
} from "../records/sandbox-record.ts";

export interface CreateOnceOptions {
  readonly idempotency: IdempotencyRecords;
  readonly records: Pick<SandboxRecords, "get">;
}

/** Whoever asks the same thing again gets what the first one made, also while it is being made. */
export class CreateOnce {
  readonly #options: CreateOnceOptions;
  readonly #requests = new Map<string, { readonly fingerprint: string; readonly creation: Promise<SandboxRecord> }>();

  constructor(options: CreateOnceOptions) {
    this.#options = options;
  }

  async create(
    request: IdempotentRequest,
    create: (noted: (id: SandboxId) => void) => Promise<SandboxRecord>,
    signal: AbortSignal | undefined,
  ): Promise<SandboxRecord> {
    const { idempotency, records } = this.#options;
    const name = JSON.stringify([request.tenant, request.key]);
    for (let running = this.#requests.get(name); running !== undefined; running = this.#requests.get(name)) {
      if (running.fingerprint !== request.fingerprint) throw keyReused(request.key);
      try {
        return await running.creation;
      } catch (thrown) {
        // Whoever asked first has left; this one has not, and is often the same one on a new connection.
        if (SandboxError.from(thrown).code !== "canceled" || signal?.aborted) throw thrown;
      }
    }
    const earlier = idempotency.find(request);
    const known = earlier === undefined ? undefined : records.get(earlier);
    if (known !== undefined) return known;
    const creation = create((id) => idempotency.add(request, id));
    this.#requests.set(name, { fingerprint: request.fingerprint, creation });
    try {
      return await creation;
    } catch (thrown) {
      idempotency.remove(request);
      throw thrown;
    } finally {
      this.#requests.delete(name);
    }
  }
}

function keyReused(key: string): SandboxError {
  return new SandboxError("conflict", {
    reason: "idempotency_key_reused",
    message: `the idempotency key ${JSON.stringify(key)} came with another request before`,
    hint: "use a new key for each request, and the same one only to repeat it unchanged",
  });
}
