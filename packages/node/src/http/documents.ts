import type { Context } from "hono";
import type { Bindings } from "./call.ts";
import { credentialOf } from "./credential.ts";
import { errorResponse, publicError } from "./error-response.ts";
import type { HttpDependencies } from "./ports.ts";
import type { RequestContext } from "./serve-operation.ts";

/** A text about the node, for whoever has any valid credential. */
export function serveDocument(deps: HttpDependencies, contentType: string, text: string) {
  return (c: Context<{ Bindings: Bindings }>, context: RequestContext): Response => {
    try {
      deps.authenticator.authenticate(credentialOf(c.req.raw));
      return new Response(text, { headers: { ...context.headers, "content-type": contentType } });
    } catch (thrown) {
      return errorResponse(publicError(thrown), context);
    }
  };
}
