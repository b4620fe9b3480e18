import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { findLeftovers } from "./leftovers.ts";
import { PseudoTerminal } from "./pseudo-terminal.ts";
import { runCli, sandpiper, startCli } from "./run-cli.ts";
import { useScratchDirectory } from "./scratch-directory.ts";

const scratch = useScratchDirectory();

/** A run in a state directory of its own, so that what it leaves is seen. */
function startRun(name: string, argv: readonly string[]): { readonly child: ChildProcess; readonly home: string } {
  const home = join(scratch.path, name);
  return { child: startCli(["run", ...argv], { env: { SANDPIPER_HOME: home } }), home };
}

const untilItRuns = (child: ChildProcess) => once(child.stdout as NodeJS.ReadableStream, "data");

describe("a signal to sandpiper run", () => {
  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)("%s kills the command inside and leaves nothing behind", async (signal, exitCode) => {
    const { child, home } = startRun(signal, ["--", "sh", "-c", "trap '' INT TERM HUP; echo running; sleep 600"]);
    await untilItRuns(child);
    expect(findLeftovers(home)).not.toEqual([]);
    child.kill(signal);
    expect(await once(child, "close")).toEqual([exitCode, null]);
    expect(findLeftovers(home)).toEqual([]);
  });

  it.each([150, 200, 250, 300, 400])("leaves nothing behind when it comes %i ms after the start", async (delayMs) => {
    const { child, home } = startRun(`early-${delayMs}`, ["--", "sleep", "600"]);
    await sleep(delayMs);
    child.kill("SIGINT");
    const [exitCode, signal] = await once(child, "close");
    // Before the program listens for it, the signal ends it as any other program.
    expect([130, null]).toContain(exitCode);
    expect(exitCode === null ? signal : "SIGINT").toBe("SIGINT");
    expect(findLeftovers(home)).toEqual([]);
  });

  it("ends a run whose reader has stalled", async () => {
    const { child, home } = startRun("stalled", ["--", "yes"]);
    await untilItRuns(child);
    child.stdout?.pause();
    // The pipe is full and the program waits for its reader.
    await sleep(500);
    child.kill("SIGINT");
    expect(await once(child, "exit")).toEqual([130, null]);
    expect(findLeftovers(home)).toEqual([]);
  });

  it("leaves nothing behind while files travel", async () => {
    const { child, home } = startRun("upload", ["--upload", "/dev/zero:/tmp/endless", "--disk", "4096", "--", "true"]);
    while (findLeftovers(home).length === 0) await sleep(20);
    await sleep(300);
    child.kill("SIGINT");
    expect(await once(child, "close")).toEqual([130, null]);
    expect(findLeftovers(home)).toEqual([]);
  });
});

describe("Ctrl-C in a terminal", () => {
  it("ends sandpiper run with exit code 130 and leaves nothing behind", async () => {
    const home = join(scratch.path, "terminal");
    await using terminal = new PseudoTerminal(`${sandpiper} run -- sh -c 'echo running; sleep 600'`, {
      SANDPIPER_HOME: home,
    });
    await terminal.shows(/running/);
    terminal.type("\x03");
    expect(await terminal.exitCode()).toBe(130);
    expect(findLeftovers(home)).toEqual([]);
  });
});

describe("a sandpiper run that is killed with -9", () => {
  it("is cleaned up after by the next one", async () => {
    const { child, home } = startRun("killed", ["--", "sh", "-c", "echo running; sleep 600"]);
    await untilItRuns(child);
    child.kill("SIGKILL");
    await once(child, "close");
    expect(findLeftovers(home)).not.toEqual([]);

    const next = await runCli(["run", "--", "echo", "next"], { env: { SANDPIPER_HOME: home } });
    expect(next).toMatchObject({ stdout: "next\n", stderr: "", exitCode: 0 });
    expect(findLeftovers(home)).toEqual([]);
  });

  it("is cleaned up after by doctor --fix", async () => {
    const { child, home } = startRun("fixed", ["--", "sh", "-c", "echo running; sleep 600"]);
    await untilItRuns(child);
    child.kill("SIGKILL");
    await once(child, "close");

    const seen = JSON.parse((await runCli(["doctor", "--json"], { env: { SANDPIPER_HOME: home } })).stdout);
    expect(leftoversCheck(seen)).toMatchObject({
      status: "warning",
      detail: expect.stringContaining("1 left by dead programs"),
    });
    const fixed = JSON.parse((await runCli(["doctor", "--json", "--fix"], { env: { SANDPIPER_HOME: home } })).stdout);
    expect(leftoversCheck(fixed)).toMatchObject({ status: "ok", detail: expect.stringContaining("removed 1") });
    expect(findLeftovers(home)).toEqual([]);
  });

  it("takes nothing from another run that is still alive", async () => {
    const { child, home } = startRun("alive", ["--", "sh", "-c", "echo running; cat"]);
    await untilItRuns(child);
    await runCli(["run", "--", "true"], { env: { SANDPIPER_HOME: home } });
    child.stdin?.end("still here\n");
    const [chunk] = await untilItRuns(child);
    expect(String(chunk)).toBe("still here\n");
    expect(await once(child, "close")).toEqual([0, null]);
    expect(findLeftovers(home)).toEqual([]);
  });
});

function leftoversCheck({ checks }: { checks: { name: string }[] }) {
  return checks.find(({ name }) => name === "leftovers");
}
