import { describe, expect, it } from "vitest";
import { CallerAddresses } from "./caller-address.ts";

const from = (remoteAddress: string | undefined, forwarded?: string) => ({
  socket: { remoteAddress },
  headers: forwarded === undefined ? {} : { "x-forwarded-for": forwarded },
});

describe("the address of a caller", () => {
  it("is that of its connection; a header is not believed", () => {
    const addresses = new CallerAddresses([]);
    expect(addresses.of(from("192.0.2.1", "198.51.100.7"))).toBe("192.0.2.1");
    expect(addresses.of(from("::ffff:192.0.2.1"))).toBe("192.0.2.1");
    expect(addresses.of(from(undefined))).toBeUndefined();
  });

  it("is the last one that trusted proxies did not add themselves", () => {
    const addresses = new CallerAddresses(["10.0.0.0/8", "::1"]);
    expect(addresses.of(from("10.1.2.3", "203.0.113.9, 198.51.100.7, 10.9.9.9"))).toBe("198.51.100.7");
    expect(addresses.of(from("::1", "198.51.100.7"))).toBe("198.51.100.7");
    expect(addresses.of(from("10.1.2.3"))).toBe("10.1.2.3");
    expect(addresses.of(from("10.1.2.3", "not an address"))).toBe("10.1.2.3");
    expect(addresses.of(from("192.0.2.1", "198.51.100.7"))).toBe("192.0.2.1");
  });

  it("counts an IPv6 network as one", () => {
    const addresses = new CallerAddresses([]);
    expect(addresses.of(from("2001:db8:0:1::5"))).toBe("2001:db8:0:1::/64");
    expect(addresses.of(from("2001:0db8:0:1:ffff::6"))).toBe("2001:db8:0:1::/64");
    expect(addresses.of(from("::1"))).toBe("0:0:0:0::/64");
  });
});
