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
import type { Purpose } from "../handoff/locator.ts";
import { movedOn } from "../cluster/peer-errors.ts";
import type { AnyHandler, Bindings, Call } from "./call.ts";
import { credentialOf } from "./credential.ts";
import { errorResponse, publicError } from "./error-response.ts";
import { pathParams } from "./path-params.ts";
import type { HttpDependencies } from "./ports.ts";
import { readJsonBody } from "./read-body.ts";
import { noQuerySchema, readQuery } from "./read-query.ts";
import type { StrangerBudget } from "./anonymous-budget.ts";

/** What is the same for every request, whatever becomes of it. */
export interface RequestContext {
  readonly requestId: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface ServeOptions {
  readonly deps: HttpDependencies;
  /** These two are shared by all operations. */
  readonly credentials: CredentialWatch;
  readonly strangers: StrangerBudget;
}

/** What the others do needs a sandbox that runs. */
const purposes: Partial<Record<OperationId, Purpose>> = {
  getSandbox: "look",
  listCheckpoints: "look",
  getCheckpoint: "look",
  deleteSandbox: "end",
};

/**
 * Serves one operation of the table: who asks, whether they may, whether what they ask is well-formed, and only then
 * the handler. Nothing has any effect before all of that has been checked.
 */
export function serveOperation(id: OperationId, handler: AnyHandler, { deps, credentials, strangers }: ServeOptions) {
  const route: Route = routes[id];
  const { clock = systemClock } = deps;

  const answer = async (c: Context<{ Bindings: Bindings }>, context: RequestContext, caller: Caller) => {
    const request = c.req.raw;
    const { access, readOnly } = route;
    const given: Readonly<Record<string, string | undefined>> = c.req.param();
    caller.sandboxId = isSandboxId(given["id"]) ? given["id"] : null;
    if (access !== "anyone") {
      caller.principal = deps.authenticator.authenticate(credentialOf(request));
      if (deps.isStopping() || (id === "createSandbox" && deps.isDraining?.())) throw stopping();
    }
    const params = pathParams(given);
    if (caller.principal !== undefined) {
      // Whose the sandbox is, the service knows; here it is enough whether a sandbox's token is that sandbox's.
      const sandbox = params.id === "" ? undefined : { id: params.id as SandboxId, tenant: caller.principal.tenant };
      requireAccess(caller.principal, access, { readOnly, sandbox });
    }
    const query = readQuery(route.query ?? noQuerySchema, request.url);
    const body =
      route.body?.kind === "json"
        ? await readJsonBody(route.body.schema, request, { limitBytes: deps.bodyLimitBytes })
        : undefined;
    const found =
      caller.principal !== undefined && params.id !== "" && id !== "handoffSandbox"
        ? await deps.locator.locate(caller.principal, params.id, purposes[id])
        : undefined;
    if (found?.kind === "node") throw movedOn(params.id as SandboxId);
    const call = {
      operation: id,
      request,
      bindings: c.env ?? {},
      ...context,
      principal: caller.principal,
      params,
      query,
      body,
      saved: found?.kind === "store" ? found.saved : undefined,
      deps,
      open: () => deps.service.open(caller.principal as Principal, params.id, { readOnly }),
      watchCredential: (ended: (error: SandboxError) => void) => credentials.watch(credentialOf(request), ended),
    } as unknown as Call;
    const answered = await handler(call);
    if (id === "createSandbox") caller.sandboxId = (answered as SandboxResource).id;
    return respond(route, answered, context);
  };

  return async (c: Context<{ Bindings: Bindings }>, context: RequestContext): Promise<Response> => {
    const startedAtMs = clock.monotonicMs();
    const caller: Caller = { principal: undefined, sandboxId: null };
    let response: Response;
    let failure: SandboxError | undefined;
    try {
      response = await answer(c, context, caller);
    } catch (thrown) {
      failure = c.req.raw.signal.aborted ? SandboxError.from(thrown, "canceled") : publicError(thrown);
      response = errorResponse(failure, context);
    }
    const { status } = response;
    const durationMs = clock.monotonicMs() - startedAtMs;
    deps.metrics.observeRequest({ operation: id, status, seconds: durationMs / 1000 });
    record({ id, route, caller, status, failure, durationMs, requestId: context.requestId }, { deps, strangers });
    return response;
  };
}

interface Caller {
  principal: Principal | undefined;
  sandboxId: string | null;
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

/** Who changed what, or was not let, is kept; who looked is only logged. */
function record(
  { id, route, caller, status, failure, durationMs, requestId }: Served,
  { deps, strangers }: Omit<ServeOptions, "credentials">,
): void {
  const { principal, sandboxId } = caller;
  const actor = principal === undefined ? null : actorOf(principal);
  const fields = { requestId, operation: id, status, durationMs, actor, sandboxId };
  if (failure?.code === "internal") deps.logger.error({ ...fields, err: failure.cause ?? failure }, "request failed");
  else if (route.readOnly) deps.logger.debug(fields, "request");
  else deps.logger.info({ ...fields, reason: failure?.reason }, "request");
  if (route.readOnly && status !== 401 && status !== 403) return;
  if (principal === undefined && !strangers.take()) return;
  deps.audit.add({ actor, tenant: principal?.tenant ?? null, operation: id, sandboxId, status, requestId });
}

function stopping(): SandboxError {
  return new SandboxError("unavailable", {
    reason: "stopping",
    message: "the node is stopping",
    hint: "try again when it has started anew; sandboxes go on running",
  });
}
