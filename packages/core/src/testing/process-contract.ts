import { rejection } from "@sandpiper/protocol/testing";
import { eventually, shareSandbox, textOf } from "./contract-sandbox.ts";
import type { ContractContext } from "./provider-contract.ts";

export function describeProcesses(context: ContractContext): void {
  const { describe, it, expect } = context.framework;

  describe("processes", () => {
    const sandbox = shareSandbox(context);

    it("reads output that was requested together with the start", async () => {
      const process_ = await sandbox().start("echo one; echo two >&2; exit 3", { isRead: true });
      const seen: string[] = [];
      for await (const { source, bytes } of process_.output) seen.push(`${source} ${new TextDecoder().decode(bytes)}`);
      expect(seen.sort().join("")).toBe("stderr two\nstdout one\n");
      expect((await process_.wait()).exitCode).toBe(3);
      // A second reader starts from the beginning.
      expect(await textOf(process_.stdout)).toBe("one\n");
      const error = await rejection(sandbox().start("echo again", { id: process_.id, isRead: true }));
      expect(error.code).toBe("already_exists");
      await process_.forget();
    });

    it("waits for a reader that was announced with the start, and drops nothing", async () => {
      await using process_ = await sandbox().start("head -c 3000000 /dev/zero", {
        isRead: true,
        journalBytes: 100_000,
      });
      await sandbox().exec("sleep 0.2");
      const chunks = await Array.fromAsync(process_.output);
      expect(chunks.filter(({ dropped }) => dropped > 0).length).toBe(0);
      expect(chunks.reduce((sum, { bytes }) => sum + bytes.length, 0)).toBe(3_000_000);
    });

    it("accepts input while it runs, and ends with it", async () => {
      await using cat = await sandbox().start("cat", { stdin: true });
      await Promise.all([cat.write("one "), cat.write("two"), cat.closeStdin()]);
      expect(await textOf(cat.stdout)).toBe("one two");
      expect(await cat.wait()).toMatchObject({ exitCode: 0, signal: null });
    });

    it("delivers output before the process has ended", async () => {
      await using process = await sandbox().start("echo first; cat; echo last", { stdin: true });
      const output = process.output[Symbol.asyncIterator]();
      const first = await output.next();
      expect(new TextDecoder().decode(first.value?.bytes)).toBe("first\n");
      expect(first.value).toMatchObject({ source: "stdout", offset: 0, dropped: 0 });
      expect((await sandbox().processes()).find(({ id }) => id === process.id)).toMatchObject({ isRunning: true });
      await process.closeStdin();
      const second = await output.next();
      expect(second.value).toMatchObject({ source: "stdout", offset: 6 });
      expect(new TextDecoder().decode(second.value?.bytes)).toBe("last\n");
      expect((await output.next()).done).toBe(true);
    });

    it("separates standard output and standard error", async () => {
      await using process = await sandbox().start("echo out; echo err >&2");
      expect(await textOf(process.stdout)).toBe("out\n");
      expect(await textOf(process.stderr)).toBe("err\n");
    });

    it("lets a second reader start at any offset", async () => {
      await using process = await sandbox().start("printf 0123456789; cat", { stdin: true });
      const output = process.output[Symbol.asyncIterator]();
      await output.next();
      process.detach();
      const again = await sandbox().attach(process.id, { offset: 4 });
      expect(again.pid).toBe(process.pid);
      await again.write("x");
      await again.closeStdin();
      expect(await textOf(again.stdout)).toBe("456789x");
    });

    it("keeps the exit status until the process is forgotten", async () => {
      const process = await sandbox().start("exit 7");
      await process.wait();
      const again = await sandbox().attach(process.id);
      expect(await again.wait()).toMatchObject({ exitCode: 7 });
      await again.forget();
      expect(await rejection(sandbox().attach(process.id))).toMatchObject({ code: "not_found" });
    });

    it("delivers signals", async () => {
      await using process = await sandbox().start("sleep 60");
      await process.signal("SIGTERM");
      expect(await process.wait()).toMatchObject({ exitCode: 143, signal: "SIGTERM" });
    });

    it("kills a process", async () => {
      await using process = await sandbox().start("sleep 60");
      await process.kill();
      expect(await process.wait()).toMatchObject({ exitCode: 137, signal: "SIGKILL" });
    });

    it("starts the sandbox's shell without a command", async () => {
      await using shell = await sandbox().start(undefined, { stdin: true });
      await shell.write("echo in the shell\nexit 4\n");
      await shell.closeStdin();
      expect(await textOf(shell.stdout)).toBe("in the shell\n");
      expect(await shell.wait()).toMatchObject({ exitCode: 4 });
    });

    it("runs on a terminal on request", async () => {
      await using process = await sandbox().start("test -t 1 && echo terminal", { pty: { rows: 24, cols: 80 } });
      const sources: string[] = [];
      let text = "";
      for await (const { source, bytes } of process.output) {
        sources.push(source);
        text += new TextDecoder().decode(bytes);
      }
      expect(sources).toContain("pty");
      expect(text).toContain("terminal");
    });

    it("resizes a terminal", async () => {
      await using process = await sandbox().start("cat", { pty: { rows: 24, cols: 80 } });
      await process.resize({ rows: 50, cols: 132 });
    });

    it("waits for a stalled reader, loses nothing and blocks no other call", async () => {
      await using process = await sandbox().start("head -c 8000000 /dev/zero");
      const output = process.output[Symbol.asyncIterator]();
      let seenBytes = (await output.next()).value?.bytes.length ?? 0;
      expect((await sandbox().exec("echo meanwhile")).stdout).toBe("meanwhile\n");
      for (let next = await output.next(); !next.done; next = await output.next()) {
        expect(next.value.offset).toBe(seenBytes);
        seenBytes += next.value.bytes.length;
      }
      expect(seenBytes).toBe(8_000_000);
    });

    it("leaves no process behind", async () => {
      await eventually(async () => (await sandbox().processes()).length === 0);
    });
  });
}
