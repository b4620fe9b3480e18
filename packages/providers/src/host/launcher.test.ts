import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { isFifoPairHeld, openFifoPair } from "./fifo-pair.ts";
import { findLauncher } from "./find-agent.ts";
import { runProgram } from "./run-program.ts";
import { SocketChannel } from "./socket-channel.ts";
import { freshDirectory } from "./testing/shared.ts";

const directory = freshDirectory("launch");

const launcher = findLauncher();
const launch = (...argv: string[]) =>
  spawn(launcher, [String(process.pid), directory, ...argv], { stdio: ["ignore", "ignore", "inherit"] });

describe("a launched program", () => {
  it("has private FIFOs as stdin and stdout, which serve one caller after another", async () => {
    const program = launch("/bin/cat");
    const ended = once(program, "exit");
    await expect.poll(() => isFifoPairHeld(directory)).toBe(true);
    expect((await stat(join(directory, "in"))).mode & 0o777).toBe(0o600);
    expect(await echo("first")).toBe("first");
    expect(await echo("second")).toBe("second");
    program.kill("SIGKILL");
    await ended;
    expect(isFifoPairHeld(directory)).toBe(false);
    expect(openFifoPair(directory)).toBeUndefined();
  });

  it("is noticed when it ends", async () => {
    const program = launch("/bin/cat");
    await expect.poll(() => isFifoPairHeld(directory)).toBe(true);
    const lost = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<Error | undefined>();
    connect(lost.resolve).open({ data: () => undefined, closed: closed.resolve });
    program.kill("SIGKILL");
    await lost.promise;
    expect(await closed.promise).toBeInstanceOf(Error);
  });

  it("transfers megabytes unchanged, with back-pressure", async () => {
    const program = launch("/bin/cat");
    await expect.poll(() => isFifoPairHeld(directory)).toBe(true);
    const channel = connect(() => {});
    const block = new Uint8Array(3 << 20).map((_, index) => (index * 7) % 251);
    const received = new Uint8Array(block.length);
    let size = 0;
    const all = Promise.withResolvers<void>();
    channel.open({
      data: (chunk) => {
        received.set(chunk, size);
        size += chunk.length;
        if (size === block.length) all.resolve();
      },
      closed: () => {},
    });
    const wait = channel.write([block.subarray(0, 1), block.subarray(1)]);
    expect(wait).toBeInstanceOf(Promise);
    await wait;
    await all.promise;
    expect(Buffer.compare(received, block)).toBe(0);
    channel.close();
    program.kill("SIGKILL");
    await once(program, "exit");
  });

  it("dies with its parent", async () => {
    const script = `"${launcher}" $$ "${directory}" /bin/sleep 600 & wait`;
    const parent = spawn("/bin/sh", ["-c", script], { stdio: "ignore" });
    await expect.poll(() => isFifoPairHeld(directory)).toBe(true);
    parent.kill("SIGKILL");
    await expect.poll(() => isFifoPairHeld(directory)).toBe(false);
  });
});

describe("a launch that fails", () => {
  it("reports the reason in a file", async () => {
    const { exitCode } = await runProgram([launcher, String(process.pid), directory, "/no/such/program"]);
    expect(exitCode).toBe(1);
    expect(await readFile(join(directory, "launch.log"), "utf8")).toMatch(/starting \/no\/such\/program: No such file/);
  });

  it("starts nothing for a parent that has ended", async () => {
    const { exitCode } = await runProgram([launcher, "1", directory, "/bin/true"]);
    expect(exitCode).toBe(1);
    expect(await readFile(join(directory, "launch.log"), "utf8")).toContain("its parent has exited");
  });
});

function connect(onLost: () => void): SocketChannel {
  const ends = openFifoPair(directory);
  if (ends === undefined) throw new Error("no process holds the FIFOs");
  return new SocketChannel(ends, onLost);
}

async function echo(text: string): Promise<string> {
  const channel = connect(() => {});
  const received = Promise.withResolvers<string>();
  channel.open({ data: (chunk) => void received.resolve(Buffer.from(chunk).toString()), closed: () => {} });
  channel.write([Buffer.from(text)]);
  try {
    return await received.promise;
  } finally {
    channel.close();
  }
}
