import { MockProvider } from "@sandpiper/providers";
import { beforeAll, describe, expect, it } from "vitest";
import { startFixtureEndpoint } from "../../packages/node/src/mcp/testing/fixture-endpoint.ts";
import { shared } from "../../packages/providers/src/host/testing/shared.ts";
import { readDocument } from "../e2e/document.ts";
import { useNode } from "../sdk/sdk-node.ts";
import { startAuthorizingProxy } from "./authorizing-proxy.ts";
import { conformanceScenarios, type Findings, failuresOf, runConformance } from "./run-conformance.ts";

/** The document is the list: the scenarios of the product's own server, and the others with the reason for a fixture. */
const [, own = "", others = ""] =
  /own server: `(.*)`\.\n.*\| scenario \| [^\n]*\n\|---\|---\|\n(.*?)\n\n/s.exec(readDocument("docs/mcp.md")) ?? [];
const productScenarios = own.split("`, `");
const fixtureScenarios = [...others.matchAll(/^\| `(\S+)` \| \S.* \|$/gm)].map(([, name = ""]) => name);
const scenarios = [...productScenarios, ...fixtureScenarios];

describe("the scenarios of the official conformance package", () => {
  it("are all in docs/mcp.md, either as passed by the product or with the reason why they need a fixture", async () => {
    expect(scenarios.toSorted()).toEqual((await conformanceScenarios()).toSorted());
  });
});

const node = await useNode();
const proxy = await shared(startAuthorizingProxy(node.url, node.apiKey));

describe("a node's own MCP server", () => {
  it.each(productScenarios)("passes conformance scenario %s", async (scenario) => {
    const findings = await runConformance(`${proxy.url}/mcp`, scenario);
    expect(failuresOf(findings.get(scenario))).toEqual([]);
  });
});

describe("a node's MCP endpoint with the fixture server", () => {
  let findings: Findings;
  beforeAll(async () => {
    await using endpoint = await startFixtureEndpoint(new MockProvider());
    await using proxy = await startAuthorizingProxy(endpoint.url, endpoint.apiKey);
    findings = await runConformance(`${proxy.url}/mcp`);
  }, 90_000);

  it.each(scenarios)("passes conformance scenario %s", (scenario) => {
    expect(failuresOf(findings.get(scenario))).toEqual([]);
  });
});
