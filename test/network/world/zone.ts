import { addresses } from "./addresses.ts";
import type { DnsQuestion, DnsRecord } from "./dns-message.ts";

type Answer = readonly DnsRecord[] | "name error" | "server failure" | "silence";

/** The names that the standard bundles allow; here they lead to the tests' mirrors. */
const mirrorNames = [
  "pypi.org",
  "files.pythonhosted.org",
  "registry.npmjs.org",
  "deb.debian.org",
  "security.debian.org",
  "github.com",
  "proxy.golang.org",
  "sum.golang.org",
  "index.crates.io",
  "static.crates.io",
] as const;

const hosts: Readonly<Record<string, string>> = {
  ...Object.fromEntries(mirrorNames.map((name) => [name, addresses.site])),
  "other.example": addresses.other,
  "unlisted.example": addresses.unlisted,
  "private.example": addresses.private10,
  "metadata.example": addresses.metadata,
  "loopback.example": "127.0.0.1",
  "zero.example": "0.0.0.0",
  "broadcast.example": "255.255.255.255",
};

const aliases: Readonly<Record<string, string>> = {
  "alias.example": "site.example",
  "alias-to-private.example": "private.example",
  "alias-to-metadata.example": "metadata.example",
};

/** Every name with a certificate. Clients accept no wildcard right below a top-level domain. */
export const certifiedNames: readonly string[] = [
  ...Object.keys(hosts),
  ...Object.keys(aliases),
  ...["site", "v6", "dual", "mixed", "mapped"].map((name) => `${name}.example`),
  "*.site.example",
  "*.rebinding.example",
];

/** What the tests' DNS server answers. It counts the queries for each name and type. */
export class Zone {
  readonly #queries = new Map<string, number>();

  /** How often each name was asked for, by name and type: "site.example A". */
  get queries(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#queries);
  }

  answer({ name, type }: Pick<DnsQuestion, "name" | "type">): Answer {
    const key = `${name} ${type}`;
    const count = (this.#queries.get(key) ?? 0) + 1;
    this.#queries.set(key, count);
    if (name === "slow.example") return "silence";
    if (name === "broken.example") return "server failure";
    if (type === undefined) return [];
    const target = aliases[name];
    if (target !== undefined) return [{ name, type: "CNAME", value: target }, ...this.#records(target, type, count)];
    return this.#exists(name) ? this.#records(name, type, count) : "name error";
  }

  #exists(name: string): boolean {
    return (
      Object.hasOwn(hosts, name) || /(^|\.)(site|tunnel|v6|dual|mixed|mapped)\.example$/.test(name) || isRebinding(name)
    );
  }

  #records(name: string, type: string, count: number): DnsRecord[] {
    const a = (value: string): DnsRecord[] => (type === "A" ? [{ name, type, value }] : []);
    const aaaa = (value: string): DnsRecord[] => (type === "AAAA" ? [{ name, type, value }] : []);
    if (isRebinding(name)) return a(count === 1 ? addresses.site : addresses.private10);
    if (name === "v6.example") return aaaa(addresses.siteV6);
    if (name === "dual.example") return [...a(addresses.site), ...aaaa(addresses.siteV6)];
    if (name === "mapped.example") return aaaa("::ffff:a63:a");
    // A public address and a private one in the same answer.
    if (name === "mixed.example") return [...a(addresses.private10), ...a(addresses.site)];
    return a(hosts[name] ?? addresses.site);
  }
}

/** The first answer is public, later ones are private. Each test uses its own name, because the server counts. */
function isRebinding(name: string): boolean {
  return name.endsWith(".rebinding.example");
}
