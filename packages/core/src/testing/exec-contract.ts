import { ByteCollector } from "@sandpiper/protocol";
import { rejection } from "@sandpiper/protocol/testing";
import { eventually, isEqualBytes, sampleBytes, shareSandbox } from "./contract-sandbox.ts";
import type { ContractContext } from "./provider-contract.ts";

export function describeExec(context: ContractContext): void {
  const { describe, it, expect, afterAll } = context.framework;

  describe("exec", () => {
    const sandbox = shareSandbox(context);

    it("returns stdout, stderr and the exit code separately", async () => {
      const result = await sandbox().exec("echo out; echo err >&2; exit 3");
      expect(result).toMatchObject({ exitCode: 3, signal: null, stdout: "out\n", stderr: "err\n" });
      expect(result).toMatchObject({ timedOut: false, outOfMemory: false, truncated: false });
    });

    it("passes the arguments of a list unchanged", async () => {
      const result = await sandbox().exec(["printf", "%s|", "a b", "$HOME", "*"]);
      expect(result.stdout).toBe("a b|$HOME|*|");
    });

    it("sends standard input and closes it", async () => {
      expect((await sandbox().exec("cat", { stdin: "grüße\n" })).stdout).toBe("grüße\n");
      expect((await sandbox().exec("cat")).stdout).toBe("");
    });

    it("sends megabytes of standard input", async () => {
      const stdin = "0123456789abcdef".repeat(200_000);
      expect((await sandbox().exec("cat", { stdin })).stdout === stdin).toBe(true);
    });

    it("tolerates a command that does not read its input", async () => {
      const result = await sandbox().exec("echo done", { stdin: "x".repeat(500_000) });
      expect(result).toMatchObject({ exitCode: 0, stdout: "done\n" });
    });

    it("adds variables to the sandbox's environment", async () => {
      const result = await sandbox().exec('echo "$CONTRACT, $GREETING"', { env: { GREETING: "hello  there" } });
      expect(result.stdout).toBe("from config, hello  there\n");
    });

    it("runs in the given directory", async () => {
      expect((await sandbox().exec("pwd", { cwd: "/tmp" })).stdout).toBe("/tmp\n");
    });

    it("kills a command at its time limit, and reports it", async () => {
      const result = await sandbox().exec("echo started; sleep 60", { timeoutMs: 400 });
      expect(result).toMatchObject({ exitCode: 137, signal: "SIGKILL", timedOut: true, stdout: "started\n" });
    });

    it("distinguishes a signal from an exit code", async () => {
      const result = await sandbox().exec("kill -TERM $$");
      expect(result).toMatchObject({ exitCode: 143, signal: "SIGTERM", timedOut: false });
    });

    it("kills the command when its caller aborts", async () => {
      const abort = new AbortController();
      const running = sandbox().exec("echo ready; sleep 60", { signal: abort.signal, onStdout: () => abort.abort() });
      expect(await rejection(running)).toMatchObject({ code: "canceled" });
      await eventually(async () => (await sandbox().processes()).length === 0);
    });

    it("keeps megabytes of output complete", async () => {
      const result = await sandbox().exec("head -c 5000000 /dev/zero");
      expect(result.stdout.length).toBe(5_000_000);
      expect(result.truncated).toBe(false);
    });

    it("reports output beyond its limit, and still reads all of it", async () => {
      let seenBytes = 0;
      const result = await sandbox().exec("head -c 3000000 /dev/zero; echo end >&2", {
        maxOutputBytes: 1000,
        onStdout: (bytes) => {
          seenBytes += bytes.length;
        },
      });
      expect(result).toMatchObject({ exitCode: 0, truncated: true });
      expect(result.stdout.length).toBe(1000);
      expect(seenBytes).toBe(3_000_000);
    });

    it("decodes characters that are split between chunks", async () => {
      const text = "é€😀 ".repeat(150_000);
      await sandbox().writeFile("characters.txt", text);
      expect((await sandbox().exec("cat characters.txt")).stdout === text).toBe(true);
    });

    it("runs commands concurrently, each with its own output", async () => {
      const names = Array.from({ length: 20 }, (_, index) => `n${index}`);
      const results = await Promise.all(names.map((name) => sandbox().exec(`sleep 0.05; echo ${name}`)));
      expect(results.map(({ stdout }) => stdout)).toEqual(names.map((name) => `${name}\n`));
    });

    it("answers quick calls while a slow command runs", async () => {
      const abort = new AbortController();
      const slow = rejection(sandbox().exec("sleep 60", { signal: abort.signal }));
      expect((await sandbox().exec("echo quick")).stdout).toBe("quick\n");
      abort.abort();
      expect((await slow).code).toBe("canceled");
    });

    it("reports a missing command like the shell", async () => {
      expect((await sandbox().exec("no-such-command-here 2>/dev/null")).exitCode).toBe(127);
    });

    it("refuses a directory that does not exist", async () => {
      const error = await rejection(sandbox().exec("true", { cwd: "/no/such/directory" }));
      expect(["not_found", "invalid_argument"]).toContain(error.code);
    });

    it("passes bytes to callbacks unchanged", async () => {
      const bytes = sampleBytes(300_000);
      await sandbox().writeFile("sample.bin", bytes);
      const seen = new ByteCollector();
      await sandbox().exec("cat sample.bin", { onStdout: (chunk) => seen.add(chunk) });
      expect(isEqualBytes(seen.bytes(), bytes)).toBe(true);
    });

    const usersTest = context.capabilities.supportsUsers ? it : it.skip;
    const reason = context.capabilities.supportsUsers ? "" : " (skipped: this provider declares supportsUsers false)";
    usersTest(`runs as the user that is asked for${reason}`, async () => {
      expect((await sandbox().exec("id -u", { user: "root" })).stdout).toBe("0\n");
      expect((await sandbox().exec("id -u", { user: "user" })).stdout).toBe("1000\n");
      expect((await sandbox().exec("id -u; id -g", { user: "1234:1235" })).stdout).toBe("1234\n1235\n");
    });

    afterAll(async () => {
      await eventually(async () => (await sandbox().processes()).length === 0);
    });
  });
}
