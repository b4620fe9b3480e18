import type { IncomingMessage } from "node:http";
import { FORWARDED_ORIGIN_HEADER } from "../forward/request-forwarder.ts";
import type { Call } from "./call.ts";

interface OriginCall extends Pick<Call, "request" | "bindings" | "isForwarded"> {
  readonly deps: Pick<Call["deps"], "callers">;
}

/** The origin at which the caller reaches the node. A trusted proxy, or another node that forwarded the request, names it. */
export function publicOrigin({ request, bindings: { incoming }, isForwarded, deps }: OriginCall): URL {
  const own = new URL(request.url);
  if (isForwarded) return URL.parse(request.headers.get(FORWARDED_ORIGIN_HEADER) ?? "") ?? own;
  if (incoming === undefined || !deps.callers.isTrustedProxy(incoming)) return own;
  const { scheme, host } = proxiedOrigin(incoming);
  return URL.parse(`${scheme ?? own.protocol.slice(0, -1)}://${host ?? own.host}`) ?? own;
}

/** What the proxy before the node says about the request. */
export function proxiedOrigin({ headers }: Pick<IncomingMessage, "headers">) {
  return { scheme: firstOf(headers["x-forwarded-proto"]), host: firstOf(headers["x-forwarded-host"]) };
}

function firstOf(header: string | string[] | undefined): string | undefined {
  return header?.toString().split(",")[0]?.trim() || undefined;
}
