import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runCli, sandpiper, startCli } from "./run-cli.ts";
import { useScratchDirectory } from "./scratch-directory.ts";

const scratch = useScratchDirectory();

describe("a wrong command line", () => {
  it.each([
    [["rnu"], "sandpiper: there is no verb rnu\n  did you mean sandpiper run?\n"],
    [["--versoin"], "sandpiper: there is no option --versoin\n  did you mean sandpiper --version?\n"],
    [["run"], "sandpiper: there is no command to run\n  for example sandpiper run -- python3 -c 'print(6 * 7)'\n"],
    [["run", "--memry", "1", "--", "true"], "sandpiper: run has no option --memry\n  did you mean --memory?\n"],
    [
      ["run", "--memory", "lots", "--", "true"],
      "sandpiper: --memory lots is not a whole number above 0\n  for example --memory 512\n",
    ],
    [
      ["run", "--env", "NOT_SET_HERE", "--", "true"],
      "sandpiper: --env NOT_SET_HERE: NOT_SET_HERE is not set here\n  write --env NOT_SET_HERE=VALUE, or set NOT_SET_HERE first\n",
    ],
    [["keys", "craete"], "sandpiper: keys has no action craete\n  did you mean sandpiper keys create?\n"],
    [["ps"], "sandpiper: ps needs to know more\n  write sandpiper ps SANDBOX\n"],
    [["ps", "a", "b"], 'sandpiper: ps does not know what to do with "b"\n  see sandpiper ps --help\n'],
    [["rm"], "sandpiper: rm needs to know which sandboxes\n  write sandpiper rm SANDBOX, or sandpiper rm --all\n"],
    [["exec", "a"], "sandpiper: there is no command to run\n  for example sandpiper exec a -- ls -l\n"],
    [["completion"], "sandpiper: the completion of one shell can be shown at a time\n  write bash, zsh or fish\n"],
  ])("%j says what is wrong and what to write, with exit code 2", async (argv, expected) => {
    const { stdout, stderr, exitCode } = await runCli(argv);
    expect({ stdout, stderr, exitCode }).toEqual({ stdout: "", stderr: expected, exitCode: 2 });
  });

  it("that only the sandbox's config finds out is one too", async () => {
    const { stderr, exitCode } = await runCli(["run", "--cwd", "relative", "--", "true"]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('cwd "relative" is not allowed; allowed is an absolute path');
  });
});

describe("help", () => {
  it("is shown for the program and for each verb, also to somebody who stops reading", async () => {
    const { stdout } = await runCli(["--help"]);
    const verbs = [...stdout.matchAll(/^ {2}([a-z]+) {2,}/gm)].map(([, verb = ""]) => verb);
    expect(verbs).toEqual(
      [
        "run shell up create ls get exec ps logs kill cp rm",
        "checkpoint checkpoints restore fork pause resume rollback rebuild",
        "events stats keys caches pool nodes node mcp doctor completion help version",
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
});

describe("completion", () => {
  it("for bash is a program that bash accepts and that completes verbs, options and values", async () => {
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
  it("runs from anywhere, through a link too, whatever Node the machine has", async () => {
    const link = join(scratch.path, "sandpiper");
    await symlink(sandpiper, link);
    const result = spawnSync(link, ["--version"], {
      cwd: "/",
      env: { PATH: "/usr/bin:/bin", HOME: scratch.path },
      encoding: "utf8",
    });
    expect(result).toMatchObject({ stdout: "sandpiper 0.1.0\n", stderr: "", status: 0 });
  });

  it("names the Node that it needs where the one it finds is too old", async () => {
    const directory = join(scratch.path, "old/bin");
    await mkdir(join(scratch.path, "old/dist"), { recursive: true });
    await mkdir(directory);
    await copyFile(sandpiper, join(directory, "sandpiper"));
    await copyFile(join(sandpiper, "../../src/main.mjs"), join(scratch.path, "old/dist/main.mjs"));
    const old = `Object.defineProperty(process,"versions",{value:{node:"20.1.0"}})`;
    const node = `#!/bin/sh\nexec ${process.execPath} --import 'data:text/javascript,${old}' "$@"\n`;
    await writeFile(join(directory, "node"), node, { mode: 0o755 });
    const env = { PATH: `${directory}:/usr/bin:/bin`, HOME: scratch.path };
    const result = spawnSync(join(directory, "sandpiper"), ["--version"], { cwd: "/", env, encoding: "utf8" });
    expect(result).toMatchObject({ stdout: "", status: 125 });
    expect(result.stderr).toContain("Node.js 24 or newer is needed; found: v20.1.0");
  });
});
