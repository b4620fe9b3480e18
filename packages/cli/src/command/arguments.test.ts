import { SandboxError } from "@sandpiper/protocol/error";
import { describe, expect, it } from "vitest";
import { parseArguments } from "./arguments.ts";
import type { Option, Syntax } from "./syntax.ts";

const options: readonly Option[] = [
  { name: "memory", value: "MIB", summary: "memory" },
  { name: "env", value: "NAME[=VALUE]", isRepeatable: true, summary: "variable" },
  { name: "provider", value: "NAME", choices: ["gvisor", "local"], summary: "provider" },
  { name: "json", summary: "as JSON" },
];
const parse = (...argv: string[]) => parseArguments({ name: "run", options, command: "optional" }, argv);

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

  it("leaves everything after -- to the command, even options", () => {
    const { words } = parse("--json", "--", "ls", "--memory", "--", "-h");
    expect(words).toEqual(["ls", "--memory", "--", "-h"]);
  });

  it("starts the command at the first word that is not an option, also without --", () => {
    const parsed = parse("--json", "python3", "-c", "print(1)", "--json=1");
    expect(parsed.words).toEqual(["python3", "-c", "print(1)", "--json=1"]);
    expect(parsed.has("json")).toBe(true);
  });

  it("accepts --help and -h, but not after --", () => {
    expect(parse("--help").has("help")).toBe(true);
    expect(parse("-h").has("help")).toBe(true);
    expect(parse("--", "-h").has("help")).toBe(false);
  });

  it("may be empty", () => {
    expect(parse().words).toEqual([]);
    expect(parse().get("memory")).toBeUndefined();
    expect(parse().all("env")).toEqual([]);
  });

  it("accepts the short form of an option", () => {
    const logs = { name: "logs", options: [{ name: "follow", short: "f", summary: "" }] };
    expect(parseArguments(logs, ["-f"]).has("follow")).toBe(true);
  });

  it("is not parsed for a verb that passes its arguments on", () => {
    const up = { name: "up", options: [], passesOnArguments: true };
    expect(parseArguments(up, ["--help", "--", "-x"]).words).toEqual(["--help", "--", "-x"]);
  });
});

describe("operands", () => {
  const exec: Syntax = { name: "exec", options, operands: ["SANDBOX"], command: "required" };
  const rm = (...argv: string[]) => parseArguments({ name: "rm", options, operands: ["SANDBOX…"] }, argv);

  it.each([
    [["--json", "box", "--memory", "1", "--", "ls", "-l"]],
    [["box", "--json", "--memory", "1", "ls", "-l"]],
    [["--json", "--memory", "1", "box", "--", "ls", "-l"]],
  ])("may come anywhere among options, before the command: %j", (argv) => {
    const parsed = parseArguments(exec, argv);
    expect([parsed.operands, parsed.words, parsed.get("memory")]).toEqual([["box"], ["ls", "-l"], "1"]);
  });

  it("may follow -- in a verb without a command, to start with a dash", () => {
    expect(rm("a", "--", "-b").operands).toEqual(["a", "-b"]);
  });

  it("are not required for --help", () => {
    expect(rm("--help").has("help")).toBe(true);
  });

  const ps: Syntax = { name: "ps", options: [], operands: ["SANDBOX"] };
  const kill: Syntax = { name: "kill", options, operands: ["SANDBOX", "PROCESS…"] };
  const completion: Syntax = { name: "completion", options: [], operands: ["SHELL"], choices: ["bash", "zsh"] };
  const usageOfExec = "usage: sandpiper exec [OPTIONS] SANDBOX -- CMD [ARGS…]";

  it.each<[Syntax, string[], string]>([
    [{ ...ps, options }, [], "ps: missing argument SANDBOX | usage: sandpiper ps [OPTIONS] SANDBOX"],
    [kill, ["a"], "kill: missing argument PROCESS | usage: sandpiper kill [OPTIONS] SANDBOX PROCESS…"],
    [ps, ["a", "b"], 'ps: unexpected argument "b" | usage: sandpiper ps SANDBOX'],
    [exec, ["--", "box", "ls"], `exec: missing argument SANDBOX | ${usageOfExec}`],
    [exec, ["box"], `exec: missing argument CMD | ${usageOfExec}`],
    [completion, ["zhs"], 'completion: unknown shell "zhs" | did you mean "zsh"?'],
    [completion, ["powershell"], 'completion: unknown shell "powershell" | use one of bash, zsh'],
  ])("that are wrong are refused with the usage: %j", (syntax, argv, expected) => {
    expect(usageErrorOf(() => parseArguments(syntax, argv))).toBe(expected);
  });
});

describe("a wrong option", () => {
  it.each([
    [["--memry", "512", "--", "ls"], "run: unknown option --memry | did you mean --memory?"],
    [["-x", "--", "ls"], 'run: unknown option -x | run "sandpiper run --help" to list the options'],
    [["--memory"], "run: option --memory needs a value | write --memory MIB"],
    [
      ["--memory", "--json"],
      "run: option --memory needs a value, but --json follows it | write --memory MIB, or --memory=--json if that is the value",
    ],
    [["--json=1"], "run: option --json takes no value | write --json"],
    [["--memory", "1", "--memory", "2"], "run: option --memory given more than once | give it once"],
    [
      ["--provider", "gvisr"],
      'invalid value "gvisr" for --provider: expected one of gvisor, local | did you mean --provider gvisor?',
    ],
    [
      ["--provider", "docker"],
      'invalid value "docker" for --provider: expected one of gvisor, local | write --provider NAME',
    ],
  ])("%j is refused with what to write instead", (argv, expected) => {
    expect(usageErrorOf(() => parse(...argv))).toBe(expected);
  });
});
