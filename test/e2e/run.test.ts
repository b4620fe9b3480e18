import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { findLeftovers } from "./leftovers.ts";
import { runCli, startCli } from "./run-cli.ts";

const scratch = sharedDirectory("e2e");
const run = (argv: readonly string[], stdin?: string | Buffer) =>
  runCli(["run", ...argv], { env: { SANDPIPER_HOME: scratch }, ...(stdin === undefined ? {} : { stdin }) });

describe("sandpiper run", () => {
  it("forwards output and exit code, and leaves nothing behind", async () => {
    const result = await run(["--", "sh", "-c", "echo out; echo err >&2; exit 3"]);
    expect(result).toMatchObject({ stdout: "out\n", stderr: "err\n", exitCode: 3 });
    expect(findLeftovers(scratch)).toEqual([]);
  });

  it("prints output while the command runs", async () => {
    const child = startCli(["run", "--", "sh", "-c", "echo first; read line; echo $line"], {
      env: { SANDPIPER_HOME: scratch },
    });
    const [first] = await once(child.stdout as NodeJS.ReadableStream, "data");
    expect(String(first)).toBe("first\n");
    child.stdin?.end("second\n");
    const [second] = await once(child.stdout as NodeJS.ReadableStream, "data");
    expect(String(second)).toBe("second\n");
    expect(await once(child, "close")).toEqual([0, null]);
  });

  it("forwards input and output unchanged", async () => {
    const bytes = randomBytes(3 * 1024 * 1024 + 1);
    const { stdoutBytes, exitCode } = await run(["--", "cat"], bytes);
    expect(exitCode).toBe(0);
    expect(createHash("sha256").update(stdoutBytes).digest("hex")).toBe(
      createHash("sha256").update(bytes).digest("hex"),
    );
  });

  it("ends with the command, even while its input stays open", async () => {
    const child = startCli(["run", "--", "true"], { env: { SANDPIPER_HOME: scratch } });
    expect(await once(child, "close")).toEqual([0, null]);
  });

  it("passes everything after -- to the command without interpreting it", async () => {
    const { stdout } = await run(["--", "printf", "%s|", "--json", "$HOME", "a b", "*", "--"]);
    expect(stdout).toBe("--json|$HOME|a b|*|--|");
  });

  it("prints one JSON object and nothing else with --json", async () => {
    const { stdout, stderr, exitCode } = await run(["--json", "--", "sh", "-c", "echo grün; echo err >&2; exit 4"]);
    expect([exitCode, stderr]).toEqual([4, ""]);
    const object = JSON.parse(stdout);
    expect(Object.keys(object)).toEqual([
      "exitCode",
      "signal",
      "stdout",
      "stderr",
      "durationMs",
      "timedOut",
      "outOfMemory",
      "truncated",
      "sandboxId",
      "provider",
    ]);
    expect(object).toMatchObject({ exitCode: 4, signal: null, stdout: "grün\n", stderr: "err\n", provider: "gvisor" });
    expect(object.sandboxId).toMatch(/^[0-9a-f-]{36}$/);
    expect(object.durationMs).toBeGreaterThan(0);
  });

  const json = async (...argv: string[]) => JSON.parse((await run(["--json", ...argv])).stdout);

  it("reports a time limit and exhausted memory with --json", async () => {
    expect(await json("--", "true")).toMatchObject({ timedOut: false, outOfMemory: false, truncated: false });
    expect(await json("--timeout", "1s", "--", "sleep", "60")).toMatchObject({ exitCode: 124, timedOut: true });
    const hog = ["python3", "-c", "x = b'x' * (512 << 20)"];
    expect(await json("--memory", "64M", "--", ...hog)).toMatchObject({ exitCode: 137, outOfMemory: true });
  });

  it("truncates more than 64 MiB of output with --json, and reports it", async () => {
    const long = await json("--", "sh", "-c", `yes | tr -d '\\n' | head -c ${65 * 1024 * 1024}`);
    expect(long).toMatchObject({ exitCode: 0, truncated: true });
    expect(long.stdout).toHaveLength(64 * 1024 * 1024);
  });

  it("prints a JSON object with the error when the command cannot start", async () => {
    const { stdout, exitCode } = await run(["--json", "--", "no-such-program"]);
    expect(exitCode).toBe(127);
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: "not_found", reason: "no_such_program" } });
  });

  it("kills the command after --timeout, with exit code 124", async () => {
    const { stdout, stderr, exitCode } = await run(["--timeout", "0.3", "--", "sh", "-c", "echo begun; sleep 60"]);
    expect([stdout, exitCode]).toEqual(["begun\n", 124]);
    expect(stderr).toBe("sandpiper: killed the command after its --timeout of 0.3 s\n");
  });

  it("names the options that only containers support as they were typed", async () => {
    const { stderr, exitCode } = await run(["--image", "node:24", "--publish", "80", "--", "true"]);
    expect(stderr).toContain("sandpiper: cannot use --publish, --image: provider gvisor does not run containers\n");
    expect(exitCode).toBe(2);
  });

  it("prints no notices with --quiet", async () => {
    const { stderr, exitCode } = await run(["--quiet", "--timeout", "0.2", "--", "sleep", "60"]);
    expect([stderr, exitCode]).toEqual(["", 124]);
  });

  it("reports that memory ran out, with exit code 137", async () => {
    const hog = "x = b'x' * (512 << 20); print(len(x))";
    const { stdout, stderr, exitCode } = await run(["--memory", "64", "--", "python3", "-c", hog]);
    expect([stdout, exitCode]).toEqual(["", 137]);
    expect(stderr).toContain("out of memory: killed the command for using more than 64 MiB");
    expect(findLeftovers(scratch)).toEqual([]);
  });

  it("exits with 128 + N when signal N ends the command", async () => {
    const { stdout, exitCode } = await run(["--json", "--", "sh", "-c", "kill -TERM $$"]);
    expect(exitCode).toBe(143);
    expect(JSON.parse(stdout)).toMatchObject({ exitCode: 143, signal: "SIGTERM" });
  });

  it.each([
    [["no-such-program"], 127, "no-such-program"],
    [["/etc/hostname"], 126, "/etc/hostname"],
  ])("exits like a shell when %j cannot be started", async (command, expected, named) => {
    const { stderr, exitCode } = await run(["--", ...command]);
    expect(exitCode).toBe(expected);
    expect(stderr).toMatch(/^sandpiper: .*cannot run/);
    expect(stderr).toContain(named);
  });

  it("sets the environment, the working directory and the user", async () => {
    const script = "echo $FIRST $CALLERS; pwd; id -un";
    const options = ["--env", "FIRST=a=b", "--env", "CALLERS", "--cwd", "/tmp", "--user", "root"];
    const { stdout } = await runCli(["run", ...options, "--", "sh", "-c", script], {
      env: { SANDPIPER_HOME: scratch, CALLERS: "mine", SECRET: "not handed on" },
    });
    expect(stdout).toBe("a=b mine\n/tmp\nroot\n");
    expect((await run(["--", "env"])).stdout).not.toContain("SANDPIPER_HOME");
  });

  it("enforces --disk and --processes", async () => {
    const options = ["--disk", "16", "--processes", "20", "--memory", "128"];
    const script = "head -c 32M /dev/zero > /tmp/filler; for i in $(seq 40); do sleep 5 & done";
    const { stderr } = await run([...options, "--", "sh", "-c", script]);
    expect(stderr).toContain("No space left on device");
    expect(stderr).toContain("Cannot fork");
  });

  it("kills the command and exits with 141 when its output is closed", async () => {
    const child = startCli(["run", "--", "yes"], { env: { SANDPIPER_HOME: scratch } });
    await once(child.stdout as NodeJS.ReadableStream, "data");
    child.stdout?.destroy();
    expect(await once(child, "exit")).toEqual([141, null]);
    expect(findLeftovers(scratch)).toEqual([]);
  });

  it("fails with exit code 125 when its output cannot be written", async () => {
    const { stderr, exitCode } = await runCli(["run", "--", "echo", "lost"], {
      env: { SANDPIPER_HOME: scratch },
      stdoutFile: "/dev/full",
    });
    expect(exitCode).toBe(125);
    expect(stderr).toContain("cannot write the command's stdout: ENOSPC");
  });
});

describe("sandpiper run --provider local", () => {
  it("warns that it isolates nothing", async () => {
    const { stdout, stderr, exitCode } = await run(["--provider", "local", "--", "echo", "hello"]);
    expect([stdout, exitCode]).toEqual(["hello\n", 0]);
    expect(stderr).toMatch(/^sandpiper: provider local isolates nothing.*\n$/);
    expect(findLeftovers(scratch)).toEqual([]);
  });
});
