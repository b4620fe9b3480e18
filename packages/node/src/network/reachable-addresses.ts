import { BlockList, isIP } from "node:net";
import { type NetworkInterfaceInfo, networkInterfaces } from "node:os";
import { type Clock, systemClock } from "@sandpiper/core";
import { parseCidr } from "@sandpiper/protocol";
import { isPublicAddress } from "./public-address.ts";

export interface ReachableAddressesOptions {
  /** Networks and addresses outside the public internet that the operator allows. */
  readonly allowedCidrs: readonly string[];
  /** Ports of this machine that sandboxes never reach, such as the node's own. */
  readonly ownPorts?: (() => readonly number[]) | undefined;
  readonly interfaces?: (() => NodeJS.Dict<NetworkInterfaceInfo[]>) | undefined;
  readonly clock?: Clock | undefined;
}

/** Reading the interfaces takes a system call per interface. */
const INTERFACES_AGE_MS = 5000;

/** Addresses that mean this machine whatever its interfaces are. */
const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("0.0.0.0", "ipv4");
loopback.addAddress("::1", "ipv6");
loopback.addAddress("::", "ipv6");

/** Decides which addresses sandboxes may reach, whatever their policies say. */
export class ReachableAddresses {
  readonly #options: ReachableAddressesOptions;
  readonly #clock: Clock;
  readonly #allowed = new BlockList();
  readonly #allowsIpv6: boolean;
  #own: { readonly addresses: BlockList; readonly hasIpv6: boolean; readonly atMs: number } | undefined;

  constructor(options: ReachableAddressesOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    const networks = options.allowedCidrs.map(parseCidr).filter((network) => network !== undefined);
    for (const { address, prefix, family } of networks) this.#allowed.addSubnet(address, prefix, family);
    this.#allowsIpv6 = networks.some(({ family }) => family === "ipv6");
  }

  /** Whether connecting by IPv6 can succeed on this machine. */
  get hasIpv6(): boolean {
    return this.#allowsIpv6 || this.#ownAddresses().hasIpv6;
  }

  /** The address is as `isIP` accepts it; any other text, and one with a zone, is not reachable. */
  isReachable(address: string, port: number): boolean {
    const version = isIP(address);
    if (version === 0 || address.includes("%")) return false;
    const family = version === 4 ? "ipv4" : "ipv6";
    const isOwn = loopback.check(address, family) || this.#ownAddresses().addresses.check(address, family);
    if (isOwn && this.#options.ownPorts?.().includes(port)) return false;
    // A mapped address would pass as the IPv4 address that it maps to.
    if (isMapped(address)) return false;
    if (this.#allowed.check(address, family)) return true;
    return !isOwn && isPublicAddress(address);
  }

  #ownAddresses() {
    const nowMs = this.#clock.monotonicMs();
    if (this.#own !== undefined && nowMs - this.#own.atMs < INTERFACES_AGE_MS) return this.#own;
    const addresses = new BlockList();
    let hasIpv6 = false;
    for (const { address, family } of Object.values((this.#options.interfaces ?? networkInterfaces)()).flatMap(
      (infos) => infos ?? [],
    )) {
      const [plain = ""] = address.split("%");
      addresses.addAddress(plain, family === "IPv4" ? "ipv4" : "ipv6");
      hasIpv6 ||= family === "IPv6" && isPublicAddress(plain);
    }
    this.#own = { addresses, hasIpv6, atMs: nowMs };
    return this.#own;
  }
}

const mapped = new BlockList();
mapped.addSubnet("::ffff:0:0", 96, "ipv6");

function isMapped(address: string): boolean {
  return address.includes(":") && mapped.check(address, "ipv6");
}
