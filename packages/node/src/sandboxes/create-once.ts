import { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import {
  type IdempotentRequest,
  idempotencyKeyReused,
  type SqliteIdempotencyRecords,
} from "../records/sqlite-idempotency-records.ts";
import type { SandboxRegistry } from "./sandbox-registry.ts";

export interface CreateOnceOptions {
  readonly idempotency: SqliteIdempotencyRecords;
  readonly registry: Pick<SandboxRegistry, "record">;
}

/** Creates one sandbox per idempotency key. A repeated request gets the same sandbox, even while it is being created. */
export class CreateOnce {
  readonly #options: CreateOnceOptions;
  readonly #requests = new Map<string, { readonly fingerprint: string; readonly creation: Promise<SandboxRecord> }>();

  constructor(options: CreateOnceOptions) {
    this.#options = options;
  }

  async create(
    request: IdempotentRequest,
    create: (recorded: (id: SandboxId) => void) => Promise<SandboxRecord>,
    signal: AbortSignal | undefined,
  ): Promise<SandboxRecord> {
    const { idempotency, registry } = this.#options;
    const name = JSON.stringify([request.tenant, request.key]);
    for (let running = this.#requests.get(name); running !== undefined; running = this.#requests.get(name)) {
      if (running.fingerprint !== request.fingerprint) throw idempotencyKeyReused(request.key);
      try {
        return await running.creation;
      } catch (thrown) {
        // The first caller disconnected. This one, often the same client on a new connection, did not.
        if (SandboxError.from(thrown).code !== "canceled" || signal?.aborted) throw thrown;
      }
    }
    const earlier = idempotency.find(request);
    const known = earlier === undefined ? undefined : registry.record(earlier);
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
