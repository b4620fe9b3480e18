import type { NetworkInterfaceInfo } from "node:os";
import { FakeClock } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { ReachableAddresses } from "./reachable-addresses.ts";

const info = (address: string, family: "IPv4" | "IPv6") => ({ address, family }) as NetworkInterfaceInfo;
const interfaces = () => ({
  eth0: [info("93.184.216.34", "IPv4"), info("2606:4700::1", "IPv6"), info("fe80::1%eth0", "IPv6")],
});

describe("reachable addresses", () => {
  const closed = new ReachableAddresses({ allowedCidrs: [], interfaces });

  it("are public ones", () => {
    for (const address of ["1.1.1.1", "2606:4700::1111"]) expect(closed.isReachable(address, 443)).toBe(true);
  });

  it.each([
    ["the node's own", "93.184.216.34"],
    ["the node's own in IPv6", "2606:4700::1"],
    ["the node's own, written in full", "2606:4700:0:0:0:0:0:1"],
    ["loopback", "127.0.0.1"],
    ["private", "10.0.0.1"],
    ["metadata", "169.254.169.254"],
    ["a stand-in", "198.18.0.1"],
    ["mapped", "::ffff:1.1.1.1"],
    ["mapped in hexadecimal", "::ffff:101:101"],
    ["with a zone", "fe80::1%eth0"],
    ["odd", "0x7f.1"],
    ["no address", "localhost"],
    ["empty", ""],
  ])("are not: %s", (_, address) => {
    expect(closed.isReachable(address, 443)).toBe(false);
  });

  it("are also those that the operator allows, but never mapped ones or the node's own ports", () => {
    const allowedCidrs = ["10.1.0.0/16", "127.0.0.0/8", "93.184.216.34", "::/0"];
    const open = new ReachableAddresses({ allowedCidrs, interfaces, ownPorts: () => [4747] });
    expect(open.isReachable("10.1.2.3", 80)).toBe(true);
    expect(open.isReachable("10.2.2.3", 80)).toBe(false);
    expect(open.isReachable("127.0.0.1", 80)).toBe(true);
    expect(open.isReachable("93.184.216.34", 80)).toBe(true);
    expect(open.isReachable("::ffff:10.1.2.3", 80)).toBe(false);
    for (const own of ["127.0.0.1", "127.9.9.9", "93.184.216.34", "::1", "::", "2606:4700::1"]) {
      expect(open.isReachable(own, 4747), own).toBe(false);
    }
    expect(open.isReachable("10.1.2.3", 4747)).toBe(true);
  });

  it("follow the node's interfaces as they change", () => {
    const clock = new FakeClock();
    const addresses = [info("93.184.216.34", "IPv4")];
    const reachable = new ReachableAddresses({ allowedCidrs: [], clock, interfaces: () => ({ eth0: [...addresses] }) });
    expect(reachable.isReachable("93.184.216.35", 80)).toBe(true);
    expect(reachable.hasIpv6).toBe(false);
    addresses.push(info("93.184.216.35", "IPv4"), info("2606:4700::1", "IPv6"));
    clock.run(10_000);
    expect(reachable.isReachable("93.184.216.35", 80)).toBe(false);
    expect(reachable.hasIpv6).toBe(true);
  });
});
