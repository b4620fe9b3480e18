import { describe, expect, it } from "vitest";
import { parseArguments } from "./arguments.ts";
import type { NamedBenchmark } from "./benchmark.ts";
import { chooseBenchmarks, discoverBenchmarks } from "./benchmarks.ts";

describe("arguments", () => {
  it("accept several benchmarks and output files", () => {
    const args = ["--only", "ping", "--only", "scale", "--live", "20", "--json", "a.json", "--markdown", "b.md"];
    expect(parseArguments(args)).toMatchObject({
      only: ["ping", "scale"],
      liveCount: 20,
      jsonPath: "a.json",
      markdownPath: "b.md",
    });
  });

  it("refuse unknown options", () => {
    expect(() => parseArguments(["--fast"])).toThrow("--fast");
    expect(() => parseArguments(["--live", "many"])).toThrow("--live many");
    expect(() => parseArguments(["ping"])).toThrow(TypeError);
  });
});

describe("benchmarks", () => {
  it("are the files of their folder, in report order", async () => {
    const all = await discoverBenchmarks();
    expect(all.map((one) => one.order)).toEqual(all.map((one) => one.order).sort((left, right) => left - right));
    expect(all.map((one) => one.name)).toContain("exec-true");
  });

  it("all run by default, and an unknown name is refused with the list", () => {
    const all = ["ping", "scale"].map((name) => ({ name }) as NamedBenchmark);
    expect(chooseBenchmarks(all, []).length).toBe(2);
    expect(chooseBenchmarks(all, ["scale"]).map((one) => one.name)).toEqual(["scale"]);
    expect(() => chooseBenchmarks(all, ["pong"])).toThrow("no benchmark pong; there are ping, scale");
  });
});
