import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import { SandboxError } from "@sandpiper/core";
import { z } from "zod";
import type { Peers } from "../forward/peers.ts";
import { plain } from "../http/caller-address.ts";
import type { Callers } from "../http/callers.ts";
import { proxiedOrigin } from "../http/public-origin.ts";
import type { PreviewAddress, PreviewAddresses } from "../preview/preview-addresses.ts";
import type { PreviewContext } from "./preview-headers.ts";

/** What the node that forwards a preview's request says about it. */
const claimSchema = z.strictObject({
  mode: z.enum(["host", "path"]),
  origin: z.string(),
  forwardedFor: z.string(),
});

export interface VisitContext extends PreviewContext {
  /** Whether another node forwarded the request. */
  readonly isForwarded: boolean;
}

export interface ContextOptions {
  readonly addresses: PreviewAddresses;
  readonly callers: Pick<Callers, "isTrustedProxy">;
  readonly peers: Pick<Peers, "previewClaim"> | undefined;
}

/** The preview that a request is for; undefined for any other request. Throws for a name that no preview has, and a false claim. */
export function contextOf(request: IncomingMessage, options: ContextOptions): VisitContext | undefined {
  const { addresses, callers, peers } = options;
  const { url = "/", headers, socket } = request;
  const remote = plain(socket.remoteAddress ?? "");
  const isTrusted = callers.isTrustedProxy(request);
  const proxied = isTrusted ? proxiedOrigin(request) : undefined;
  const host = proxied?.host ?? headers.host ?? "";
  const address = addresses.find(host, url);
  if (address === undefined) return undefined;
  if (!url.startsWith("/")) throw malformed();
  const claim = address.mode === "path" ? peers?.previewClaim(request) : undefined;
  if (claim !== undefined) return claimed(claim, address);
  const isTls = (socket as TLSSocket).encrypted === true;
  const ownScheme = proxied?.scheme ?? (isTls ? "https" : "http");
  const scheme = address.mode === "host" ? addresses.schemeOf(host, ownScheme) : ownScheme;
  const before = isTrusted && headers["x-forwarded-for"];
  return {
    address,
    origin: `${scheme}://${host.toLowerCase()}`,
    forwardedFor: before ? `${before}, ${remote}` : remote,
    isForwarded: false,
  };
}

/** The value of the header that describes a request to another node. */
export function claimOf({ address, origin, forwardedFor }: PreviewContext): string {
  const claim: z.infer<typeof claimSchema> = { mode: address.mode, origin, forwardedFor };
  return Buffer.from(JSON.stringify(claim)).toString("base64url");
}

function claimed(claim: string, address: PreviewAddress): VisitContext {
  const parsed = claimSchema.safeParse(JSON.parse(Buffer.from(claim, "base64url").toString() || "null"));
  if (!parsed.success) throw malformed();
  const { mode, origin, forwardedFor } = parsed.data;
  const prefix = mode === "host" ? "" : address.prefix;
  return { address: { ...address, mode, prefix }, origin, forwardedFor, isForwarded: true };
}

function malformed(): SandboxError {
  return new SandboxError("malformed_request", {
    message: "the request for a preview has an invalid target",
    hint: "send a path that starts with /",
  });
}
