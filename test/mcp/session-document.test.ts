import { describe, expect, it } from "vitest";
import { blocksOf, readDocument } from "../e2e/document.ts";
import { runCli } from "../e2e/run-cli.ts";
import { StdioBed } from "./stdio-bed.ts";

const document = readDocument("docs/mcp.md");

interface ServerEntry {
  readonly command?: string;
  readonly args?: readonly string[];
  readonly url?: string;
}

describe("docs/mcp.md", () => {
  it("has valid JSON configurations with existing command lines", async () => {
    const entries = blocksOf(document, "json")
      .map((text) => JSON.parse(text) as Record<string, Record<string, ServerEntry>>)
      .map(({ mcpServers, servers }) => (mcpServers ?? servers)?.["sandpiper"]);
    expect(entries).toHaveLength(4);
    for (const entry of entries) {
      if (entry?.url !== undefined) {
        expect(entry.url).toMatch(/\/mcp$/);
        continue;
      }
      expect(entry?.command).toBe("sandpiper");
      const { exitCode, stdout } = await runCli([...(entry?.args ?? []), "--help"]);
      expect([exitCode, stdout]).toEqual([0, expect.stringContaining("sandpiper mcp")]);
    }
  });

  it("shows a conversation exactly as the server answers it", async () => {
    const lines = blocksOf(document, "mcp").join("").trimEnd().split("\n");
    const turns: { call: string; answer: string[] }[] = [];
    for (const line of lines) {
      if (line.startsWith("→ ")) turns.push({ call: line.slice(2), answer: [] });
      else turns.at(-1)?.answer.push(line.replace(/^← ?/, ""));
    }
    expect(turns.length).toBeGreaterThanOrEqual(10);
    const bed = new StdioBed();
    await using agent = await bed.connect();
    for (const { call, answer } of turns) {
      const [, name = "", input = "{}"] = /^(\w+) (.*)$/.exec(call) ?? [];
      const { text } = await agent.call(name, JSON.parse(input));
      // An ellipsis stands for text that differs from run to run.
      const pattern = answer.join("\n").split("…").map(RegExp.escape).join("[\\s\\S]*");
      expect(text.trimEnd(), call).toMatch(new RegExp(`^${pattern}$`));
    }
  });
});
