import { SandboxError, systemClock } from "@sandpiper/core";
import type { Handlers } from "../call.ts";

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

export const sandboxHandlers: Handlers<
  | "createSandbox"
  | "listSandboxes"
  | "getSandbox"
  | "updateSandbox"
  | "deleteSandbox"
  | "execInSandbox"
  | "getSandboxMetrics"
> = {
  createSandbox({ request, principal, body, deps }) {
    const idempotencyKey = request.headers.get("idempotency-key") ?? undefined;
    if (idempotencyKey !== undefined && !IDEMPOTENCY_KEY.test(idempotencyKey)) throw invalidIdempotencyKey();
    return deps.service.create(principal, body, { idempotencyKey, signal: request.signal });
  },

  listSandboxes: ({ principal, query, deps }) => deps.service.list(principal, query),

  getSandbox: ({ principal, params, saved, deps: { service } }) =>
    saved === undefined ? service.get(principal, params.id) : service.resource(principal, saved.record, null),

  updateSandbox: ({ principal, params, body, deps }) => deps.service.update(principal, params.id, body),

  async deleteSandbox({ principal, params, deps }) {
    await deps.service.remove(principal, params.id);
    return undefined;
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

  getSandboxMetrics: ({ open }) => open().metrics(),
};

function invalidIdempotencyKey(): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "invalid_idempotency_key",
    message: "the Idempotency-Key header is not 1 to 255 visible ASCII characters",
    hint: "use a new UUID for each sandbox that you want",
  });
}
