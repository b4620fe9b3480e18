import { SandboxError } from "@sandpiper/core";
import {
  isSandboxId,
  type OperationId,
  type Route,
  routes,
  type SandboxId,
  type SandboxResource,
} from "@sandpiper/protocol";
import type { Context } from "hono";
import { requireAccess } from "../auth/access.ts";
import type { CredentialWatch } from "../auth/credential-watch.ts";
import { actorOf, type Principal } from "../auth/principal.ts";
import { movedOn } from "../cluster/peer-errors.ts";
import type { Purpose } from "../handoff/handoff-receiver.ts";
import type { Location } from "../handoff/locator.ts";
import type { AnyHandler, Bindings, Call } from "./call.ts";
import { errorResponse } from "./error-response.ts";
import type { HttpDependencies } from "./http-dependencies.ts";
import { pathParams } from "./path-params.ts";
import { readJsonBody } from "./read-body.ts";
import { noQuerySchema, readQuery } from "./read-query.ts";
import { credentialOf, type RequestContext } from "./request-context.ts";
import type { Exchange, RequestLog } from "./request-log.ts";

export interface ServeOptions {
  readonly deps: HttpDependencies;
  /** Shared by all operations. */
  readonly credentials: CredentialWatch;
  /** Shared by all operations. */
  readonly log: RequestLog;
}

/** Operations that work on a sandbox at rest or on a paused one without restoring it; all others use it. */
const purposes: Partial<Record<OperationId, "look" | Purpose>> = {
  getSandbox: "look",
  getSandboxHealth: "look",
  listCheckpoints: "look",
  getCheckpoint: "look",
  listEvents: "look",
  getNetworkLog: "look",
  getNetworkSuggestion: "look",
  listNetworkRequests: "look",
  getPreview: "look",
  createLink: "look",
  setPreview: "manage",
  revokeLinks: "manage",
  decideNetworkRequest: "manage",
  updateSandbox: "manage",
  createCheckpoint: "manage",
  deleteCheckpoint: "manage",
  forkSandbox: "manage",
  pauseSandbox: "manage",
  resumeSandbox: "manage",
  rollbackSandbox: "manage",
  rebuildSandbox: "manage",
  stopSandbox: "manage",
  startSandbox: "manage",
  deleteSandbox: "end",
};

/** Operations that find the sandbox themselves, so that the node that is asked serves them, not the owner. */
const movers: ReadonlySet<OperationId> = new Set(["handoffSandbox", "moveSandbox"]);

/**
 * Serves one operation: authenticates the caller, finds the sandbox, forwards the request if another node owns it,
 * checks the input, and calls the handler. Nothing takes effect before all checks have passed.
 */
