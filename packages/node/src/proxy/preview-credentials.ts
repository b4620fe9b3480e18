import type { IncomingHttpHeaders } from "node:http";
import { LINK_PARAMETER } from "../preview/previews.ts";

/** Header of the token that opens all ports of a sandbox. */
const TRAFFIC_TOKEN_HEADER = "x-sandpiper-traffic-token";

/** Only text of this form is the node's; the guest may have credentials of its own in the same headers. */
const NODE_CREDENTIAL = /^sp[kt]_/;
const BEARER = /^Bearer +(\S+)$/i;
const SUBPROTOCOL = /^bearer\.sp[kt]_/;
/** Cookies of the node and of load balancers before it. */
const NODE_COOKIE = /^(__(Host|Secure)-)?sandpiper[_-]/i;
const COOKIE = /^(__Host-)?sandpiper-preview$/;

/** What a request for a preview presents, and what is left of it for the guest. */
export interface PreviewCredentials {
  /** An API key or the token of a sandbox. */
  readonly credential: string | undefined;
  readonly trafficToken: string | undefined;
  /** The link in the query. */
  readonly link: string | undefined;
  /** Links in cookies: several if another origin of the same site has set one, too. */
  readonly cookies: readonly string[];
  /** The path and query without the link. */
  readonly path: string;
}

export function readCredentials(headers: IncomingHttpHeaders, path: string): PreviewCredentials {
  const bearer = BEARER.exec(headers.authorization ?? "")?.[1] ?? "";
  const apiKey = String(headers["x-api-key"] ?? "");
  const [link, rest] = takeLink(path);
  return {
    credential: [bearer, apiKey].find((text) => NODE_CREDENTIAL.test(text)),
    trafficToken: headers[TRAFFIC_TOKEN_HEADER]?.toString(),
    link,
    cookies: cookiesOf(headers.cookie)
      .filter(({ name }) => COOKIE.test(name))
      .map(({ value }) => value),
    path: rest,
  };
}

/** The value of a header for the guest without the node's credentials; undefined if nothing is left. */
export function withoutNodeCredentials(name: string, value: string): string | undefined {
  if (name === "authorization") return NODE_CREDENTIAL.test(BEARER.exec(value)?.[1] ?? "") ? undefined : value;
  if (name === "x-api-key") return NODE_CREDENTIAL.test(value) ? undefined : value;
  if (name === "cookie") return keptCookies(value);
  if (name === "referer") return value.includes(`${LINK_PARAMETER}=`) ? undefined : value;
  if (name !== "sec-websocket-protocol") return value;
  const kept = value.split(",").filter((offered) => !SUBPROTOCOL.test(offered.trim()));
  return kept.length === 0 ? undefined : kept.join(",").trim();
}

/** The cookie that carries a link on the preview's own origin. */
export function linkCookie(link: string, { isSecure, path, maxAgeMs }: CookieOptions): string {
  // The prefix makes browsers refuse a cookie of this name from any other origin of the site.
  const name = isSecure && path === "/" ? "__Host-sandpiper-preview" : "sandpiper-preview";
  const age = Math.max(0, Math.floor(maxAgeMs / 1000));
  return `${name}=${link}; Path=${path}; Max-Age=${age}; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
}

interface CookieOptions {
  readonly isSecure: boolean;
  readonly path: string;
  readonly maxAgeMs: number;
}

function keptCookies(header: string): string | undefined {
  const kept = cookiesOf(header).filter(({ name }) => !NODE_COOKIE.test(name));
  return kept.length === 0 ? undefined : kept.map(({ text }) => text).join("; ");
}

function cookiesOf(header: string | undefined) {
  const texts = header === undefined ? [] : header.split(";").map((text) => text.trim());
  return texts.map((text) => {
    const at = text.indexOf("=");
    return { text, name: at === -1 ? text : text.slice(0, at), value: at === -1 ? "" : text.slice(at + 1) };
  });
}

/** Leaves every other byte of the query as it was sent. */
function takeLink(path: string): [link: string | undefined, rest: string] {
  const at = path.indexOf("?");
  if (at === -1) return [undefined, path];
  const fields = path.slice(at + 1).split("&");
  const isLink = (field: string) => field.startsWith(`${LINK_PARAMETER}=`);
  const link = fields.find(isLink)?.slice(LINK_PARAMETER.length + 1);
  if (link === undefined) return [undefined, path];
  const others = fields.filter((field) => !isLink(field));
  return [link, others.length === 0 ? path.slice(0, at) : `${path.slice(0, at)}?${others.join("&")}`];
}
