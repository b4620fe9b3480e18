import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { createDockerFixture } from "../../packages/providers/src/docker/testing/fixture.ts";
import { startGitServer } from "../../packages/providers/src/docker/testing/git-server.ts";
import { freshDirectory, shared } from "../../packages/providers/src/host/testing/shared.ts";
import { hostVmDockerProvider } from "./host-vm-driver.ts";
import { ask, SERVE } from "./line-server.ts";

const SECRET = "s3cret-of-a-repository";
const fixture = await shared(createDockerFixture({ bridge: true, image: { variant: "python" } }));
const server = await shared(startGitServer("127.0.0.1", { user: "me", password: SECRET }));
const directory = freshDirectory("vm-workspace");
const clones = () => readdir(join(tmpdir(), "sandpiper-test-workspaces")).catch(() => []);

describe("a published port of a machine's sandbox", () => {
  it("answers on the host's loopback, also after the container was restarted, until the sandbox is destroyed", async () => {
    const provider = hostVmDockerProvider(fixture);
    const container = { network: "bridge", ports: [3000] };
    const sandbox = await Sandbox.create(provider, { container });
    const { "3000": address } = sandbox.addresses ?? {};
    expect(address).toMatch(/^127\.0\.0\.1:\d+$/);
    expect(await provider.containers.get(sandbox.id)).toMatchObject({ addresses: { "3000": address } });
    await sandbox.start(SERVE);
    await expect.poll(() => ask(address)).toBe("hello you\n");
    await provider.containers.stop(sandbox.id, { timeoutMs: 1000 });
    expect(await provider.containers.get(sandbox.id)).toMatchObject({ addresses: {} });
    await provider.containers.start(sandbox.id);
    const again = await Sandbox.adopt(provider, sandbox.id);
    await again.start(SERVE);
    await expect.poll(() => ask(again.addresses?.["3000"])).toBe("hello you\n");
    const last = again.addresses?.["3000"];
    await again.destroy();
    expect(await ask(last)).toBe("");
  });
});

describe("the workspace of a machine's sandbox", () => {
  it("is a copy of an allowed directory of the host, which the sandbox's user owns", async () => {
    const source = join(directory, "project");
    await mkdir(join(source, "src"), { recursive: true });
    await writeFile(join(source, "src/main.py"), "print('copied')\n", { mode: 0o640 });
    await writeFile(join(source, "empty"), "");
    await symlink("/etc/passwd", join(source, "link"));
    const provider = hostVmDockerProvider(fixture, { allowedPaths: [directory] });
    await using sandbox = await Sandbox.create(provider, { container: { workspace: { path: source } } });
    const { stdout } = await sandbox.exec(
      "cd /workspace && python3 src/main.py && ls -A && readlink link && stat -c %U src/main.py && echo x > new",
    );
    expect(stdout).toBe("copied\nempty\nlink\nsrc\n/etc/passwd\nuser\n");
    expect(await readdir(source)).not.toContain("new");
  });

  it("is refused before anything starts, unless its path is allowed", async () => {
    const provider = hostVmDockerProvider(fixture, { allowedPaths: [directory] });
    await symlink("/root", join(directory, "out"));
    for (const path of ["/root", join(directory, "out"), `${directory}/../..`]) {
      const creating = Sandbox.create(provider, { container: { workspace: { path } } });
      expect(await rejection(creating)).toMatchObject({ reason: "path_not_allowed" });
    }
    expect(await provider.machines.list()).toEqual([]);
  });

  it("is refused if it is larger than the limit, and leaves nothing behind", async () => {
    const source = join(directory, "large");
    await mkdir(source);
    await writeFile(join(source, "file"), Buffer.alloc(2 ** 20));
    const provider = hostVmDockerProvider(fixture, { allowedPaths: [directory], maxBytes: 2 ** 19 });
    const creating = Sandbox.create(provider, { container: { workspace: { path: source } } });
    expect(await rejection(creating)).toMatchObject({ reason: "workspace_too_large" });
    expect(await provider.list()).toEqual([]);
  });

  it("is a repository that the host clones for it, at the given ref and without its credentials", async () => {
    const provider = hostVmDockerProvider(fixture, { gitHosts: [server.address] });
    const workspace = { git: `http://me:${SECRET}@${server.address}/private/repository.git`, ref: "v1" };
    await using sandbox = await Sandbox.create(provider, { container: { workspace } });
    const { stdout } = await sandbox.exec(
      "cat /workspace/file; cat /workspace/.git/config; ls /workspace/.git; id -un",
    );
    expect(stdout).toMatch(/^first/);
    expect(stdout).toContain(`url = http://${server.address}/private/repository.git`);
    expect(stdout).not.toContain(SECRET);
    expect(stdout).not.toContain("hooks");
    await expect.poll(clones).toEqual([]);
  });

  it("is not cloned from a host that is neither public nor allowed, nor with other protocols", async () => {
    const provider = hostVmDockerProvider(fixture, { gitHosts: ["git.example:8080"] });
    const urls = [
      `http://${server.address}/open/repository.git`,
      `https://${server.address}/open/repository.git`,
      "https://localhost/repository.git",
      "ssh://git@git.example:8080/repository.git",
      "git://git.example:8080/repository.git",
    ];
    for (const git of urls) {
      const creating = Sandbox.create(provider, { container: { workspace: { git } } });
      expect(await rejection(creating)).toMatchObject({ reason: "git_host_not_allowed" });
    }
    expect(await provider.machines.list()).toEqual([]);
  });

  it("names the reason if git fails, without its credentials, and leaves nothing behind", async () => {
    const provider = hostVmDockerProvider(fixture, { gitHosts: [server.address] });
    const workspace = { git: `http://me:wr0ng-pass@${server.address}/private/repository.git` };
    const error = await rejection(Sandbox.create(provider, { container: { workspace } }));
    expect(error).toMatchObject({ reason: "workspace_clone_failed", message: expect.stringContaining(server.address) });
    expect(String((error as Error).message)).not.toContain("wr0ng-pass");
    expect(await clones()).toEqual([]);
    expect(await provider.list()).toEqual([]);
  });
});
