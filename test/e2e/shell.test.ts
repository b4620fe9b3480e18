import { describe, expect, it } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { findLeftovers } from "./leftovers.ts";
import { childOf, PseudoTerminal } from "./pseudo-terminal.ts";
import { runCli, sandpiper } from "./run-cli.ts";

const home = sharedDirectory("e2e");

/** Runs sandpiper shell from a host shell, which then prints the state of its terminal. */
function openShell(argv = ""): PseudoTerminal {
  const command = `${sandpiper} shell ${argv}; code=$?; stty -a; exit $code`;
  return new PseudoTerminal(command, { SANDPIPER_HOME: home, TERM: "xterm-256color" });
}

describe("sandpiper shell", () => {
  it("opens a terminal with colors, and restores the user's terminal and exit code", async () => {
    await using terminal = openShell();
    await terminal.prompt();
    terminal.type("tty; echo $TERM; id -un\n");
    await terminal.shows(/\/dev\/pts\/\d+\r\nxterm-256color\r\nuser\r\n/);
    terminal.type("touch file; mkdir directory; ls --color=auto\n");
    await terminal.shows("\x1b[01;34mdirectory\x1b[0m");
    terminal.type("exit 7\n");
    expect(await terminal.exitCode()).toBe(7);
    expect(terminal.screen).toMatch(/ icanon /);
    expect(terminal.screen).toMatch(/ echo /);
    expect(terminal.screen).toMatch(/(^|\s)opost /);
    expect(findLeftovers(home)).toEqual([]);
  });

  it("sends Ctrl-C to the command inside, not to the shell", async () => {
    await using terminal = openShell();
    await terminal.prompt();
    terminal.type("sh -c 'echo go\"\"ing; exec sleep 600'; echo never\n");
    await terminal.shows(/going/);
    terminal.type("\x03");
    // As on any terminal, input before the next prompt may be lost, including Ctrl-D.
    await terminal.shows(/^going[\s\S]*ready> /m);
    terminal.type("echo code $?\n");
    await terminal.shows(/^code 130[\s\S]*ready> /m);
    expect(terminal.screen).not.toMatch(/^never/m);
    terminal.type("\x04");
    await terminal.exitCode();
  });

  it("follows the size of the user's window", async () => {
    await using terminal = openShell();
    await terminal.prompt();
    await terminal.resize(41, 107);
    terminal.type("until [ \"$(stty size)\" = '41 107' ]; do sleep 0.1; done; echo follo''wed\n");
    await terminal.shows(/followed/);
    terminal.type("exit\n");
    expect(await terminal.exitCode()).toBe(0);
  });

  it("runs the given command instead of a shell", async () => {
    await using terminal = openShell("-- python3");
    await terminal.shows(/>>> /);
    terminal.type("import sys; print(sys.stdout.isatty(), 6 * 7)\n");
    await terminal.shows(/True 42/);
    terminal.type("sys.exit(9)\n");
    expect(await terminal.exitCode()).toBe(9);
  });

  it("restores the user's terminal when a signal ends it", async () => {
    await using terminal = openShell();
    await terminal.prompt();
    process.kill(childOf(terminal.shellId()), "SIGTERM");
    expect(await terminal.exitCode()).toBe(143);
    expect(terminal.screen).toMatch(/ icanon /);
    expect(terminal.screen).toContain("\x1b[?1047l");
    expect(findLeftovers(home)).toEqual([]);
  });

  it("restores the user's terminal when memory runs out inside", async () => {
    await using terminal = openShell("--memory 64");
    await terminal.prompt();
    terminal.type("python3 -c 'x = b\"x\" * (512 << 20)'; echo lived $?; exit 137\n");
    expect(await terminal.exitCode()).toBe(137);
    expect(terminal.screen).toMatch(/ icanon /);
  });

  it("refuses to open without a terminal", async () => {
    const { stderr, exitCode } = await runCli(["shell"], { env: { SANDPIPER_HOME: home } });
    expect(exitCode).toBe(2);
    expect(stderr).toBe('sandpiper: shell: standard input is not a terminal\n  use "sandpiper run -- CMD" instead\n');
  });
});
