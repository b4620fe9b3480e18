import { BlockList, isIPv6 } from "node:net";
import { parseCidr } from "@sandpiper/protocol";

/** Networks of both families, which never match each other: a `BlockList` of one would take IPv4 addresses for mapped ones. */
export class CidrSet {
  readonly #ipv4 = new BlockList();
  readonly #ipv6 = new BlockList();

  /** Texts that are no networks or addresses are ignored. */
  constructor(cidrs: readonly string[]) {
    for (const { address, prefix, family } of cidrs.map(parseCidr).filter((network) => network !== undefined)) {
      this.#of(family === "ipv6").addSubnet(address, prefix, family);
    }
  }

  has(address: string): boolean {
    const isV6 = isIPv6(address);
    // A mapped address is one of neither family here.
    if (isV6 && mapped.check(address, "ipv6")) return false;
    return this.#of(isV6).check(address, isV6 ? "ipv6" : "ipv4");
  }

  #of(isV6: boolean): BlockList {
    return isV6 ? this.#ipv6 : this.#ipv4;
  }
}

const mapped = new BlockList();
mapped.addSubnet("::ffff:0:0", 96, "ipv6");
