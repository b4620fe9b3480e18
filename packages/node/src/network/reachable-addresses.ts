import { isIP } from "node:net";
import { type NetworkInterfaceInfo, networkInterfaces } from "node:os";
import { type Clock, systemClock } from "@sandpiper/core";
import { CidrSet } from "./cidr-set.ts";
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
const loopback = new CidrSet(["127.0.0.0/8", "0.0.0.0", "::1", "::"]);

/** Decides which addresses sandboxes may reach, whatever their policies say. */
export class ReachableAddresses {
  readonly #options: ReachableAddressesOptions;
  readonly #clock: Clock;
  readonly #allowed: CidrSet;
  readonly #allowsIpv6: boolean;
  #own: { readonly addresses: CidrSet; readonly hasIpv6: boolean; readonly atMs: number } | undefined;

  constructor(options: ReachableAddressesOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#allowed = new CidrSet(options.allowedCidrs);
    this.#allowsIpv6 = options.allowedCidrs.some((cidr) => cidr.includes(":"));
  }

  /** Whether connecting by IPv6 can succeed on this machine. */
  get hasIpv6(): boolean {
    return this.#allowsIpv6 || this.#ownAddresses().hasIpv6;
  }

  /** The address is as `isIP` accepts it; any other text, and one with a zone, is not reachable. */
  isReachable(address: string, port: number): boolean {
    if (isIP(address) === 0 || address.includes("%")) return false;
    const isOwn = loopback.has(address) || this.#ownAddresses().addresses.has(address);
    if (isOwn && this.#options.ownPorts?.().includes(port)) return false;
    if (this.#allowed.has(address)) return true;
    return !isOwn && isPublicAddress(address);
  }

  #ownAddresses() {
    const nowMs = this.#clock.monotonicMs();
    if (this.#own !== undefined && nowMs - this.#own.atMs < INTERFACES_AGE_MS) return this.#own;
    const infos = Object.values((this.#options.interfaces ?? networkInterfaces)()).flatMap((each) => each ?? []);
    const addresses = infos.map(({ address }) => address.split("%")[0] ?? "");
    const hasIpv6 = addresses.some((address) => address.includes(":") && isPublicAddress(address));
    this.#own = { addresses: new CidrSet(addresses), hasIpv6, atMs: nowMs };
    return this.#own;
  }
}
