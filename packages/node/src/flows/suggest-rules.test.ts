import {
  createSandboxId,
  DEFAULT_NETWORK_BUNDLES,
  type FlowRecord,
  type NetworkRule,
  networkBodySchema,
} from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { RuleSuggestion } from "./suggest-rules.ts";
import { flowRecord } from "./testing/flow-record.ts";

const sandboxId = createSandboxId();

function suggest(...given: readonly (string | Partial<FlowRecord>)[]): readonly NetworkRule[] {
  const suggestion = new RuleSuggestion(DEFAULT_NETWORK_BUNDLES);
  for (const each of given) {
    const [name = null, port] = typeof each === "string" ? each.split(" ") : [];
    const fields = typeof each === "string" ? { name, port: Number(port ?? 443) } : each;
    suggestion.add(flowRecord({ sandboxId, ...fields }));
  }
  const rules = suggestion.rules();
  expect(networkBodySchema.safeParse({ rules }).success).toBe(true);
  return rules;
}

describe("a suggestion", () => {
  it("lists each host once with its ports, those of one domain together", () => {
    expect(suggest("b.example.com", "api.test.org 8443", "b.example.com 80", "a.example.com", "b.example.com")).toEqual(
      [
        { allow: "a.example.com", ports: [443] },
        { allow: "b.example.com", ports: [80, 443] },
        { allow: "api.test.org", ports: [8443] },
      ],
    );
  });

  it("replaces two or more hosts of a bundle by the bundle, if it covers their ports", () => {
    expect(suggest("pypi.org", "files.pythonhosted.org", "example.com")).toEqual([
      { allow: "@pypi" },
      { allow: "example.com", ports: [443] },
    ]);
    expect(suggest("pypi.org")).toEqual([{ allow: "pypi.org", ports: [443] }]);
    expect(suggest("pypi.org", "files.pythonhosted.org 8080")).toEqual([
      { allow: "pypi.org", ports: [443] },
      { allow: "files.pythonhosted.org", ports: [8080] },
    ]);
    expect(suggest("github.com 22", "raw.githubusercontent.com")).toEqual([{ allow: "@github" }]);
  });

  it("leaves out hosts of which a program asked for other records than addresses", () => {
    const query = { kind: "query", port: null, decision: "denied", reason: "default" } as const;
    const service = {
      name: "_http._tcp.deb.debian.org",
      queryType: "SRV",
      suggestion: "allow=_http._tcp.deb.debian.org",
    };
    expect(suggest({ ...query, ...service })).toEqual([]);
    const host = { name: "deb.debian.org", queryType: "AAAA", suggestion: "allow=deb.debian.org" };
    expect(suggest({ ...query, ...host })).toHaveLength(1);
  });

  it("uses a wildcard for three sub-domains with the same ports, and not for two", () => {
    expect(suggest("a.cdn.example.com", "b.cdn.example.com", "c.cdn.example.com", "cdn.example.com")).toEqual([
      { allow: "cdn.example.com", ports: [443] },
      { allow: "*.cdn.example.com", ports: [443] },
    ]);
    expect(suggest("a.example.com", "b.example.com", "c.example.com 80")).toHaveLength(3);
  });

  it.each(["com", "co.uk", "github.io", "s3.eu-west-1.amazonaws.com"])(
    "never suggests *.%s, where strangers have names",
    (suffix) => {
      expect(suggest(`a.${suffix}`, `b.${suffix}`, `c.${suffix}`)).toHaveLength(3);
    },
  );

  it("counts denials that a rule would allow, and a name that was only looked up with port 443", () => {
    const denied = { decision: "denied", reason: "default" } as const;
    expect(
      suggest(
        {
          ...denied,
          kind: "query",
          name: "looked-up.example.com",
          port: null,
          suggestion: "allow=looked-up.example.com",
        },
        { ...denied, name: "tried.example.com", port: 5432, suggestion: "allow=tried.example.com:5432" },
        { ...denied, reason: "special_address", name: "inside.example.com", port: 80, suggestion: null },
        {
          ...denied,
          reason: "rule",
          name: "forbidden.example.com",
          port: 443,
          suggestion: "allow=forbidden.example.com",
        },
        { kind: "query", name: "typo.example.com", port: null, reason: "name_not_found" },
        { ...denied, kind: "datagram", name: null, address: "203.0.113.9", port: 443, suggestion: null },
      ),
    ).toEqual([
      { allow: "looked-up.example.com", ports: [443] },
      { allow: "tried.example.com", ports: [5432] },
    ]);
  });

  it("takes the port of the connection, not the usual one, for a name that was looked up and connected to", () => {
    expect(suggest({ kind: "query", name: "db.example.com", port: null }, "db.example.com 5432")).toEqual([
      { allow: "db.example.com", ports: [5432] },
    ]);
  });

  it("lists addresses last, and many ports as ranges", () => {
    const ports = [8000, 8001, 8002, 9000, 9001];
    expect(suggest(...ports.map((port) => ({ name: null, address: "203.0.113.7", port })), "example.com")).toEqual([
      { allow: "example.com", ports: [443] },
      { allow: "203.0.113.7", ports: ["8000-8002", 9000, 9001] },
    ]);
    const scattered = Array.from({ length: 100 }, (_, index) => `example.com ${1000 + index * 2}`);
    expect(suggest(...scattered)).toEqual([{ allow: "example.com", ports: ["1000-1198"] }]);
  });

  it("has no rules for a sandbox that used no network", () => {
    expect(suggest()).toEqual([]);
  });
});
