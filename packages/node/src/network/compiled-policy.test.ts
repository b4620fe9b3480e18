import { completeNetwork, DEFAULT_NETWORK_BUNDLES, type NetworkBody, parseNetwork } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { CompiledPolicy } from "./compiled-policy.ts";

const compile = (text: string) =>
  new CompiledPolicy(completeNetwork(parseNetwork(text) as NetworkBody), { ...DEFAULT_NETWORK_BUNDLES, empty: [] });
const decide = (text: string, host: string, port = 443) => {
  const policy = compile(text);
  const isAddress = /^[\d.]+$|:/.test(host);
  return (isAddress ? policy.decideAddress(host, port) : policy.decideName(host, port)).action;
};

describe("a policy", () => {
  it.each([
    ["none", "a.example", "deny"],
    ["open", "a.example", "allow"],
    ["ask", "a.example", "ask"],
    ["allow=a.example", "a.example", "allow"],
    ["allow=a.example", "b.example", "deny"],
    ["allow=a.example", "x.a.example", "deny"],
    ["allow=*.a.example", "x.a.example", "allow"],
    ["allow=*.a.example", "x.y.a.example", "allow"],
    ["allow=*.a.example", "a.example", "deny"],
    ["allow=*.a.example", "xa.example", "deny"],
    ["allow=*.a.example", "a.example.b.example", "deny"],
    ["allow=*", "a.example", "allow"],
    ["allow=*", "203.0.113.7", "allow"],
    ["allow=a.example:80", "a.example", "deny"],
    ["allow=a.example:400-500", "a.example", "allow"],
    ["allow=a.example:80+443", "a.example", "allow"],
    ["deny=a.example,allow=*.example", "a.example", "deny"],
    ["allow=*.example,deny=a.example", "a.example", "allow"],
    ["allow=203.0.113.0/24", "203.0.113.255", "allow"],
    ["allow=203.0.113.0/24", "203.0.114.0", "deny"],
    ["allow=2001:db8::/32", "2001:db8:1::1", "allow"],
    ["allow=2001:db8::/32", "2001:db9::1", "deny"],
    ["allow=203.0.113.0/24", "a.example", "deny"],
    ["allow=a.example", "203.0.113.7", "deny"],
    ["allow=0.0.0.0/0", "::ffff:203.0.113.7", "deny"],
    ["allow=@pypi", "pypi.org", "allow"],
    ["allow=@pypi", "a.pypi.org", "deny"],
    ["allow=@pypi:80", "pypi.org", "deny"],
    ["allow=@empty", "pypi.org", "deny"],
    ["deny=@pypi,allow=*", "pypi.org", "deny"],
  ])("%s on %s: %s", (text, host, action) => {
    expect(decide(text, host)).toBe(action);
  });

  it("names the rule that decides, or the default", () => {
    expect(compile("deny=b.example,allow=@pypi").decideName("pypi.org", 443).rule).toBe("allow=@pypi");
    expect(compile("allow=a.example:443").decideName("b.example", 443).rule).toBe("default");
  });

  it("takes the ports of a bundle's hosts into account", () => {
    expect(decide("allow=@pypi", "pypi.org", 80)).toBe("deny");
    expect(decide("allow=@debian", "deb.debian.org", 80)).toBe("allow");
  });

  it.each([
    ["allow=a.example:22", "allow"],
    ["deny=a.example:80,allow=a.example", "allow"],
    ["deny=a.example,allow=a.example:443", "deny"],
    ["deny=*.example:1-65535,allow=a.example", "allow"],
    ["allow=b.example", "deny"],
    ["ask", "ask"],
  ])("%s on a query without a port: %s", (text, action) => {
    expect(compile(text).decideQuery("a.example").action).toBe(action);
  });

  it("applies rules about addresses before the one that allowed a name, in order", () => {
    const admits = (text: string, address: string) => {
      const policy = compile(text);
      return policy.admits(address, 443, policy.decideName("a.example", 443));
    };
    expect(admits("deny=203.0.113.0/24,allow=a.example", "203.0.113.7")).toBe(false);
    expect(admits("deny=203.0.113.0/24,allow=a.example", "198.51.100.7")).toBe(true);
    expect(admits("deny=203.0.113.0/24:80,allow=a.example", "203.0.113.7")).toBe(true);
    expect(admits("allow=203.0.113.7,deny=203.0.113.0/24,allow=a.example", "203.0.113.7")).toBe(true);
    expect(admits("allow=a.example,deny=203.0.113.0/24", "203.0.113.7")).toBe(true);
  });
});
