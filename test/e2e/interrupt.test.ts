import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { findLeftovers } from "./leftovers.ts";
import { PseudoTerminal } from "./pseudo-terminal.ts";
import { runCli, sandpiper, startCli } from "./run-cli.ts";
import { untilSteady } from "./until-steady.ts";

const scratch = sharedDirectory("e2e");

/** A run in its own state directory, so that its leftovers can be found. */
function startRun(name: string, argv: readonly string[]): { readonly child: ChildProcess; readonly home: string } {
  const home = join(scratch, name);
  return { child: startCli(["run", ...argv], { env: { SANDPIPER_HOME: home } }), home };
}

const untilItRuns = (child: ChildProcess) => once(child.stdout as NodeJS.ReadableStream, "data");

/** How many bytes a process has written, to files and sockets. */
function writtenBytes({ pid }: ChildProcess): number {
  return Number(/^wchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1]);
}

/** The steps of a start at which an interruption may leave something behind. */
const steps: Readonly<Record<string, (home: string) => boolean>> = {
  "before it does anything": () => true,
  "when its home directory exists": existsSync,
  "when its instance directory exists": (home) => findLeftovers(home).some((text) => text.startsWith("directory ")),
  "when its cgroup exists": (home) => findLeftovers(home).some((text) => text.startsWith("/sys/fs/cgroup")),
  "when a process of the sandbox runs": (home) => findLeftovers(home).some((text) => text.startsWith("process ")),
};

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

  it.each(Object.entries(steps))("leaves nothing behind %s", async (step, isReached) => {
    const { child, home } = startRun(`early-${Object.keys(steps).indexOf(step)}`, ["--", "sleep", "600"]);
    await expect.poll(() => isReached(home), { interval: 1 }).toBe(true);
    child.kill("SIGINT");
    const [exitCode, signal] = await once(child, "close");
    // A signal that comes before the program handles it ends the program directly.
    expect([130, null]).toContain(exitCode);
    expect(exitCode === null ? signal : "SIGINT").toBe("SIGINT");
    expect(findLeftovers(home)).toEqual([]);
  });

  it("ends a run whose reader has stalled", async () => {
    const { child, home } = startRun("stalled", ["--", "yes"]);
    await untilItRuns(child);
    child.stdout?.pause();
    // The program waits for its reader when it writes nothing more into the full pipe.
    await untilSteady(() => writtenBytes(child));
    child.kill("SIGINT");
    expect(await once(child, "exit")).toEqual([130, null]);
    expect(findLeftovers(home)).toEqual([]);
  });

  it("leaves nothing behind during an upload", async () => {
    const { child, home } = startRun("upload", ["--upload", "/dev/zero:/tmp/endless", "--disk", "4096", "--", "true"]);
    await expect.poll(() => writtenBytes(child)).toBeGreaterThan(64 * 1024 ** 2);
    child.kill("SIGINT");
    expect(await once(child, "close")).toEqual([130, null]);
    expect(findLeftovers(home)).toEqual([]);
  });
});

describe("Ctrl-C in a terminal", () => {
  it("ends sandpiper run with exit code 130 and leaves nothing behind", async () => {
    const home = join(scratch, "terminal");
    await using terminal = new PseudoTerminal(`${sandpiper} run -- sh -c 'echo running; sleep 600'`, {
      SANDPIPER_HOME: home,
    });
    await terminal.shows(/running/);
    terminal.type("\x03");
    expect(await terminal.exitCode()).toBe(130);
    expect(findLeftovers(home)).toEqual([]);
  });
});

describe("a sandpiper run killed with SIGKILL", () => {
  it("leaves leftovers that the next run removes", async () => {
    const { child, home } = startRun("killed", ["--", "sh", "-c", "echo running; sleep 600"]);
    await untilItRuns(child);
    child.kill("SIGKILL");
    await once(child, "close");
    expect(findLeftovers(home)).not.toEqual([]);

    const next = await runCli(["run", "--", "echo", "next"], { env: { SANDPIPER_HOME: home } });
    expect(next).toMatchObject({ stdout: "next\n", stderr: "", exitCode: 0 });
    expect(findLeftovers(home)).toEqual([]);
  });

  it("leaves leftovers that doctor --fix removes", async () => {
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

  it("is not confused with another run that is still alive", async () => {
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
