import { readFileSync } from "node:fs";
import { join } from "node:path";
import { MockProvider } from "@sandpiper/providers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startFixtureEndpoint } from "../../packages/node/src/mcp/testing/fixture-endpoint.ts";
import { useNode } from "../sdk/sdk-node.ts";
import { type AuthorizingProxy, startAuthorizingProxy } from "./authorizing-proxy.ts";
import { fixtureScenarios, productScenarios } from "./conformance-scenarios.ts";
import { conformanceScenarios, type Findings, failuresOf, runConformance } from "./run-conformance.ts";

describe("the scenarios of the official conformance package", () => {
  it("are all told: which the product passes, and why the others need a fixture", async () => {
    const told = [...productScenarios, ...Object.keys(fixtureScenarios)];
    expect(told.toSorted()).toEqual((await conformanceScenarios()).toSorted());
  });
});

describe("docs/mcp.md", () => {
  it("tells of the same scenarios, with the same reasons", () => {
    const document = readFileSync(join(import.meta.dirname, "../../docs/mcp.md"), "utf8");
    const [, own = "", others = ""] =
      /own server: (`.*`)\.\n.*\| scenario \| [^\n]*\n\|---\|---\|\n(.*?)\n\n/s.exec(document) ?? [];
    expect(own.split(", ")).toEqual(productScenarios.map((name) => `\`${name}\``));
    expect(others.split("\n")).toEqual(
      Object.entries(fixtureScenarios).map(([name, why]) => `| \`${name}\` | ${why} |`),
    );
  });
});

describe("the product's own server, on a node", () => {
  const node = useNode();
  let proxy: AuthorizingProxy;
  beforeAll(async () => {
    proxy = await startAuthorizingProxy(node.url, node.apiKey);
  });
  afterAll(() => proxy[Symbol.asyncDispose]());

  it.each(productScenarios)("conforms: %s", async (scenario) => {
    const findings = await runConformance(`${proxy.url}/mcp`, scenario);
    expect(failuresOf(findings.get(scenario))).toEqual([]);
  });
});

describe("the node's endpoint, with a server that has what the scenarios call", () => {
  let findings: Findings;
  beforeAll(async () => {
    await using endpoint = await startFixtureEndpoint(new MockProvider());
    await using proxy = await startAuthorizingProxy(endpoint.url, endpoint.apiKey);
    findings = await runConformance(`${proxy.url}/mcp`);
  }, 90_000);

  it.each([...productScenarios, ...Object.keys(fixtureScenarios)])("conforms: %s", (scenario) => {
    expect(failuresOf(findings.get(scenario))).toEqual([]);
  });
});
