import { SandboxError, systemClock } from "@sandpiper/core";
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
import type { AnonymousBudget } from "./anonymous-budget.ts";
import type { AnyHandler, Bindings, Call } from "./call.ts";
import { errorResponse, publicError } from "./error-response.ts";
import type { HttpDependencies } from "./http-dependencies.ts";
import { pathParams } from "./path-params.ts";
import { readJsonBody } from "./read-body.ts";
import { noQuerySchema, readQuery } from "./read-query.ts";
import { credentialOf, type RequestContext } from "./request-context.ts";

export interface ServeOptions {
  readonly deps: HttpDependencies;
  /** Shared by all operations. */
  readonly credentials: CredentialWatch;
  /** Shared by all operations. */
  readonly anonymous: AnonymousBudget;
}

/** Operations that work on a sandbox at rest without restoring it; all others use it. */
const purposes: Partial<Record<OperationId, "look" | Purpose>> = {
  getSandbox: "look",
  listCheckpoints: "look",
  getCheckpoint: "look",
  listEvents: "look",
  deleteSandbox: "end",
};

/**
 * Serves one operation: authenticates the caller, finds the sandbox, forwards the request if another node owns it,
 * checks the input, and calls the handler. Nothing takes effect before all checks have passed.
 */
export function serveOperation(id: OperationId, handler: AnyHandler, { deps, credentials, anonymous }: ServeOptions) {
  const route: Route = routes[id];
  const { clock = systemClock } = deps;
  const { access, readOnly } = route;
  const purpose = purposes[id] ?? "use";

  const answer = async (c: Context<{ Bindings: Bindings }>, context: RequestContext, caller: Caller) => {
    const request = c.req.raw;
    const given: Readonly<Record<string, string | undefined>> = c.req.param();
    caller.sandboxId = isSandboxId(given["id"]) ? given["id"] : null;
    const isForwarded = deps.peers?.isForwarded(request) ?? false;
    if (access !== "anyone") {
      caller.principal = await deps.authenticator.admit(credentialOf(request));
      if (deps.phase.isStopping || (id === "createSandbox" && deps.phase.isDraining)) throw stopping();
    }
    const { principal } = caller;
    const params = pathParams(given);
    if (principal !== undefined) {
      // Only a token's own sandbox is checked here: the sandbox's tenant is known once it is found.
      const sandbox = params.id === "" ? undefined : { id: params.id as SandboxId, tenant: principal.tenant };
      requireAccess(principal, access, { readOnly, sandbox });
    }
    const query = readQuery(route.query ?? noQuerySchema, request.url);
    // A handoff brings the sandbox to this node, so it is not forwarded.
    const subject = id === "listEvents" ? sandboxOf(query) : id === "handoffSandbox" ? "" : params.id;
    const bindings = c.env ?? {};
    let location =
      principal === undefined || subject === "" ? NOWHERE : await deps.locator.locate(principal, subject, { readOnly });
    if (location.kind === "node" && !isForwarded && deps.peers !== undefined) {
      const { requestId } = context;
      caller.isForwarded = true;
      return await deps.peers.forward(request, subject as SandboxId, location, { requestId, bindings });
    }
    const body =
      route.body?.kind === "json"
        ? await readJsonBody(route.body.schema, request, { limitBytes: deps.bodyLimitBytes })
        : undefined;
    if (principal !== undefined && subject !== "" && purpose !== "look") {
      location = await deps.locator.claim(principal, subject, { purpose, readOnly, location });
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
      saved: location.kind === "at_rest" ? location.saved : undefined,
      deps,
      open: () => live ?? deps.access.open(principal as Principal, params.id, { readOnly }),
      watchCredential: (onEnd: (error: SandboxError) => void) => credentials.watch(credentialOf(request), onEnd),
    } as unknown as Call;
    const answered = await handler(call);
    if (id === "createSandbox") caller.sandboxId = (answered as SandboxResource).id;
    return respond(route, answered, context);
  };

  return async (c: Context<{ Bindings: Bindings }>, context: RequestContext): Promise<Response> => {
    const startedAtMs = clock.monotonicMs();
    const caller: Caller = { principal: undefined, sandboxId: null, isForwarded: false };
    let response: Response;
    let failure: SandboxError | undefined;
    try {
      response = await answer(c, context, caller);
    } catch (thrown) {
      failure = c.req.raw.signal.aborted ? SandboxError.from(thrown, "canceled") : publicError(thrown);
      response = errorResponse(failure, context);
    }
    if (caller.isForwarded) return response;
    const { status } = response;
    const durationMs = clock.monotonicMs() - startedAtMs;
    deps.metrics.observeRequest({ operation: id, status, seconds: durationMs / 1000 });
    record({ id, route, caller, status, failure, durationMs, requestId: context.requestId }, { deps, anonymous });
    return response;
  };
}

const NOWHERE: Location = { kind: "unknown" };

/** The sandbox whose events are requested. The node that owns the sandbox has them. */
function sandboxOf(query: unknown): string {
  return (query as { readonly sandbox?: SandboxId } | undefined)?.sandbox ?? "";
}

interface Caller {
  principal: Principal | undefined;
  sandboxId: string | null;
  /** The sandbox's owner serves the request: it measures and audits it. */
  isForwarded: boolean;
}

function respond(route: Route, answer: unknown, { headers }: RequestContext): Response {
  if (answer instanceof Response) return answer;
  const { status } = route;
  if (route.answer === undefined) return new Response(null, { status, headers: { ...headers } });
  return new Response(JSON.stringify(answer), { status, headers: { ...headers, "content-type": "application/json" } });
}

interface Served {
  readonly id: OperationId;
  readonly route: Route;
  readonly caller: Caller;
  readonly status: number;
  readonly failure: SandboxError | undefined;
  readonly durationMs: number;
  readonly requestId: string;
}

/** Audits changes and refusals. Reads are only logged. */
function record(
  { id, route, caller, status, failure, durationMs, requestId }: Served,
  { deps, anonymous }: Omit<ServeOptions, "credentials">,
): void {
  const { principal, sandboxId } = caller;
  const actor = principal === undefined ? null : actorOf(principal);
  const fields = { requestId, operation: id, status, durationMs, actor, sandboxId };
  if (failure?.code === "internal") deps.logger.error({ ...fields, err: failure.cause ?? failure }, "request failed");
  else if (route.readOnly) deps.logger.debug(fields, "request");
  else deps.logger.info({ ...fields, reason: failure?.reason }, "request");
  if (route.readOnly && status !== 401 && status !== 403) return;
  if (principal === undefined && !anonymous.take()) return;
  deps.audit.add({ actor, tenant: principal?.tenant ?? null, operation: id, sandboxId, status, requestId });
}

function stopping(): SandboxError {
  return new SandboxError("node_stopping", {
    message: "the node is stopping and accepts no requests",
    hint: "retry when it has restarted; its sandboxes keep running",
  });
}
