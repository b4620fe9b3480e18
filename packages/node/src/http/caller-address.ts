import type { IncomingMessage } from "node:http";
import { BlockList, isIP, isIPv6 } from "node:net";

type Connection = Pick<IncomingMessage, "headers"> & {
  readonly socket: { readonly remoteAddress?: string | undefined };
};

/** Finds the address of a caller, also behind trusted proxies. */
export class CallerAddresses {
  readonly #trusted = new BlockList();

  constructor(trustedProxies: readonly string[]) {
    for (const proxy of trustedProxies) {
      const [address = "", prefix] = proxy.split("/");
      const family = isIPv6(address) ? "ipv6" : "ipv4";
      if (prefix === undefined) this.#trusted.addAddress(address, family);
      else this.#trusted.addSubnet(address, Number(prefix), family);
    }
  }

  isTrusted(address: string): boolean {
    return this.#trusted.check(address, isIPv6(address) ? "ipv6" : "ipv4");
  }

  /** Undefined for a caller in this process. */
  of({ socket, headers }: Connection): string | undefined {
    let address = socket.remoteAddress && plain(socket.remoteAddress);
    const hops = [headers["x-forwarded-for"] ?? []].flat().join(",").split(",");
    // Each proxy appends the address of the previous hop, so only what trusted ones wrote is believed.
    while (address !== undefined && this.isTrusted(address)) {
      const hop = plain(hops.pop()?.trim() ?? "");
      if (isIP(hop) === 0) break;
      address = hop;
    }
    return address && networkOf(address);
  }
}

/** The address without the prefix of an IPv4 address that arrived over IPv6. */
export function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "");
}

/** One caller usually has a whole /64 of IPv6 addresses, which counts as one. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = "", tail = ""] = (address.split("%")[0] ?? "").split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === "" ? [] : tail.split(":");
  const middle = address.includes("::") ? Array.from({ length: 8 - left.length - right.length }, () => "0") : [];
  const groups = [...left, ...middle, ...right].slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${groups.join(":")}::/64`;
}
