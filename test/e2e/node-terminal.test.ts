import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import { useNode } from "./node-process.ts";
import { PseudoTerminal } from "./pseudo-terminal.ts";
import { sandpiper } from "./run-cli.ts";

const node = await useNode();
const open = (command: string) => new PseudoTerminal(command, { ...node.env, TERM: "xterm-256color" });

describe("on a terminal", () => {
  it("ls prints a table", async () => {
    const { stdout } = await node.run(["create", "--name", "shown", "--label", "a=b"]);
    await using terminal = open(`${sandpiper} ls`);
    expect(await terminal.exitCode()).toBe(0);
    const lines = stripVTControlCharacters(terminal.screen).split("\r\n");
    expect(lines[0]).toMatch(/^ID +NAME +STATE +PROVIDER +MEMORY +AGE +EXPIRES IN +LABELS$/);
    expect(lines[1]).toMatch(new RegExp(`^${stdout.slice(0, 8)} +shown +ready +gvisor +256 MiB +\\d+s +a=b$`));
  });

  it("shell opens a terminal in a sandbox of the node, which stays", async () => {
    await node.run(["create", "--name", "entered"]);
    await using terminal = open(`${sandpiper} shell entered; code=$?; stty -a; exit $code`);
    await terminal.prompt();
    terminal.type("tty; echo kept > file; exit 7\n");
    expect(await terminal.exitCode()).toBe(7);
    expect(terminal.screen).toMatch(/\/dev\/pts\/\d+/);
    expect(terminal.screen).toMatch(/ icanon /);
    expect((await node.run(["exec", "entered", "--", "cat", "file"])).stdout).toBe("kept\n");
  });

  it("shell creates a sandbox on the node, follows the window size and destroys the sandbox", async () => {
    await using terminal = open(`${sandpiper} shell --memory 96`);
    await terminal.prompt();
    const list = async () => JSON.parse((await node.run(["ls", "--state", "ready"])).stdout) as { memoryMib: number }[];
    expect(await list()).toContainEqual(expect.objectContaining({ memoryMib: 96 }));
    await terminal.resize(41, 107);
    terminal.type("until [ \"$(stty size)\" = '41 107' ]; do sleep 0.1; done; echo follo''wed; exit 0\n");
    await terminal.shows(/followed/);
    expect(await terminal.exitCode()).toBe(0);
    expect((await list()).filter(({ memoryMib }) => memoryMib === 96)).toEqual([]);
  });

  it("shell refuses options for a new sandbox when it is given an existing one", async () => {
    await using terminal = open(`${sandpiper} shell --memory 96 entered`);
    expect(await terminal.exitCode()).toBe(2);
    expect(terminal.screen).toContain("--memory applies to a new sandbox, but entered is an existing one");
  });
});
