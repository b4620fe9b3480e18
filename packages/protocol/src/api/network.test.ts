import { describe, expect, it } from "vitest";
import {
  completeNetwork,
  DEFAULT_NETWORK_LIMITS,
  isNoNetwork,
  networkBodySchema,
  networkPolicySchema,
} from "./network.ts";
import { DEFAULT_NETWORK_BUNDLES } from "./network-bundles.ts";
import { parseHostName, parseNetworkTarget, targetText } from "./network-target.ts";
import { parseNetwork, parseTargetText, ruleText } from "./network-text.ts";

describe("a target of a network rule", () => {
  it.each([
    ["pypi.org", "pypi.org"],
    ["PyPI.Org.", "pypi.org"],
    ["*.Example.com", "*.example.com"],
    ["bücher.example", "xn--bcher-kva.example"],
    ["*.bücher.example", "*.xn--bcher-kva.example"],
    ["_service._tcp.example", "_service._tcp.example"],
    ["203.0.113.7", "203.0.113.7"],
    ["203.0.113.0/24", "203.0.113.0/24"],
    ["2001:db8::/32", "2001:db8::/32"],
    ["2001:db8::1/128", "2001:db8::1"],
    ["0.0.0.0/0", "0.0.0.0/0"],
    ["@pypi", "@pypi"],
    ["*", "*"],
  ])("reads %s as %s", (text, expected) => {
    const target = parseNetworkTarget(text);
    expect(target && targetText(target)).toBe(expected);
  });

  it.each([
    "",
    ".",
    "..",
    "a..b",
    "-a.example",
    "a-.example",
    "*.",
    "**.example",
    "a.*.example",
    "*example",
    "@",
    "@Pypi",
    "@a b",
    "exa mple.com",
    "example.com/path",
    "user@example.com",
    "example.com:443",
    "0x7f.1",
    "127.1",
    "2130706433",
    "0177.0.0.1",
    "127.0.0.01",
    "0x7f000001",
    "1.2.3.4.5",
    "10.0.0.0/33",
    "10.0.0.0/-1",
    "10.0.0.0/08",
    "10.0.0.0/8/8",
    "2001:db8::/129",
    "fe80::1%eth0",
    "[::1]",
    `${"a".repeat(64)}.example`,
    Array.from({ length: 50 }, () => "abcdef").join("."),
    "exa\0mple.com",
    "%31.example",
  ])("refuses %j", (text) => {
    expect(parseNetworkTarget(text)).toBeUndefined();
  });

  it("a name that programs take for an address is not a name", () => {
    for (const text of ["0x7f.1", "127.1", "1.0x1", "example.0x", "a.123"]) expect(parseHostName(text)).toBeUndefined();
    for (const text of ["1.example", "0x7f.example", "123.a1"]) expect(parseHostName(text)).toBe(text);
  });

  it("letters that look like dots or full-width letters become their ASCII form", () => {
    expect(parseHostName("ｐｙｐｉ．org")).toBe("pypi.org");
    expect(parseHostName("１２７.0.0.1")).toBeUndefined();
  });
});

describe("a network policy", () => {
  it.each(["none", "open", "ask"] as const)("%s is the complete policy that it is short for", (name) => {
    const complete = completeNetwork(name);
    expect(complete).toEqual({
      rules: [],
      default: { none: "deny", open: "allow", ask: "ask" }[name],
      limits: DEFAULT_NETWORK_LIMITS,
    });
    expect(networkPolicySchema.parse(complete)).toEqual(complete);
    expect(completeNetwork(networkBodySchema.parse(complete))).toEqual(complete);
  });

  it("normalizes names, keeps the order of rules, and completes limits", () => {
    const body = networkBodySchema.parse({
      rules: [{ deny: "Bad.Example." }, { allow: "*.EXAMPLE", ports: [443, "8000-8100"] }],
      limits: { maxBytes: 5, maxConnections: null },
    });
    expect(completeNetwork(body)).toEqual({
      rules: [{ deny: "bad.example" }, { allow: "*.example", ports: [443, "8000-8100"] }],
      default: "deny",
      limits: { ...DEFAULT_NETWORK_LIMITS, maxBytes: 5, maxConnections: null },
    });
  });

  it.each([
    { rules: [{ allow: "a.example", deny: "a.example" }] },
    { rules: [{}] },
    { rules: [{ allow: "a.example", ports: [] }] },
    { rules: [{ allow: "a.example", ports: [0] }] },
    { rules: [{ allow: "a.example", ports: ["10-5"] }] },
    { rules: [{ allow: "a.example", ports: ["1-65536"] }] },
    { rules: [{ allow: "a.example", port: 1 }] },
    { rules: Array.from({ length: 257 }, () => ({ allow: "a.example" })) },
    { limits: { maxConnections: 0 } },
    { default: "maybe" },
    "closed",
    null,
  ])("refuses %j", (body) => {
    expect(networkBodySchema.safeParse(body).success).toBe(false);
  });

  it("without an allowing rule or default it is no network", () => {
    expect(isNoNetwork(completeNetwork("none"))).toBe(true);
    expect(isNoNetwork(completeNetwork({ rules: [{ deny: "*" }] }))).toBe(true);
    expect(isNoNetwork(completeNetwork("ask"))).toBe(false);
    expect(isNoNetwork(completeNetwork({ rules: [{ allow: "a.example" }] }))).toBe(false);
  });
});

describe("a network policy in one line", () => {
  it.each([
    ["none", "none"],
    ["open", "open"],
    ["allow=a.example", { rules: [{ allow: "a.example" }] }],
    [
      "allow=@pypi,b.example:443,deny=*.example:80+8000-8100",
      {
        rules: [
          { allow: "@pypi" },
          { allow: "b.example", ports: [443] },
          { deny: "*.example", ports: [80, "8000-8100"] },
        ],
      },
    ],
    [
      "allow=[2001:db8::/32]:443,2001:db8::7",
      { rules: [{ allow: "2001:db8::/32", ports: [443] }, { allow: "2001:db8::7" }] },
    ],
  ])("reads %s", (text, expected) => {
    expect(parseNetwork(text)).toEqual(expected);
  });

  it.each([
    "",
    "closed",
    "a.example",
    "allow=",
    "allow=a.example:0",
    "allow=a.example:x",
    "allow=a.example,,b",
    "permit=a",
  ])("refuses %j", (text) => {
    expect(parseNetwork(text)).toBeUndefined();
  });

  it("a rule's text reads back as the rule", () => {
    for (const rule of [
      { allow: "a.example" },
      { deny: "*.a.example", ports: [80, "8000-8100"] },
      { allow: "2001:db8::/32", ports: [443] },
      { allow: "2001:db8::/32" },
    ]) {
      expect(parseNetwork(ruleText(rule))).toEqual({ rules: [rule] });
    }
  });

  it("every default bundle consists of targets with ports", () => {
    for (const [name, targets] of Object.entries(DEFAULT_NETWORK_BUNDLES)) {
      expect(parseNetworkTarget(`@${name}`)).toBeDefined();
      for (const text of targets) {
        const { target, ports } = parseTargetText(text) ?? {};
        expect(parseNetworkTarget(target ?? ""), text).toBeDefined();
        expect(ports, text).toBeDefined();
      }
    }
  });
});
