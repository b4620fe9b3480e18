import { SandboxError, systemClock } from "@sandpiper/core";
import type { Handlers } from "../call.ts";

/** Ids of nodes that did not answer in time: their sandboxes are missing from a list. */
const MISSING_NODES_HEADER = "sandpiper-missing-nodes";

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

export const sandboxHandlers: Pick<Handlers, "createSandbox" | "listSandboxes" | "execInSandbox"> = {
  createSandbox({ request, principal, body, deps }) {
    const idempotencyKey = request.headers.get("idempotency-key") ?? undefined;
    if (idempotencyKey !== undefined && !IDEMPOTENCY_KEY.test(idempotencyKey)) throw invalidIdempotencyKey();
    if (body.checkpoint !== undefined) return deps.forks.createFrom(principal, body, body.checkpoint);
    return deps.sandboxes.create(principal, body, { idempotencyKey, signal: request.signal });
  },

  async listSandboxes({ request, principal, query, isForwarded, requestId, headers, deps }) {
    const own = deps.sandboxes.list(principal, query);
    if (deps.peers === undefined || isForwarded) return own;
    const { missingNodes, ...page } = await deps.peers.list(request, own, { principal, query, requestId });
    const missing = missingNodes.length === 0 ? {} : { [MISSING_NODES_HEADER]: missingNodes.join(", ") };
    return Response.json(page, { headers: { ...headers, ...missing } });
  },

  async execInSandbox({ request, body, deps, open }) {
    const live = open();
    const { stdin, ...command } = body;
    const { clock = systemClock } = deps;
    const startedAtMs = clock.monotonicMs();
    try {
      return await live.exec(command, { stdin, signal: request.signal });
    } finally {
      deps.metrics.observeExec(live.record.provider, (clock.monotonicMs() - startedAtMs) / 1000);
    }
  },
};

function invalidIdempotencyKey(): SandboxError {
  return new SandboxError("invalid_idempotency_key", {
    message: "the Idempotency-Key header is not 1 to 255 visible ASCII characters",
  });
}
