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

describe("operands", () => {
  const sandbox = { min: 1, max: 1, example: "sandpiper exec SANDBOX -- CMD", takesCommand: true };
  const many = { min: 1, max: Number.POSITIVE_INFINITY, example: "sandpiper rm SANDBOX" };
  const exec = (...argv: string[]) => parseArguments({ name: "exec", options, operands: sandbox }, argv);
  const rm = (...argv: string[]) => parseArguments({ name: "rm", options, operands: many }, argv);

  it.each([
    [["--json", "box", "--memory", "1", "--", "ls", "-l"]],
    [["box", "--json", "--memory", "1", "ls", "-l"]],
    [["--json", "--memory", "1", "box", "--", "ls", "-l"]],
  ])("stand anywhere among options, before the command: %j", (argv) => {
    const parsed = exec(...argv);
    expect([parsed.operands, parsed.words, parsed.get("memory")]).toEqual([["box"], ["ls", "-l"], "1"]);
  });

  it("belong to the command after --", () => {
    expect(usageErrorOf(() => exec("--", "box", "ls"))).toContain("write sandpiper exec SANDBOX -- CMD");
  });

  it("of a verb without a command may follow --, to begin with a dash", () => {
    expect(rm("a", "--", "-b").operands).toEqual(["a", "-b"]);
    expect(usageErrorOf(() => rm())).toBe("rm needs to know more | write sandpiper rm SANDBOX");
  });

  it("are not counted when help is wanted", () => {
    expect(rm("--help").has("help")).toBe(true);
  });
});

describe("a short option", () => {
  const logs = { name: "logs", options: [{ name: "follow", short: "f", summary: "" }], words: [] };

  it("means the same as the long one", () => {
    expect(parseArguments(logs, ["-f"]).has("follow")).toBe(true);
  });
});

describe("arguments that are passed on", () => {
  it("are not looked at", () => {
    const up = { name: "up", options: [], passesOnArguments: true };
    expect(parseArguments(up, ["--help", "--", "-x"]).words).toEqual(["--help", "--", "-x"]);
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
