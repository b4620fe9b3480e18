import { describe, expect, it } from "vitest";
import type { NamedBenchmark } from "./benchmark.ts";
import { describeMachine } from "./machine.ts";
import { renderMarkdown } from "./markdown.ts";
import type { Result } from "./report.ts";

const machine = await describeMachine(new Date(0));

function benchmark(name: string): NamedBenchmark {
  return { name, title: `about ${name}`, method: "", order: 1, timeLimitMs: 1, run: () => Promise.reject() };
}

function result(name: string): Result {
  return { name, subject: "docker", n: 3, p50: 2, p95: 3, unit: "ms" };
}

describe("the page", () => {
  it("puts every figure under its benchmark", () => {
    const names = ["file", "file, back to back", "file write", "file-big"];
    const page = renderMarkdown({
      machine,
      report: { results: names.map(result), targets: [], problems: ["docker failed"] },
      benchmarks: [benchmark("file"), benchmark("file-big")],
      subjects: [],
    });
    const sections = page.split("### ");
    expect(sections[1]).toContain("about file.");
    expect(sections[1]).toContain("**file, back to back**");
    expect(sections[1]).toContain("**file write**");
    expect(sections[1]?.match(/docker \| 2\.00 ms/g)).toHaveLength(3);
    expect(sections[2]?.match(/docker \| 2\.00 ms/g)).toHaveLength(1);
  });

  it("includes figures that are not named after a benchmark", () => {
    const report = { results: [result("file"), result("other")], targets: [], problems: [] };
    const page = renderMarkdown({ machine, report, benchmarks: [benchmark("file")], subjects: [] });
    expect(page.split("### Other figures")[1]).toContain("**other**");
    expect(page.match(/docker \| 2\.00 ms/g)).toHaveLength(2);
  });

  it("lists failed measurements", () => {
    const report = { results: [], targets: [], problems: ["docker failed"] };
    expect(renderMarkdown({ machine, report, benchmarks: [], subjects: [] })).toContain("- docker failed");
  });
});
