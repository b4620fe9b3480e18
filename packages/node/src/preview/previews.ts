import { type Clock, SandboxError } from "@sandpiper/core";
import type { LinkResource, NewLink, PreviewResource, SandboxId } from "@sandpiper/protocol";
import { mayAccess } from "../auth/access.ts";
import type { Principal } from "../auth/principal.ts";
import type { Ownership } from "../ownership/ownership.ts";
import type { SandboxChange, SandboxRecord } from "../records/sandbox-record.ts";
import type { SandboxAccess } from "../sandboxes/sandbox-access.ts";
import { beingDestroyed, ended } from "../sandboxes/sandbox-errors.ts";
import type { SandboxRegistry } from "../sandboxes/sandbox-registry.ts";
import { saveRecord } from "../sandboxes/save-record.ts";
import type { PreviewAddresses, PreviewTarget } from "./preview-addresses.ts";
import type { PreviewTokens } from "./preview-tokens.ts";

/** The query parameter that carries a link's signature. */
export const LINK_PARAMETER = "sandpiper_link";

const MAX_PUBLIC_PORTS = 256;

export interface PreviewsOptions {
  readonly addresses: PreviewAddresses;
  readonly tokens: PreviewTokens;
  readonly registry: SandboxRegistry;
  readonly access: SandboxAccess;
  readonly ownership: Ownership;
  readonly clock: Clock;
}

/** The fields of a record that decide who may use a preview. */
export type PreviewRecord = Pick<SandboxRecord, "id" | "tenant" | "publicPorts" | "linkEpoch">;

/** Who may use the previews of sandboxes, and under which URLs. */
export class Previews {
  readonly addresses: PreviewAddresses;
  readonly tokens: PreviewTokens;
  readonly #options: PreviewsOptions;
  readonly #listeners = new Set<(id: SandboxId) => void>();

  constructor(options: PreviewsOptions) {
    this.#options = options;
    this.addresses = options.addresses;
    this.tokens = options.tokens;
  }

  /** `origin` is that of the caller's request. */
  describe(principal: Principal, record: PreviewRecord, { port, origin }: PortAt): PreviewResource {
    const mayUse = mayAccess(principal, "sandbox", { readOnly: false, sandbox: record });
    return {
      port,
      url: this.addresses.urlOf({ sandboxId: record.id, port }, origin),
      isPublic: record.publicPorts.includes(port),
      trafficToken: mayUse ? this.tokens.trafficToken(record.id, record.linkEpoch) : null,
    };
  }

  async setPublic(principal: Principal, id: string, { port, isPublic }: PublicPort): Promise<SandboxRecord> {
    return await this.#change(principal, id, ({ publicPorts }) => {
      const others = publicPorts.filter((other) => other !== port);
      if (isPublic && others.length >= MAX_PUBLIC_PORTS) throw tooManyPublic();
      return { publicPorts: isPublic ? [...others, port] : others };
    });
  }

  /** Ends the validity of all links and of the traffic token. */
  async revoke(principal: Principal, id: string): Promise<void> {
    await this.#change(principal, id, ({ linkEpoch }) => ({ linkEpoch: linkEpoch + 1 }));
  }

  link(record: PreviewRecord, { port, expiresInMs, path, origin }: LinkOptions): LinkResource {
    const target: PreviewTarget = { sandboxId: record.id, port };
    const expiresAtMs = this.#options.clock.now().getTime() + expiresInMs;
    const url = new URL(this.addresses.urlOf(target, origin));
    const page = new URL(path, "http://page");
    url.pathname = url.pathname.slice(0, -1) + page.pathname;
    url.search = page.search;
    url.searchParams.set(LINK_PARAMETER, this.tokens.link(target, { linkEpoch: record.linkEpoch, expiresAtMs }));
    return { port, url: url.href, expiresAt: new Date(expiresAtMs).toISOString() };
  }

  /** Calls back when those who may use the previews of a sandbox have become fewer or other. */
  onChanged(listener: (id: SandboxId) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => this.#listeners.delete(listener) };
  }

  async #change(
    principal: Principal,
    id: string,
    change: (record: SandboxRecord) => SandboxChange,
  ): Promise<SandboxRecord> {
    const { registry, access, ownership } = this.#options;
    const record = access.find(principal, id, { readOnly: false });
    if (record.endedAt !== null) throw ended(record);
    if (registry.isBeingDestroyed(record.id)) throw beingDestroyed(record);
    // Serialized, because a running checkpoint stores the record it started with.
    const changed = await registry.serialize(record.id, async () => {
      const after = registry.change(record.id, change(access.find(principal, id, { readOnly: false })));
      await saveRecord(ownership, after);
      return after;
    });
    registry.emit("sandbox.updated", record);
    for (const listener of this.#listeners) listener(record.id);
    return changed;
  }
}

interface PortAt {
  readonly port: number;
  readonly origin: URL;
}

interface PublicPort {
  readonly port: number;
  readonly isPublic: boolean;
}

type LinkOptions = NewLink & Pick<PortAt, "origin">;

function tooManyPublic(): SandboxError {
  return new SandboxError("invalid_body", {
    message: `a sandbox has at most ${MAX_PUBLIC_PORTS} public ports`,
    hint: "make one of them private first",
    details: { issues: [] },
  });
}