export function serveOperation(id: OperationId, handler: AnyHandler, { deps, credentials, log }: ServeOptions) {
  const route: Route = routes[id];
  const { access, readOnly } = route;
  const purpose = purposes[id] ?? "use";

  const answer = async (c: Context<{ Bindings: Bindings }>, { context, exchange, counted }: Serving) => {
    const request = c.req.raw;
    const given: Readonly<Record<string, string | undefined>> = c.req.param();
    exchange.sandboxId = isSandboxId(given["id"]) ? given["id"] : null;
    const isForwarded = deps.callers.countingFailure(() => deps.peers?.isForwarded(request) ?? false, c.env?.incoming);
    if (access !== "anyone") {
      exchange.principal = await deps.callers.authenticate(credentialOf(request), c.env?.incoming);
      if (!isForwarded) deps.callers.count(exchange.principal);
      if (deps.phase.isStopping || (id === "createSandbox" && deps.phase.isDraining)) throw stopping();
    }
    const { principal } = exchange;
    const params = pathParams(given);
    if (principal !== undefined) {
      // Only a token's own sandbox is checked here: the sandbox's tenant is known once it is found.
      const sandbox = params.id === "" ? undefined : { id: params.id as SandboxId, tenant: principal.tenant };
      requireAccess(principal, access, { readOnly, sandbox });
    }
    const count = (measure: "requests" | "bodyBytes", amount: number) => {
      // Nothing ends the count of a request whose caller has left.
      if (principal !== undefined && !counted.disposed) counted.use(deps.momentary.take(principal, measure, amount));
    };
    count("requests", 1);
    const countBody = (sizeBytes: number) => count("bodyBytes", sizeBytes);
    const query = readQuery(route.query ?? noQuerySchema, request.url);
    const subject = id === "listEvents" ? sandboxOf(query) : movers.has(id) ? "" : params.id;
    const bindings = c.env ?? {};
    let location =
      principal === undefined || subject === "" ? NOWHERE : await deps.locator.locate(principal, subject, { readOnly });
    if (location.kind === "node" && !isForwarded && deps.peers !== undefined) {
      const { requestId } = context;
      exchange.isForwarded = true;
      return await deps.peers.forward(request, subject as SandboxId, location, { requestId, bindings });
    }
    // The node that forwarded the request locates the sandbox again, and moves it to itself.
    if (location.kind === "unreachable" && isForwarded) throw movedOn(subject);
    using memory = deps.bodies.memory(principal === undefined ? "" : actorOf(principal));
    const { bodyLimitBytes: limitBytes, bodies } = deps;
    const body =
      route.body?.kind === "json"
        ? await readJsonBody(route.body.schema, request, { limitBytes, bodies, memory, countBody })
        : undefined;
    if (principal !== undefined && subject !== "" && purpose !== "look") {
      const { signal } = request;
      location = await deps.locator.claim(principal, subject, { purpose, readOnly, location, signal });
    }
    if (location.kind === "node") throw movedOn(subject);
    const live = location.kind === "here" ? location.live : undefined;
    const call = {
      operation: id,
      request,
      bindings,
      ...context,
      principal,
      isForwarded,
      params,
      query,
      body,
      saved: storedOf(location),
      memory,
      deps,
      countBody,
      open: () => live ?? deps.access.open(principal as Principal, params.id, { readOnly }),
      watchCredential: (onEnd: (error: SandboxError) => void) => credentials.watch(credentialOf(request), onEnd),
    } as unknown as Call;
    const answered = await handler(call);
    if (id === "createSandbox") exchange.sandboxId = (answered as SandboxResource).id;
    return respond(route, answered, context);
  };

  return (c: Context<{ Bindings: Bindings }>, context: RequestContext): Promise<Response> => {
    const exchange: Exchange = { operation: id, isAudited: !readOnly, sandboxId: null };
    return log.serve(c.req.raw, exchange, {
      context,
      answer: () => countUntilAnswered(c, (counted) => answer(c, { context, exchange, counted })),
      refuse: (error) => errorResponse(error, context),
    });
  };
}

interface Serving {
  readonly context: RequestContext;
  readonly exchange: Exchange;
  /** What counts towards the caller's quotas until the request is answered. */
  readonly counted: DisposableStack;
}

/** Disposes what `work` counted when the answer's last byte is sent, or the caller has left. */
async function countUntilAnswered<T>(
  { env }: Context<{ Bindings: Bindings }>,
  work: (counted: DisposableStack) => Promise<T>,
): Promise<T> {
  const counted = new DisposableStack();
  const outgoing = env?.outgoing;
  outgoing?.once("close", () => counted.dispose());
  try {
    return await work(counted);
  } finally {
    // Without a connection, as for calls of this process, nothing else marks the end.
    if (outgoing === undefined || outgoing.closed) counted.dispose();
  }
}

const NOWHERE: Location = { kind: "unknown" };

function storedOf(location: Location): Call["saved"] {
  if (location.kind === "unreachable") return { ...location.saved, owner: location.id };
  return location.kind === "at_rest" ? { ...location.saved, owner: null } : undefined;
}

/** The sandbox whose events are requested. The node that owns the sandbox has them. */
function sandboxOf(query: unknown): string {
  return (query as { readonly sandbox?: SandboxId } | undefined)?.sandbox ?? "";
}

function respond(route: Route, answer: unknown, { headers }: RequestContext): Response {
  if (answer instanceof Response) return answer;
  const { status } = route;
  if (route.answer === undefined) return new Response(null, { status, headers: { ...headers } });
  return new Response(JSON.stringify(answer), { status, headers: { ...headers, "content-type": "application/json" } });
}

function stopping(): SandboxError {
  return new SandboxError("node_stopping", {
    message: "the node is stopping and accepts no requests",
    hint: "retry when it has restarted; its sandboxes keep running",
  });
}
