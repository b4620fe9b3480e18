import { createHash, randomBytes } from "node:crypto";
import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { runCli } from "./run-cli.ts";

const scratch = sharedDirectory("e2e");
const bytes = randomBytes(5_000_000);
const run = (argv: readonly string[]) =>
  runCli(["run", ...argv], { env: { SANDPIPER_HOME: join(scratch, "home") }, cwd: scratch });

beforeAll(async () => {
  const tree = join(scratch, "tree");
  await mkdir(join(tree, "sub/empty"), { recursive: true });
  await writeFile(join(tree, "tool.sh"), "#!/bin/sh\necho ran\n", { mode: 0o755 });
  await writeFile(join(tree, "sub/bytes"), bytes, { mode: 0o640 });
  await symlink("../tool.sh", join(tree, "sub/link"));
  await symlink("/etc/shadow", join(tree, "sub/outside"));
  await chmod(join(tree, "sub"), 0o555);
});

describe("--upload", () => {
  it("copies a directory with its files, modes and links, without following links", async () => {
    const script =
      "cd job && ./tool.sh && stat -c '%n %a %U' tool.sh sub sub/bytes sub/empty && readlink sub/link sub/outside";
    const { stdout, stderr } = await run(["--upload", "tree:/home/user/job", "--", "sh", "-c", script]);
    expect(stderr).toBe("");
    expect(stdout).toBe(
      "ran\ntool.sh 755 user\nsub 555 user\nsub/bytes 640 user\nsub/empty 755 user\n../tool.sh\n/etc/shadow\n",
    );
  });

  it("copies a file unchanged, into a directory when the target ends with a slash", async () => {
    const { stdout } = await run(["--upload", "tree/sub/bytes:/tmp/in/", "--", "sha256sum", "/tmp/in/bytes"]);
    expect(stdout).toBe(`${createHash("sha256").update(bytes).digest("hex")}  /tmp/in/bytes\n`);
  });

  it("makes --user the owner, and starts relative targets at --cwd", async () => {
    const options = ["--user", "root", "--cwd", "/srv", "--upload", "tree/tool.sh:bin/tool"];
    const { stdout } = await run([...options, "--", "stat", "-c", "%n %U", "bin/tool"]);
    expect(stdout).toBe("bin/tool root\n");
  });

  it("may be given several times", async () => {
    const { stdout } = await run(["--upload", "tree/tool.sh:a", "--upload", "tree/tool.sh:b", "--", "ls"]);
    expect(stdout).toBe("a\nb\n");
  });

  it("reports a source that it cannot read, with exit code 2", async () => {
    const { stderr, exitCode } = await run(["--upload", "missing:/tmp/x", "--", "true"]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("--upload missing:/tmp/x: cannot read the source: ENOENT");
  });
});

describe("--download", () => {
  it("copies files and directories out after any exit code, but no links", async () => {
    const script =
      "mkdir -p out/sub out/empty; echo result > out/sub/file; chmod 4755 out/sub/file; ln -s /etc/shadow out/link; exit 5";
    const { stderr, exitCode } = await run(["--download", "out:got", "--", "sh", "-c", script]);
    expect(exitCode).toBe(5);
    expect(stderr).toBe(
      'sandpiper: --download out:got: skipped, since only files and directories are copied: "out/link" (symlink)\n',
    );
    expect(await readFile(join(scratch, "got/sub/file"), "utf8")).toBe("result\n");
    expect((await stat(join(scratch, "got/sub/file"))).mode & 0o7777).toBe(0o755);
    expect((await readdir(join(scratch, "got"), { recursive: true })).sort()).toEqual(["empty", "sub", "sub/file"]);
  });

  it("stops a sparse file that would fill this machine's disk", async () => {
    const options = ["--disk", "16", "--download", "huge:huge"];
    const { stderr, exitCode } = await run([...options, "--", "truncate", "-s", "1T", "huge"]);
    expect(exitCode).toBe(125);
    expect(stderr).toContain("larger than the sandbox's whole disk");
    expect((await readdir(scratch)).filter((name) => name.startsWith("huge"))).toEqual([]);
  });

  it("reports a source that does not exist", async () => {
    const { stderr, exitCode } = await run(["--download", "missing:here", "--", "true"]);
    expect(exitCode).toBe(125);
    expect(stderr).toContain("missing");
  });
});
