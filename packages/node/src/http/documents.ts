import type { Context } from "hono";
import type { Bindings } from "./call.ts";
import { credentialOf } from "./credential.ts";
import { errorResponse, publicError } from "./error-response.ts";
import type { HttpDependencies } from "./http-dependencies.ts";
import type { RequestContext } from "./request-context.ts";

/** Serves a document to callers with any valid credential. */
export function serveDocument(deps: HttpDependencies, contentType: string, text: string) {
  return async (c: Context<{ Bindings: Bindings }>, context: RequestContext): Promise<Response> => {
    try {
      await deps.authenticator.admit(credentialOf(c.req.raw));
      return new Response(text, { headers: { ...context.headers, "content-type": contentType } });
    } catch (thrown) {
      return errorResponse(publicError(thrown), context);
    }
  };
}
