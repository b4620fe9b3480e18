import { describe, expect, it } from "vitest";
import type { Resolution } from "./resolver.ts";
import { EgressBed } from "./testing/egress-bed.ts";

const NAMES = {
  "a.example": ["127.0.0.1"],
  "private.example": ["10.0.0.1"],
  "mixed.example": ["10.0.0.1", "127.0.0.1"],
};

describe("a DNS query", () => {
  it("for an allowed name gets a stand-in, and nothing for other types", async () => {
    await using bed = new EgressBed({ network: { rules: [{ allow: "*.example" }] }, names: NAMES });
    expect(await bed.query("a.example")).toBe("stand_in");
    for (const type of ["AAAA", "HTTPS", "SVCB", "TXT", "TYPE65534"])
      expect(await bed.query("a.example", type)).toBe("empty");
    expect(bed.resolved).toEqual(["a.example"]);
    expect(bed.records.closed[0]).toMatchObject({
      kind: "query",
      name: "a.example",
      queryType: "A",
      decision: "allowed",
      rule: "allow=*.example",
      reason: null,
    });
  });

  it("for another name is never resolved, and its record names the rule that would allow it", async () => {
    await using bed = new EgressBed({
      network: { rules: [{ deny: "bad.example" }, { allow: "a.example" }] },
      names: NAMES,
    });
    expect(await bed.query("secret-data.b.example")).toBe("name_error");
    expect(await bed.query("bad.example")).toBe("name_error");
    expect(bed.resolved).toEqual([]);
    expect(bed.records.closed).toMatchObject([
      { decision: "denied", reason: "default", rule: "default", suggestion: "allow=secret-data.b.example" },
      { decision: "denied", reason: "rule", rule: "deny=bad.example", suggestion: "allow=bad.example" },
    ]);
  });

  it("for a name that leads only to addresses that are not reachable does not resolve", async () => {
    await using bed = new EgressBed({ network: "open", names: NAMES });
    expect(await bed.query("private.example")).toBe("name_error");
    expect(await bed.query("mixed.example")).toBe("stand_in");
    expect(bed.records.closed).toMatchObject([
      { decision: "denied", reason: "special_address", suggestion: null },
      { decision: "allowed" },
    ]);
  });

  it("gets the answer of the node's resolver if that has no address", async () => {
    const kinds: Record<string, Resolution> = {
      "unknown.example": { kind: "not_found" },
      "empty.example": { kind: "empty" },
      "broken.example": { kind: "failed" },
    };
    const resolver = { resolve: (name: string) => kinds[name] as Resolution };
    await using bed = new EgressBed({ network: "open", parts: { resolver } });
    expect(await bed.query("unknown.example")).toBe("name_error");
    expect(await bed.query("empty.example")).toBe("empty");
    expect(await bed.query("broken.example")).toBe("server_failure");
  });

  it("of a sandbox that asks gets a stand-in without telling anyone the name", async () => {
    await using bed = new EgressBed({ network: "ask", names: NAMES });
    expect(await bed.query("a.example")).toBe("stand_in");
    expect(bed.resolved).toEqual([]);
  });

  it.each(["a..b", "127.1", "-a.example", `${"a".repeat(64)}.example`, "a b.example"])(
    "for %j is refused",
    async (name) => {
      await using bed = new EgressBed({ network: "open" });
      expect(await bed.query(name)).toBe("name_error");
      expect(bed.resolved).toEqual([]);
    },
  );
});

describe("datagrams", () => {
  it("are recorded with their number", async () => {
    await using bed = new EgressBed({ network: "open" });
    bed.egress.onDatagram({ address: "203.0.113.7", port: 443, count: 12 });
    expect(bed.records.closed).toMatchObject([
      { kind: "datagram", decision: "denied", reason: "datagram", count: 12, port: 443 },
    ]);
  });
});
