import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { runCli, sandpiper, startCli } from "./run-cli.ts";

const scratch = sharedDirectory("e2e");

describe("a wrong command line", () => {
  it.each([
    [["rnu"], 'unknown verb "rnu"', 'did you mean "sandpiper run"?'],
    [["--versoin"], 'unknown option "--versoin"', 'did you mean "sandpiper --version"?'],
    [["help", "rnu"], 'help: unknown verb "rnu"', 'did you mean "run"?'],
    [["run"], "run: missing argument CMD", "usage: sandpiper run [OPTIONS] -- CMD [ARGS…]"],
    [["run", "--memry", "1", "--", "true"], "run: unknown option --memry", "did you mean --memory?"],
    [
      ["run", "--memory", "lots", "--", "true"],
      'invalid value "lots" for --memory: expected a size of whole MiB',
      "for example --memory 512 (MiB), --memory 512M or --memory 2G",
    ],
    [
      ["run", "--env", "NOT_SET_HERE", "--", "true"],
      "--env NOT_SET_HERE: NOT_SET_HERE is not set in your environment",
      "write --env NOT_SET_HERE=VALUE, or set NOT_SET_HERE first",
    ],
    [["keys", "craete"], 'keys: unknown action "craete"', 'did you mean "sandpiper keys create"?'],
    [["ps"], "ps: missing argument SANDBOX", "usage: sandpiper ps [OPTIONS] SANDBOX"],
    [["ps", "a", "b"], 'ps: unexpected argument "b"', "usage: sandpiper ps [OPTIONS] SANDBOX"],
    [["rm"], "rm: missing argument SANDBOX", "name the sandboxes, or use --all"],
    [["exec", "a"], "exec: missing argument CMD", "usage: sandpiper exec [OPTIONS] SANDBOX -- CMD [ARGS…]"],
    [["completion"], "completion: missing argument SHELL", "usage: sandpiper completion SHELL"],
  ])("%j is refused with the mistake and the next step, with exit code 2", async (argv, message, hint) => {
    const { stdout, stderr, exitCode } = await runCli(argv);
    expect({ stdout, stderr, exitCode }).toEqual({
      stdout: "",
      stderr: `sandpiper: ${message}\n  ${hint}\n`,
      exitCode: 2,
    });
  });

  it("is also refused with exit code 2 when only the sandbox's configuration detects the mistake", async () => {
    const { stderr, exitCode } = await runCli(["run", "--cwd", "relative", "--", "true"]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('cwd "relative" is not allowed; expected an absolute path');
  });
});

describe("help", () => {
  it("is printed for the program and each verb, and survives a closed pipe", { timeout: 120_000 }, async () => {
    const { stdout } = await runCli(["--help"]);
    const verbs = [...stdout.matchAll(/^ {2}([a-z]+) {2,}/gm)].map(([, verb = ""]) => verb);
    expect(verbs).toEqual(
      [
        "run shell exec mcp",
        "create ls get update rm cp ps logs kill stats events pause resume stop start rebuild move",
        "net ports url forward",
        "checkpoint checkpoints restore fork rollback",
        "up nodes node store backup releases keys secrets tenants audit pool caches volumes machines",
        "doctor completion help version",
      ].flatMap((names) => names.split(" ")),
    );
    for (const verb of verbs) {
      const { stdout: help, exitCode } = await runCli([verb, "--help"]);
      expect([help.split("\n")[0], exitCode]).toEqual([expect.stringContaining(`Usage: sandpiper ${verb}`), 0]);
    }
    const child = startCli(["--help"]);
    child.stdout?.destroy();
    expect(await once(child, "close")).toEqual([0, null]);
  });

  it("is the same after a verb or an action and from the verb help", async () => {
    for (const words of [["run"], ["keys", "create"]]) {
      expect((await runCli(["help", ...words])).stdout).toBe((await runCli([...words, "--help"])).stdout);
    }
  });
});

describe("completion", () => {
  it("for bash completes verbs, options, values, actions and paths", async () => {
    const { stdout } = await runCli(["completion", "bash"]);
    const complete = (...words: string[]) => {
      const line = `COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}`;
      const script = `${stdout}\n${line}; _sandpiper; printf '%s\\n' "\${COMPREPLY[@]}"`;
      const { stdout: replies, status, stderr } = spawnSync("bash", ["--norc", "-c", script], { encoding: "utf8" });
      expect([status, stderr]).toEqual([0, ""]);
      return replies.trim().split("\n");
    };
    expect(spawnSync("bash", ["-n"], { input: stdout, encoding: "utf8" })).toMatchObject({ status: 0, stderr: "" });
    expect(complete("sandpiper", "sh")).toEqual(["shell"]);
    expect(complete("sandpiper", "run", "--mem")).toEqual(["--memory"]);
    expect(complete("sandpiper", "run", "--provider", "")).toEqual([
      "gvisor",
      "qemu",
      "firecracker",
      "docker",
      "vm-docker",
      "local",
    ]);
    expect(complete("sandpiper", "create", "--pull", "m")).toEqual(["missing"]);
    expect(complete("sandpiper", "caches", "cl")).toEqual(["clear"]);
    expect(complete("sandpiper", "keys", "cr")).toEqual(["create"]);
    expect(complete("sandpiper", "keys", "create", "--scope", "a")).toEqual(["admin"]);
    expect(complete("sandpiper", "up", "--po")).toEqual(["--port"]);
    expect(complete("sandpiper", "cp", "/etc/hostna")).toEqual(["/etc/hostname"]);
    expect(complete("sandpiper", "completion", "")).toEqual(expect.arrayContaining(["bash", "zsh", "fish"]));
  });

  it.each(["zsh", "fish"])("for %s names every verb and option", async (shell) => {
    const { stdout, exitCode } = await runCli(["completion", shell]);
    expect(exitCode).toBe(0);
    for (const name of ["run", "shell", "doctor", "completion", "exec", "keys", "pool"]) expect(stdout).toContain(name);
    for (const option of ["memory", "upload", "timeout", "json", "fix", "follow", "ttl", "scope", "port"])
      expect(stdout).toContain(option);
  });
});

describe("the program", () => {
  it("runs from any directory, through a link, with any Node on the PATH", async () => {
    const link = join(scratch, "sandpiper");
    await symlink(sandpiper, link);
    const result = spawnSync(link, ["--version"], {
      cwd: "/",
      env: { PATH: "/usr/bin:/bin", HOME: scratch },
      encoding: "utf8",
    });
    expect(result).toMatchObject({ stdout: "sandpiper 0.1.0\n", stderr: "", status: 0 });
  });

  it("names the Node version that it needs when the PATH has only an older one", async () => {
    const directory = join(scratch, "old/bin");
    await mkdir(join(scratch, "old/dist"), { recursive: true });
    await mkdir(directory);
    await copyFile(sandpiper, join(directory, "sandpiper"));
    await copyFile(join(sandpiper, "../../src/main.mjs"), join(scratch, "old/dist/main.mjs"));
    const old = `Object.defineProperty(process,"versions",{value:{node:"20.1.0"}})`;
    const node = `#!/bin/sh\nexec ${process.execPath} --import 'data:text/javascript,${old}' "$@"\n`;
    await writeFile(join(directory, "node"), node, { mode: 0o755 });
    const env = { PATH: `${directory}:/usr/bin:/bin`, HOME: scratch };
    const result = spawnSync(join(directory, "sandpiper"), ["--version"], { cwd: "/", env, encoding: "utf8" });
    expect(result).toMatchObject({ stdout: "", status: 125 });
    expect(result.stderr).toContain("Node.js 24 or newer is needed; found: v20.1.0");
  });
});
