import { type Clock, SandboxError } from "@sandpiper/core";
import { requireAccess } from "../auth/access.ts";
import { CredentialWatch } from "../auth/credential-watch.ts";
import { type Authenticator, actorOf, type Principal } from "../auth/principal.ts";
import { AnonymousBudget } from "../http/anonymous-budget.ts";
import { credentialOf } from "../http/credential.ts";
import { publicError } from "../http/error-response.ts";
import type { HttpDependencies } from "../http/http-dependencies.ts";
import { readJson } from "../http/read-body.ts";
import type { RequestContext } from "../http/request-context.ts";
import { requireOrigin } from "../http/require-origin.ts";
import type { Conversation } from "./http-session.ts";
import { HttpSessions, type SessionOwner } from "./http-sessions.ts";
import { mcpErrorResponse } from "./mcp-error-response.ts";
import { requireKnownHost } from "./require-known-host.ts";

export interface McpEndpointOptions
  extends Pick<HttpDependencies, "audit" | "metrics" | "logger" | "corsOrigins" | "bodyLimitBytes"> {
  readonly authenticator: Authenticator;
  /** Begins what a session is about; it may do what this credential may. */
  readonly converse: (credential: string) => Conversation;
  /** Names under which the node may be called; undefined: any. */
  readonly knownHosts: readonly string[] | undefined;
  readonly maxSessions: number;
  readonly idleMs: number;
  readonly clock: Clock;
}

/** Under these names metrics and the audit log keep what was asked. */
type Operation = "openMcpSession" | "callMcp" | "listenMcp" | "closeMcpSession";

interface Exchange {
  operation: Operation;
  principal: Principal | undefined;
}

/**
 * `/mcp`: the Model Context Protocol over streamable HTTP, in sessions. Whoever asks is checked as in REST before
 * anything of it is read, and what their session does goes through the node's own interface with their key.
 */
export class McpEndpoint {
  readonly #options: McpEndpointOptions;
  readonly #sessions: HttpSessions;
  readonly #strangers: AnonymousBudget;
  #isClosing = false;

  constructor(options: McpEndpointOptions) {
    const { authenticator, converse, clock, logger, maxSessions: maxPerKey, idleMs } = options;
    const credentials = new CredentialWatch(authenticator, clock);
    const onError = (thrown: unknown) => logger.error({ err: thrown }, "an MCP session could not be cleared away");
    this.#options = options;
    this.#sessions = new HttpSessions({ converse, credentials, maxPerKey, idleMs, clock, onError });
    this.#strangers = new AnonymousBudget(clock);
  }

  get sessionCount(): number {
    return this.#sessions.count;
  }

  async serve(request: Request, context: RequestContext): Promise<Response> {
    const { clock, metrics } = this.#options;
    const startedAtMs = clock.monotonicMs();
    const exchange: Exchange = { operation: operationOf(request), principal: undefined };
    let response: Response;
    let failure: SandboxError | undefined;
    try {
      response = await this.#answer(request, exchange);
    } catch (thrown) {
      failure = request.signal.aborted ? SandboxError.from(thrown, "canceled") : publicError(thrown);
      response = mcpErrorResponse(failure, context);
    }
    const { operation } = exchange;
    const { status } = response;
    const durationMs = clock.monotonicMs() - startedAtMs;
    metrics.observeRequest({ operation, status, seconds: durationMs / 1000 });
    this.#record(exchange, { status, failure, durationMs, requestId: context.requestId });
    for (const [name, value] of Object.entries(context.headers)) response.headers.set(name, value);
    return response;
  }

  /** Ends all sessions and takes no new ones. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#sessions.close();
  }

  async #answer(request: Request, exchange: Exchange): Promise<Response> {
    const owner = await this.#admit(request, exchange);
    const id = request.headers.get("mcp-session-id");
    if (request.method !== "POST") return await this.#sessions.get(requireId(id), owner).handle(request, undefined);
    const body = await readJson(request, { limitBytes: this.#options.bodyLimitBytes });
    if (Array.isArray(body)) throw isBatch();
    if (id !== null) return await this.#sessions.get(id, owner).handle(request, body);
    if (!isInitialize(body)) requireId(id);
    exchange.operation = "openMcpSession";
    return await this.#sessions.open(owner).handle(request, body);
  }

  /** Makes every check that needs no body. */
  async #admit(request: Request, exchange: Exchange): Promise<SessionOwner> {
    const { authenticator, knownHosts, corsOrigins } = this.#options;
    const origin = request.headers.get("origin") ?? undefined;
    const host = request.headers.get("host") ?? undefined;
    if (knownHosts !== undefined) requireKnownHost(host, knownHosts);
    requireOrigin({ origin, host }, corsOrigins);
    const credential = credentialOf(request);
    const principal = await authenticator.admit(credential);
    exchange.principal = principal;
    requireAccess(principal, "sandboxes", { readOnly: false });
    if (this.#isClosing) throw stopping();
    return { keyId: actorOf(principal), credential: credential as string };
  }

  /** Sessions that begin and end are kept, and who was not let in; what happens in them is kept as the operations that it is. */
  #record(
    { operation, principal }: Exchange,
    outcome: { status: number; failure: SandboxError | undefined; durationMs: number; requestId: string },
  ): void {
    const { logger, audit } = this.#options;
    const { status, failure, durationMs, requestId } = outcome;
    const actor = principal === undefined ? null : actorOf(principal);
    const fields = { requestId, operation, status, durationMs, actor, reason: failure?.reason };
    const isKept = operation === "openMcpSession" || operation === "closeMcpSession";
    if (failure?.code === "internal") logger.error({ ...fields, err: failure.cause ?? failure }, "request failed");
    else if (isKept) logger.info(fields, "request");
    else logger.debug(fields, "request");
    if (!isKept && status !== 401 && status !== 403) return;
    if (principal === undefined && !this.#strangers.take()) return;
    audit.add({ actor, tenant: principal?.tenant ?? null, operation, sandboxId: null, status, requestId });
  }
}

function operationOf({ method }: Request): Operation {
  if (method === "GET") return "listenMcp";
  return method === "DELETE" ? "closeMcpSession" : "callMcp";
}

function isInitialize(body: unknown): boolean {
  return typeof body === "object" && body !== null && "method" in body && body.method === "initialize";
}

function requireId(id: string | null): string {
  if (id !== null) return id;
  throw new SandboxError("invalid_argument", {
    reason: "no_session",
    message: "the request belongs to no MCP session",
    hint: "begin one with initialize, and send the header Mcp-Session-Id of its answer with every request",
  });
}

function isBatch(): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "batch_not_supported",
    message: "the body of the request is a batch of messages, which MCP knows no more",
    hint: "send each message in a request of its own",
  });
}

function stopping(): SandboxError {
  return new SandboxError("unavailable", {
    reason: "stopping",
    message: "the node is stopping",
    hint: "begin a new session when it has started anew, or with another node",
  });
}
