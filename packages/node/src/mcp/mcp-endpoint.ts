import { isIP } from "node:net";
import { type Clock, SandboxError } from "@sandpiper/core";
import { type ErrorBody, errorBody } from "@sandpiper/protocol";
import type { AuditSink } from "../audit/audit-trail.ts";
import { requireAccess } from "../auth/access.ts";
import { CredentialWatch } from "../auth/credential-watch.ts";
import { type Authenticator, actorOf, type Principal } from "../auth/principal.ts";
import type { Bindings } from "../forward/request-forwarder.ts";
import { errorResponse } from "../http/error-response.ts";
import type { HttpDependencies } from "../http/http-dependencies.ts";
import { publicOrigin } from "../http/public-origin.ts";
import { readJson } from "../http/read-body.ts";
import { credentialOf, type RequestContext } from "../http/request-context.ts";
import { type Exchange, RequestLog } from "../http/request-log.ts";
import { requireOrigin } from "../http/require-origin.ts";
import { type Converse, HttpSessions, type SessionOwner } from "./http-sessions.ts";

/** Error codes of JSON-RPC and MCP. */
const codeOfReason: Readonly<Record<string, number>> = {
  malformed_json: -32700,
  batch_not_supported: -32600,
  no_such_session: -32001,
};
const SERVER_ERROR = -32000;

export interface McpEndpointOptions
  extends Pick<
    HttpDependencies,
    "metrics" | "logger" | "corsOrigins" | "bodyLimitBytes" | "callers" | "bodies" | "momentary"
  > {
  readonly audit: AuditSink;
  readonly authenticator: Authenticator;
  /** Creates a session's conversation, which has the rights of this credential. */
  readonly converse: Converse;
  /** Host names that clients may use; undefined allows all. */
  readonly knownHosts: readonly string[] | undefined;
  readonly maxSessions: number;
  readonly idleMs: number;
  readonly clock: Clock;
}

/**
 * `/mcp`: the Model Context Protocol over streamable HTTP, in sessions. The caller is authenticated before the body is
 * read. A session uses the node's REST interface with the caller's key.
 */
export class McpEndpoint {
  readonly #options: McpEndpointOptions;
  readonly #sessions: HttpSessions;
  readonly #log: RequestLog;
  #isClosing = false;

  constructor(options: McpEndpointOptions) {
    const { authenticator, converse, clock, logger, maxSessions: maxPerKey, idleMs } = options;
    const credentials = new CredentialWatch(authenticator, clock);
    const onError = (thrown: unknown) => logger.error({ err: thrown }, "could not clean up an MCP session");
    this.#options = options;
    this.#sessions = new HttpSessions({ converse, credentials, maxPerKey, idleMs, clock, onError });
    this.#log = new RequestLog(options, clock);
  }

  get sessionCount(): number {
    return this.#sessions.count;
  }

  async serve(request: Request, context: RequestContext, bindings: Bindings = {}): Promise<Response> {
    const operation = operationOf(request);
    const exchange: Exchange = { operation, isAudited: operation === "closeMcpSession", sandboxId: null };
    const response = await this.#log.serve(request, exchange, {
      context,
      answer: () => this.#answer(request, exchange, bindings),
      refuse: (error) => mcpErrorResponse(error, context),
    });
    for (const [name, value] of Object.entries(context.headers)) response.headers.set(name, value);
    return response;
  }

  /** Ends all sessions and accepts no new ones. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#sessions.close();
  }

  async #answer(request: Request, exchange: Exchange, bindings: Bindings): Promise<Response> {
    const { principal, ...owner } = await this.#admit(request, exchange, bindings);
    const id = request.headers.get("mcp-session-id");
    if (request.method !== "POST") return await this.#sessions.get(requireId(id), owner).handle(request, undefined);
    const { bodyLimitBytes: limitBytes, bodies, momentary } = this.#options;
    using memory = bodies.memory(owner.keyId);
    using counted = new DisposableStack();
    const countBody = (sizeBytes: number) => void counted.use(momentary.take(principal, "bodyBytes", sizeBytes));
    const body = await readJson(request, { limitBytes, bodies, memory, countBody });
    if (Array.isArray(body)) throw batchNotSupported();
    if (id !== null) return await this.#sessions.get(id, owner).handle(request, body);
    if (!isInitialize(body)) requireId(id);
    exchange.operation = "openMcpSession";
    exchange.isAudited = true;
    return await this.#sessions.open(owner).handle(request, body);
  }

  /** Makes all checks that do not need the body. */
  async #admit(
    request: Request,
    exchange: Exchange,
    bindings: Bindings,
  ): Promise<SessionOwner & { readonly principal: Principal }> {
    const { callers, knownHosts, corsOrigins } = this.#options;
    const origin = request.headers.get("origin") ?? undefined;
    const host = request.headers.get("host") ?? undefined;
    if (knownHosts !== undefined) requireKnownHost(host, knownHosts);
    requireOrigin({ origin, host }, corsOrigins);
    const credential = credentialOf(request);
    const principal = await callers.authenticate(credential, bindings.incoming);
    exchange.principal = principal;
    callers.count(principal);
    requireAccess(principal, "sandboxes", { readOnly: false });
    if (this.#isClosing) throw stopping();
    const { origin: ownOrigin } = publicOrigin({
      request,
      bindings,
      isForwarded: false,
      deps: { callers },
    });
    return { principal, keyId: actorOf(principal), credential: credential as string, origin: ownOrigin };
  }
}

/**
 * Protects against DNS rebinding: a malicious page whose name resolves to this machine sends that name as the host. An
 * IP address is safe.
 */
function requireKnownHost(host: string | undefined, known: readonly string[]): void {
  const name = URL.parse(`http://${host}`)?.hostname.replace(/^\[(.*)\]$/, "$1");
  if (name !== undefined && (name === "localhost" || isIP(name) !== 0 || known.includes(name))) return;
  throw new SandboxError("host_not_allowed", {
    message: `the host name ${JSON.stringify(host ?? "")} is not allowed for /mcp`,
    details: { host: host ?? null },
  });
}

/** Has the same status and headers as in REST, and a JSON-RPC error as its body. */
function mcpErrorResponse(error: SandboxError, context: RequestContext): Response {
  const { status, headers } = errorResponse(error, context);
  const { message, hint, ...data }: ErrorBody = errorBody(error, context.requestId);
  const text = hint === undefined ? message : `${message}; ${hint}`;
  const code = codeOfReason[error.reason] ?? SERVER_ERROR;
  const body = { jsonrpc: "2.0", error: { code, message: text, data: { ...data, hint } }, id: null };
  return new Response(JSON.stringify(body), { status, headers });
}

/** The name for metrics and the audit log. The operations of the session's sandboxes are audited by REST. */
function operationOf({ method }: Request): string {
  if (method === "GET") return "listenMcp";
  return method === "DELETE" ? "closeMcpSession" : "callMcp";
}

function isInitialize(body: unknown): boolean {
  return typeof body === "object" && body !== null && "method" in body && body.method === "initialize";
}

function requireId(id: string | null): string {
  if (id !== null) return id;
  throw new SandboxError("no_session", { message: "the request has no MCP session" });
}

function batchNotSupported(): SandboxError {
  return new SandboxError("batch_not_supported", {
    message: "the request's body is a batch of messages, which MCP no longer supports",
  });
}

function stopping(): SandboxError {
  return new SandboxError("node_stopping", {
    message: "the node is stopping and accepts no MCP requests",
    hint: "open a new session when the node has restarted, or on another node",
  });
}
