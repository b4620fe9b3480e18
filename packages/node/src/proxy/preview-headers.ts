import { endToEnd } from "../forward/hop-by-hop.ts";
import type { PreviewAddress } from "../preview/preview-addresses.ts";
import { withoutNodeCredentials } from "./preview-credentials.ts";

/** A request as its client sees it. */
export interface PreviewContext {
  readonly address: PreviewAddress;
  /** The scheme and host of the preview in the client's eyes, such as https://8000-<id>.preview.example.com. */
  readonly origin: string;
  /** The client's address, after those of the proxies before it that the node trusts. */
  readonly forwardedFor: string;
}

/** Set by this proxy; a client's own values would be lies. */
const REPLACED = /^(host|content-length|forwarded|x-real-ip|x-forwarded-.*|x-sandpiper-.*)$/;

/** Would act on the node's own origin. */
const PATH_MODE_DROPPED = new Set([
  "set-cookie",
  "clear-site-data",
  "strict-transport-security",
  "service-worker-allowed",
  "www-authenticate",
  "report-to",
  "reporting-endpoints",
  "nel",
]);

/** Gives a page below the node's address an origin of its own, whatever the guest sends. */
const SANDBOX_POLICY = "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads";

const NODE_COOKIE = /^\s*(__(Host|Secure)-)?sandpiper[_-]/i;
const LOCAL = /^https?:\/\/(localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\])(?::(\d+))?(?=[/?#]|$)/i;

export interface GuestBody {
  readonly isChunked: boolean;
  readonly lengthBytes: string | undefined;
}

/** The headers for the guest, as a flat list: without the node's credentials, and as if the client was in the sandbox. */
export function guestHeaders(rawHeaders: readonly string[], context: PreviewContext, body: GuestBody): string[] {
  const { address, origin, forwardedFor } = context;
  const local = `localhost:${address.port}`;
  const headers = ["host", local];
  for (const [name, value] of endToEnd(rawHeaders)) {
    if (REPLACED.test(name) || (name === "cookie" && address.mode === "path")) continue;
    const kept = withoutNodeCredentials(name, value);
    if (kept === undefined) continue;
    // Development servers accept only their own name, and compare it with the origin of a request.
    const isOwnOrigin = name === "origin" || name === "referer";
    headers.push(name, isOwnOrigin ? asLocal(kept, { origin, local, prefix: address.prefix }) : kept);
  }
  if (body.isChunked) headers.push("transfer-encoding", "chunked");
  else if (body.lengthBytes !== undefined) headers.push("content-length", body.lengthBytes);
  const [scheme = "", host = ""] = origin.split("://");
  headers.push("x-forwarded-for", forwardedFor, "x-forwarded-proto", scheme, "x-forwarded-host", host);
  if (address.prefix !== "") headers.push("x-forwarded-prefix", address.prefix);
  return headers;
}

/** The headers for the client, as a flat list: nothing that reaches beyond the preview's own origin. */
export function clientHeaders(rawHeaders: readonly string[], { address, origin }: PreviewContext): string[] {
  const headers: string[] = [];
  const isPath = address.mode === "path";
  for (const [name, value] of endToEnd(rawHeaders)) {
    if (name === "alt-svc" || name.startsWith("x-sandpiper-") || (isPath && PATH_MODE_DROPPED.has(name))) continue;
    if (name === "set-cookie") {
      if (!NODE_COOKIE.test(value)) headers.push(name, value.replaceAll(/;\s*domain\s*=[^;]*/gi, ""));
    } else headers.push(name, name === "location" ? asSeen(value, { address, origin }) : value);
  }
  if (isPath) headers.push("content-security-policy", SANDBOX_POLICY, "x-content-type-options", "nosniff");
  return headers;
}

function asLocal(value: string, { origin, local, prefix }: { origin: string; local: string; prefix: string }): string {
  if (value === origin) return `http://${local}`;
  if (!value.startsWith(`${origin}/`)) return value;
  const path = value.slice(origin.length);
  return `http://${local}${path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : path}`;
}

/** A redirect to the guest's own address leads to the preview. */
function asSeen(location: string, { address, origin }: Pick<PreviewContext, "address" | "origin">): string {
  const [local, , port = "80"] = LOCAL.exec(location) ?? [];
  if (local !== undefined && Number(port) === address.port) {
    return `${origin}${address.prefix}${location.slice(local.length) || "/"}`;
  }
  return address.mode === "path" && /^\/(?!\/)/.test(location) ? `${address.prefix}${location}` : location;
}
