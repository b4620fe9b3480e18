import { systemClock } from "@sandpiper/core";
import { type OperationId, type Route, routes } from "@sandpiper/protocol";
import { type Context, Hono } from "hono";
import { CredentialWatch } from "../auth/credential-watch.ts";
import { NODE_PROOF_HEADER } from "../cluster/node-proof.ts";
import { NUDGE_PATH } from "../cluster/nudge.ts";
import type { AnyHandler, Bindings } from "./call.ts";
import { corsHeaders, preflightResponse } from "./cors.ts";
import { errorResponse, methodNotAllowed, noSuchPath, publicError } from "./error-response.ts";
import { handlers } from "./handlers/handlers.ts";
import type { HttpDependencies } from "./http-dependencies.ts";
import { openApiDocument } from "./openapi.ts";
import { referencePage } from "./reference-page.ts";
import { type RequestContext, requestIdOf } from "./request-context.ts";
import { RequestLog } from "./request-log.ts";
import { serveOperation } from "./serve-operation.ts";

const PAGE_HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
};

/** A request of another node; only refusals are audited. */
const NUDGE = { operation: "nudge", isAudited: false, sandboxId: null };

type Serve = (c: Context<{ Bindings: Bindings }>, context: RequestContext) => Response | Promise<Response>;

/** Creates the node's HTTP interface: REST, its documents, and the paths beside it. */
export function createHttpApp(deps: HttpDependencies): Hono<{ Bindings: Bindings }> {
  const { randomUuid = () => crypto.randomUUID() } = deps;
  const app = new Hono<{ Bindings: Bindings }>();
  const { clock = systemClock } = deps;
  const credentials = new CredentialWatch(deps.authenticator, clock);
  const log = new RequestLog(deps, clock);

  const contextOf = ({ req: { raw }, env }: Context<{ Bindings: Bindings }>): RequestContext => {
    const requestId = requestIdOf(raw, randomUuid);
    const headers = { "x-request-id": requestId, "x-content-type-options": "nosniff", ...corsHeaders(raw, deps) };
    return { requestId, headers, address: env?.incoming?.socket.remoteAddress };
  };
  const served = (serve: Serve) => (c: Context<{ Bindings: Bindings }>) => serve(c, contextOf(c));
  const unlessPreflight = (serve: Serve): Serve => {
    return (c, context) => preflightResponse(c.req.raw, context.headers) ?? serve(c, context);
  };

  /** Counts requests that no key pays for. Not `/health`: a load balancer would take a busy node for a dead one. */
  const anonymous = (serve: Serve): Serve => {
    return (c, context) => {
      try {
        deps.callers.countAnonymous(c.env?.incoming);
      } catch (thrown) {
        return errorResponse(publicError(thrown), context);
      }
      return serve(c, context);
    };
  };

  const refuse: Serve = (c, context) => errorResponse(noSuchPath(c.req.method, c.req.path), context);
  const methods = new Map<string, string[]>();
  for (const [id, route] of Object.entries(routes) as [OperationId, Route][]) {
    const path = route.path.replaceAll(/\{(\w+)\}/g, ":$1");
    app.on(route.method, path, served(serveOperation(id, handlers[id] as AnyHandler, { deps, credentials, log })));
    methods.set(path, [...(methods.get(path) ?? []), route.method]);
  }
  const document = openApiDocument(deps.version);
  /** Needs no credential, so that a browser opens it: every node of a version has the same. */
  const serveDocument = (text: string, own: Readonly<Record<string, string>>): Serve => {
    return anonymous((_, { headers }) => new Response(text, { headers: { ...headers, ...own } }));
  };
  app.get("/openapi.json", served(serveDocument(JSON.stringify(document), { "content-type": "application/json" })));
  app.get("/docs", served(serveDocument(referencePage(document), PAGE_HEADERS)));
  for (const path of ["/openapi.json", "/docs"]) methods.set(path, ["GET"]);
  const { peers, mcp } = deps;
  if (peers !== undefined) {
    app.post(
      NUDGE_PATH,
      served((c, context) => {
        const request = c.req.raw;
        if (!request.headers.has(NODE_PROOF_HEADER)) return anonymous(refuse)(c, context);
        return log.serve(request, NUDGE, {
          context,
          answer: () =>
            deps.callers.countingRejection(deps.bodies.inTime(peers.receiveNudge(request)), c.env?.incoming),
          refuse: (error) => errorResponse(error, context),
        });
      }),
    );
  }
  if (mcp !== undefined) {
    const allowed = ["GET", "POST", "DELETE"];
    app.on(
      allowed,
      "/mcp",
      served((c, context) => mcp.serve(c.req.raw, context, c.env ?? {})),
    );
    methods.set("/mcp", allowed);
  }

  for (const [path, allowed] of methods) {
    const refuseMethod: Serve = ({ req }, context) =>
      errorResponse(methodNotAllowed(req.method, req.path, allowed), context);
    app.all(path, served(unlessPreflight(anonymous(refuseMethod))));
  }
  app.notFound(served(unlessPreflight(anonymous(refuse))));
  app.onError((thrown, c) => {
    const context = contextOf(c);
    deps.logger.error({ requestId: context.requestId, err: thrown }, "request failed");
    return errorResponse(publicError(thrown), context);
  });
  return app;
}
