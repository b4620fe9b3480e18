import { type Clock, SandboxError } from "@sandpiper/core";
import type { AuditSink } from "../audit/audit-trail.ts";
import { hideStore } from "../auth/hide-store.ts";
import { actorOf, type Principal } from "../auth/principal.ts";
import { publicError } from "./error-response.ts";
import type { HttpDependencies } from "./http-dependencies.ts";
import type { RequestContext } from "./request-context.ts";

/** A request, as far as it is known. */
export interface Exchange {
  /** Its name in logs, metrics and the audit log. */
  operation: string;
  /** Successful requests are audited, too. Refusals always are. */
  isAudited: boolean;
  sandboxId: string | null;
  principal?: Principal;
  /** Another node serves the request: it measures and audits it. */
  isForwarded?: boolean;
}

export interface Answers {
  readonly context: RequestContext;
  readonly answer: () => Promise<Response>;
  readonly refuse: (error: SandboxError) => Response;
}

export interface Outcome {
  readonly context: Pick<RequestContext, "requestId" | "address">;
  readonly status: number;
  /** On the monotonic clock. */
  readonly startedAtMs: number;
  readonly failure?: SandboxError | undefined;
}

interface LogDependencies extends Pick<HttpDependencies, "metrics" | "logger"> {
  readonly audit: AuditSink;
}

/** Measures, logs and audits requests. */
export class RequestLog {
  readonly #deps: LogDependencies;
  readonly #clock: Clock;

  constructor(deps: LogDependencies, clock: Clock) {
    this.#deps = deps;
    this.#clock = clock;
  }

  /** Answers a request, and records its outcome. */
  async serve(request: Request, exchange: Exchange, { context, answer, refuse }: Answers): Promise<Response> {
    const startedAtMs = this.#clock.monotonicMs();
    let response: Response;
    let failure: SandboxError | undefined;
    try {
      response = await answer();
    } catch (thrown) {
      failure = request.signal.aborted ? SandboxError.from(thrown, "canceled") : publicError(thrown);
      response = refuse(hideStore(failure, exchange.principal));
    }
    await this.record(exchange, { context, status: response.status, startedAtMs, failure });
    return response;
  }

  /** Records the outcome of a request that was answered otherwise. */
  async record(exchange: Exchange, { context, status, startedAtMs, failure }: Outcome): Promise<void> {
    const { operation, isAudited, principal, sandboxId, isForwarded } = exchange;
    if (isForwarded) return;
    const { requestId, address } = context;
    const { audit, metrics, logger } = this.#deps;
    const durationMs = this.#clock.monotonicMs() - startedAtMs;
    metrics.observeRequest({ operation, status, seconds: durationMs / 1000 });
    const actor = principal === undefined ? null : actorOf(principal);
    const fields = { requestId, operation, status, durationMs, actor, sandboxId, reason: failure?.reason };
    if (failure?.code === "internal") logger.error({ ...fields, err: failure.cause ?? failure }, "request failed");
    else if (failure?.code === "data_loss")
      logger.error({ ...fields, err: failure }, "request failed: data is damaged");
    else logger[isAudited ? "info" : "debug"](fields, "request");
    // Refused for its rate: an entry for each would make the flood worse.
    const isFlood = failure?.reason === "rate_limited";
    if (!isFlood && (isAudited || status === 401 || status === 403)) {
      await audit.note({ principal, operation, sandboxId, status, requestId, address });
    }
  }
}
