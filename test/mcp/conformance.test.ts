import { readFileSync } from "node:fs";
import { join } from "node:path";
import { MockProvider } from "@sandpiper/providers";
import { beforeAll, describe, expect, it } from "vitest";
import { startFixtureEndpoint } from "../../packages/node/src/mcp/testing/fixture-endpoint.ts";
import { shared } from "../../packages/providers/src/host/testing/shared.ts";
import { useNode } from "../sdk/sdk-node.ts";
import { startAuthorizingProxy } from "./authorizing-proxy.ts";
import { fixtureScenarios, productScenarios } from "./conformance-scenarios.ts";
import { conformanceScenarios, type Findings, failuresOf, runConformance } from "./run-conformance.ts";

describe("the scenarios of the official conformance package", () => {
  it("are all listed, either as passed by the product or with the reason why they need a fixture", async () => {
    const listed = [...productScenarios, ...Object.keys(fixtureScenarios)];
    expect(listed.toSorted()).toEqual((await conformanceScenarios()).toSorted());
  });
});

describe("docs/mcp.md", () => {
  it("lists the same conformance scenarios with the same reasons", () => {
    const document = readFileSync(join(import.meta.dirname, "../../docs/mcp.md"), "utf8");
    const [, own = "", others = ""] =
      /own server: (`.*`)\.\n.*\| scenario \| [^\n]*\n\|---\|---\|\n(.*?)\n\n/s.exec(document) ?? [];
    expect(own.split(", ")).toEqual(productScenarios.map((name) => `\`${name}\``));
    expect(others.split("\n")).toEqual(
      Object.entries(fixtureScenarios).map(([name, why]) => `| \`${name}\` | ${why} |`),
    );
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

  it.each([...productScenarios, ...Object.keys(fixtureScenarios)])("passes conformance scenario %s", (scenario) => {
    expect(failuresOf(findings.get(scenario))).toEqual([]);
  });
});
