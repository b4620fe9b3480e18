import { SandboxError } from "@sandpiper/core";
import { describe, expect, it } from "vitest";
import { parseArguments } from "./arguments.ts";
import type { Option } from "./option.ts";

const options: readonly Option[] = [
  { name: "memory", value: "MIB", summary: "memory" },
  { name: "env", value: "NAME[=VALUE]", isRepeatable: true, summary: "variable" },
  { name: "provider", value: "NAME", choices: ["gvisor", "local"], summary: "provider" },
  { name: "json", summary: "as JSON" },
];
const parse = (...argv: string[]) => parseArguments({ name: "run", options }, argv);

function usageErrorOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof SandboxError && error.reason === "usage") return `${error.message} | ${error.hint}`;
  }
  throw new Error("no usage error was thrown");
}

describe("a command line", () => {
  it("gives options their values, with a space or an equals sign", () => {
    expect(parse("--memory", "512", "--", "ls").get("memory")).toBe("512");
    expect(parse("--memory=512", "--", "ls").get("memory")).toBe("512");
  });

  it("keeps every value of a repeatable option, in order", () => {
    expect(parse("--env", "A=1", "--env=B=2=3", "--", "ls").all("env")).toEqual(["A=1", "B=2=3"]);
  });

  it("leaves everything after -- to the command, however much it looks like an option", () => {
    const { words } = parse("--json", "--", "ls", "--memory", "--", "-h");
    expect(words).toEqual(["ls", "--memory", "--", "-h"]);
  });

  it("begins the command at the first word that is no option, also without --", () => {
    const parsed = parse("--json", "python3", "-c", "print(1)", "--json=1");
    expect(parsed.words).toEqual(["python3", "-c", "print(1)", "--json=1"]);
    expect(parsed.has("json")).toBe(true);
  });

  it("knows --help and -h", () => {
    expect(parse("--help").has("help")).toBe(true);
    expect(parse("-h").has("help")).toBe(true);
    expect(parse("--", "-h").has("help")).toBe(false);
  });

  it("may be empty", () => {
    expect(parse().words).toEqual([]);
    expect(parse().get("memory")).toBeUndefined();
    expect(parse().all("env")).toEqual([]);
  });
});

describe("a wrong command line", () => {
  it.each([
    [["--memry", "512", "--", "ls"], "run has no option --memry | did you mean --memory?"],
    [["-x", "--", "ls"], "run has no option -x | see sandpiper run --help"],
    [["--memory"], "--memory needs a value | write --memory MIB"],
    [
      ["--memory", "--json"],
      "--memory needs a value, but --json follows it | write --memory MIB, or --memory=--json if that is its value",
    ],
    [["--json=1"], "--json takes no value | write --json alone"],
    [["--memory", "1", "--memory", "2"], "--memory was given twice | give it once"],
    [["--provider", "gvisr"], "--provider gvisr: there is no such provider | did you mean gvisor?"],
    [["--provider", "docker"], "--provider docker: there is no such provider | it is one of gvisor, local"],
  ])("%j says what is wrong and what to write", (argv, expected) => {
    expect(usageErrorOf(() => parse(...argv))).toBe(expected);
  });

  it("is one with a word that the verb does not know", () => {
    const verb = { name: "completion", options: [], words: ["bash", "zsh", "fish"] };
    expect(parseArguments(verb, ["zsh"]).words).toEqual(["zsh"]);
    expect(usageErrorOf(() => parseArguments(verb, ["zhs"]))).toContain("did you mean zsh?");
    expect(usageErrorOf(() => parseArguments(verb, ["powershell"]))).toContain("see sandpiper completion --help");
  });
});
