import type { LookupAddress } from "node:dns";
import { describe, expect, it } from "vitest";
import { isPublicAddress, publicLookup } from "./public-address.ts";

describe("isPublicAddress", () => {
  it.each(["1.1.1.1", "93.184.216.34", "172.32.0.1", "2606:4700::1111"])("accepts %s", (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  it.each([
    "127.0.0.1",
    "127.9.9.9",
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:1.1.1.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::a00:1",
    "2002:7f00:1::",
    "3fff::1",
    "192.88.99.1",
    "0177.0.0.1",
    "0x7f.0.0.1",
    "127.1",
    "2130706433",
    "2001::1",
    "fc00::1",
    "fd12::1",
    "fe80::1",
    "fe80::1%eth0",
    "ff02::1",
    "localhost",
    "",
  ])("rejects %s", (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });
});

describe("publicLookup", () => {
  const answers = (addresses: readonly string[]) =>
    publicLookup((_hostname, _options, callback) =>
      callback(
        null,
        addresses.map((address): LookupAddress => ({ address, family: address.includes(":") ? 6 : 4 })),
      ),
    );
  const ask = (lookup: ReturnType<typeof answers>, all: boolean) =>
    new Promise((resolve) => lookup("a.example", { all }, (error, found) => resolve(error ?? found)));

  it("returns only public addresses", async () => {
    const lookup = answers(["127.0.0.1", "1.1.1.1", "::1"]);
    expect(await ask(lookup, true)).toEqual([{ address: "1.1.1.1", family: 4 }]);
    expect(await ask(lookup, false)).toBe("1.1.1.1");
  });

  it("fails when a name has no public address", async () => {
    expect(await ask(answers(["127.0.0.1"]), true)).toBeInstanceOf(Error);
  });
});
