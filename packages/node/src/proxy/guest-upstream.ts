import { type IncomingMessage, request as requestHttp } from "node:http";
import { SandboxError } from "@sandpiper/core";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import type { GuestAgent } from "./guest-agent.ts";
import { clientHeaders, guestHeaders, type PreviewContext } from "./preview-headers.ts";
import type { Upstream } from "./upstream.ts";

/** The same limit as for the requests of clients. */
const MAX_HEADER_BYTES = 16 * 1024;

export interface GuestUpstreamOptions {
  readonly live: LiveSandbox;
  readonly agent: GuestAgent;
  readonly context: PreviewContext;
  readonly request: IncomingMessage;
  /** The path and query for the guest. */
  readonly path: string;
  /** The ports on which the sandbox listens; undefined if that is unknown. */
  readonly listening: () => Promise<readonly number[] | undefined>;
}

/** A server in a sandbox. It is not trusted: its answers are parsed, bounded and filtered. */
export function guestUpstream({ live, agent, context, request, path, listening }: GuestUpstreamOptions): Upstream {
  const { port } = context.address;
  const about = { id: live.id, port };
  return {
    open(upgrade) {
      const isChunked = request.headers["transfer-encoding"] !== undefined;
      const headers = guestHeaders(request.rawHeaders, context, {
        isChunked,
        lengthBytes: request.headers["content-length"],
      });
      if (upgrade !== undefined) headers.push("connection", "Upgrade", "upgrade", upgrade);
      const { method } = request;
      return requestHttp({ agent, port, method, path, headers, setHost: false, maxHeaderSize: MAX_HEADER_BYTES });
    },
    answerHeaders: ({ rawHeaders }) => clientHeaders(rawHeaders, context),
    async explain(thrown) {
      if (!SandboxError.is(thrown)) return badResponse(thrown, about);
      if (thrown.reason !== "connection_refused") return thrown;
      return notListening(about, await listening().catch(() => undefined), thrown);
    },
  };
}

function notListening(
  about: { readonly id: string; readonly port: number },
  listening: readonly number[] | undefined,
  cause: SandboxError,
): SandboxError {
  const known = listening?.length === 0 ? "it listens on no port" : `it listens on ${listening?.join(", ")}`;
  const others = listening === undefined ? "" : `; ${known}`;
  return new SandboxError("port_not_listening", {
    message: `nothing in sandbox ${about.id} listens on port ${about.port}${others}`,
    details: { ...about, ...(listening && { listening }) },
    cause,
  });
}

function badResponse(thrown: unknown, about: { readonly id: string; readonly port: number }): SandboxError {
  const code = String((thrown as NodeJS.ErrnoException | undefined)?.code ?? "");
  const what = code.startsWith("HPE_HEADER_OVERFLOW")
    ? `sent more than ${MAX_HEADER_BYTES} bytes of headers`
    : /^(HPE|ERR)_/.test(code)
      ? "did not answer in HTTP/1.1"
      : "closed the connection before it answered";
  return new SandboxError("bad_guest_response", {
    message: `the server on port ${about.port} of sandbox ${about.id} ${what}`,
    details: about,
    cause: thrown,
  });
}
