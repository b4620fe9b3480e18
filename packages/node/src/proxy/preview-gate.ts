import type { IncomingMessage } from "node:http";
import { type Clock, SandboxError } from "@sandpiper/core";
import { mayAccess, requireAccess } from "../auth/access.ts";
import type { Principal } from "../auth/principal.ts";
import { tokenHolder } from "../auth/token-holder.ts";
import type { Callers } from "../http/callers.ts";
import type { PreviewTarget } from "../preview/preview-addresses.ts";
import type { PreviewGrant } from "../preview/preview-tokens.ts";
import type { PreviewRecord, Previews } from "../preview/previews.ts";
import { noSuchSandbox } from "../records/no-such-sandbox.ts";
import type { SqliteSandboxRecords } from "../records/sqlite-sandbox-records.ts";
import type { PreviewCredentials } from "./preview-credentials.ts";

export interface PreviewGateOptions {
  readonly callers: Callers;
  readonly previews: Previews;
  readonly records: Pick<SqliteSandboxRecords, "get">;
  readonly clock: Clock;
}

/** Someone who uses a preview. */
export interface Visitor {
  readonly principal: Principal;
  /** Whether the principal is the caller's own, and not that of an anonymous visitor. */
  readonly isCaller: boolean;
}

interface FoundVisitor extends Visitor {
  readonly record: PreviewRecord | undefined;
}

/** A visitor that may use the preview. */
export interface Admission {
  /** When the right ends by itself. */
  readonly expiresAtMs?: number | undefined;
  /** The link of the query, to be kept in a cookie. */
  readonly link?: string | undefined;
  /** Whether it is still allowed after the sandbox's previews have changed. */
  readonly isAllowed: (record: PreviewRecord) => boolean;
}

/** Decides who may use a preview: those who may use the sandbox, those with a link or traffic token, or everyone. */
export class PreviewGate {
  readonly #options: PreviewGateOptions;

  constructor(options: PreviewGateOptions) {
    this.#options = options;
  }

  /** Finds out who asks, before it is known where the sandbox is. Throws `unauthenticated` for an invalid key or token. */
  async identify(
    { sandboxId }: PreviewTarget,
    { credential }: PreviewCredentials,
    request: IncomingMessage,
  ): Promise<Visitor> {
    const { callers, records } = this.#options;
    if (credential === undefined) return { principal: tokenHolder(sandboxId, records), isCaller: false };
    const principal = await callers.authenticate(credential, request);
    requireAccess(principal, "sandbox", { readOnly: false, sandbox: { id: sandboxId, tenant: principal.tenant } });
    return { principal, isCaller: true };
  }

  /** Throws why the visitor may not use the preview. `record` is undefined if the sandbox does not exist. */
  admit(target: PreviewTarget, given: PreviewCredentials, { principal, isCaller, record }: FoundVisitor): Admission {
    if (isCaller) {
      if (record === undefined || !mayUse(principal, record)) throw noSuchSandbox(target.sandboxId);
      return { isAllowed: (changed) => mayUse(principal, changed) };
    }
    const admission = this.#byGrant(target, given, record) ?? this.#byRecord(target, record);
    if (admission === undefined) throw this.#refusal(given);
    // Only the holder of a grant learns that the sandbox is gone: its id alone reveals nothing.
    if (record === undefined) throw noSuchSandbox(target.sandboxId);
    return admission;
  }

  #byGrant(target: PreviewTarget, given: PreviewCredentials, record: PreviewRecord | undefined): Admission | undefined {
    const { previews, clock } = this.#options;
    const isCurrent = ({ linkEpoch, expiresAtMs }: PreviewGrant) =>
      (record === undefined || record.linkEpoch === linkEpoch) &&
      (expiresAtMs === undefined || expiresAtMs > clock.now().getTime());
    const links = [given.link, ...given.cookies].filter((link) => link !== undefined);
    const grants = [
      ...links.map((link) => previews.tokens.verifyLink(target, link)),
      given.trafficToken && previews.tokens.verifyTrafficToken(target.sandboxId, given.trafficToken),
    ];
    const at = grants.findIndex((grant) => grant && isCurrent(grant));
    const grant = grants[at];
    if (!grant) return undefined;
    return {
      expiresAtMs: grant.expiresAtMs,
      link: at === 0 ? given.link : undefined,
      isAllowed: ({ linkEpoch, publicPorts }) => linkEpoch === grant.linkEpoch || publicPorts.includes(target.port),
    };
  }

  #byRecord({ port }: PreviewTarget, record: PreviewRecord | undefined): Admission | undefined {
    const isAllowed = ({ publicPorts }: PreviewRecord) => publicPorts.includes(port);
    return record !== undefined && isAllowed(record) ? { isAllowed } : undefined;
  }

  #refusal({ link, trafficToken, cookies }: PreviewCredentials): SandboxError {
    return link === undefined && trafficToken === undefined && cookies.length === 0 ? isPrivate() : invalidLink();
  }
}

function mayUse(principal: Principal, record: PreviewRecord): boolean {
  return mayAccess(principal, "sandbox", { readOnly: false, sandbox: record });
}

function isPrivate(): SandboxError {
  return new SandboxError("preview_private", { message: "this preview is private, or does not exist" });
}

function invalidLink(): SandboxError {
  return new SandboxError("invalid_link", {
    message: "the link has expired, was revoked, or belongs to another preview",
  });
}
