import { isIP } from "node:net";
import { isSandboxId, SandboxError, type SandboxId } from "@sandpiper/protocol";

/** One port of one sandbox. */
export interface PreviewTarget {
  readonly sandboxId: SandboxId;
  readonly port: number;
}

/** A request for a preview, as its address says. */
export interface PreviewAddress extends PreviewTarget {
  /** `host` previews have an origin of their own; `path` previews share the node's. */
  readonly mode: "host" | "path";
  /** The path before that of the guest, without a slash at its end; empty in `host` mode. */
  readonly prefix: string;
  /** The path for the guest, with its query. */
  readonly path: string;
}

export interface PreviewAddressesOptions {
  /** With its port, if any; null without a domain. */
  readonly domain: string | null;
  readonly scheme: "https" | "http";
  /** Hosts below the domain that serve the API all the same. */
  readonly apiHosts: readonly string[];
}

const LABEL = /^(\d{1,5})-([0-9a-f-]{36})$/;
const PATH = /^(\/v1\/sandboxes\/([^/?#]+)\/ports\/(\d{1,5}))(\/.*)$/s;

/** Knows which requests are for previews, and the URLs of previews. */
export class PreviewAddresses {
  readonly #options: PreviewAddressesOptions;

  constructor(options: PreviewAddressesOptions) {
    this.#options = options;
  }

  /**
   * The preview that a request is for; undefined for a request to the node's API. Throws `no_such_preview` for any other name
   * below the domain, so that the API never answers on an origin that a guest could control.
   */
  find(host: string | undefined, path: string): PreviewAddress | undefined {
    const label = this.#labelOf(host);
    if (label === undefined) return pathAddress(path);
    const target = targetOf(LABEL.exec(label));
    if (target === undefined) throw noSuchPreview(host ?? "");
    return { ...target, mode: "host", prefix: "", path };
  }

  /** `origin` is that of the caller's own request: without a domain, the preview is below it. */
  urlOf({ sandboxId, port }: PreviewTarget, origin: URL): string {
    const { domain, scheme } = this.#options;
    if (domain !== null) return `${scheme}://${port}-${sandboxId}.${domain}/`;
    // The certificate of a node with TLS has no name for each preview.
    if (origin.protocol === "http:" && isLoopback(origin.hostname)) {
      const ownPort = origin.port === "" ? "" : `:${origin.port}`;
      return `http://${port}-${sandboxId}.localhost${ownPort}/`;
    }
    return `${origin.origin}/v1/sandboxes/${sandboxId}/ports/${port}/`;
  }

  /** The scheme of a preview's host: a proxy before the node may have ended TLS. */
  schemeOf(host: string, own: string): string {
    const { domain, scheme } = this.#options;
    return domain !== null && nameOf(host).endsWith(`.${nameOf(domain)}`) ? scheme : own;
  }

  /** What stands before the domain; undefined if the host serves the API. */
  #labelOf(host: string | undefined): string | undefined {
    const name = nameOf(host ?? "");
    const domain = this.#options.domain === null ? undefined : nameOf(this.#options.domain);
    if (domain !== undefined && name.endsWith(`.${domain}`) && !this.#options.apiHosts.includes(name)) {
      return name.slice(0, -domain.length - 1);
    }
    // Other names below localhost are the operator's own.
    const local = name.endsWith(".localhost") ? name.slice(0, -".localhost".length) : "";
    return LABEL.test(local) ? local : undefined;
  }
}

function pathAddress(path: string): PreviewAddress | undefined {
  const [, prefix, id, port, rest] = PATH.exec(path) ?? [];
  if (prefix === undefined || rest === undefined) return undefined;
  const target = targetOf([path, port ?? "", id ?? ""]);
  return target && { ...target, mode: "path", prefix, path: rest };
}

function targetOf(match: readonly string[] | null): PreviewTarget | undefined {
  const [, port = "", id = ""] = match ?? [];
  const number = Number(port);
  return isSandboxId(id) && number >= 1 && number <= 65_535 ? { sandboxId: id, port: number } : undefined;
}

/** A host header without its port and the dot of a complete name, in lower case. */
function nameOf(host: string): string {
  return host.toLowerCase().replace(/:\d*$/, "").replace(/\.$/, "");
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || (isIP(hostname) === 4 && hostname.startsWith("127."));
}

function noSuchPreview(host: string): SandboxError {
  return new SandboxError("no_such_preview", { message: `no preview has the host name ${host.slice(0, 256)}` });
}
