import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ContainerOptions, InstanceSpec } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import { shared, sharedDirectory } from "../../host/testing/shared.ts";
import { containerName } from "../container/inspect-container.ts";
import { containerSpec } from "../testing/container-spec.ts";
import { createDockerFixture } from "../testing/fixture.ts";
import { startGitServer } from "../testing/git-server.ts";
import { tracesOf } from "../testing/traces.ts";
import { runInContainer } from "../workspace/run-in-container.ts";

const signal = new AbortController().signal;

const allowed = sharedDirectory("allowed");
await mkdir(join(allowed, "project"));
await writeFile(join(allowed, "project/file"), "of the host");
const provider = { allowedPaths: [allowed] };
const fixture = await shared(createDockerFixture({ bridge: true, image: { variant: "git" }, provider }));
const credential = { user: "me", password: "s3cret" };
const server = await shared(startGitServer(fixture.dockerd.bridgeAddress ?? "", credential));

async function outputOf({ id }: InstanceSpec, command: string): Promise<string> {
  const argv = ["sh", "-c", command];
  const result = await runInContainer(fixture.engine, containerName(id), { argv, user: "1000:1000", env: {}, signal });
  expect(result.exitCode, result.output).toBe(0);
  return result.output;
}

describe("the storage of a container", () => {
  it("is writable for every user inside", async () => {
    await using sandbox = await fixture.create({ container: { caches: [{ name: "pip", path: "/home/user/.cache" }] } });
    for (const user of ["user", "root", "4242"]) {
      const command = `echo ${user} > /.data/${user} && cat /.data/${user} > /home/user/.cache/${user}`;
      expect(await sandbox.exec(command, { user })).toMatchObject({ exitCode: 0, stderr: "" });
    }
  });

  it("is kept for the next instance of the same id, and removed with the sandbox", async () => {
    const spec = containerSpec({ caches: [{ name: "npm", path: "/cache" }] });
    const first = await fixture.provider.create(spec, signal);
    await outputOf(spec, "echo data > /.data/file; echo cache > /cache/file; echo root > /tmp/file");
    await first.destroy({ keepsVolumes: true });
    const second = await fixture.provider.create(spec, signal);
    expect(await outputOf(spec, "cat /.data/file /cache/file; ls /tmp")).toBe("data\ncache\n");
    await second.destroy();
    expect(await tracesOf(spec.id, fixture)).toEqual([]);
    const other = containerSpec({ caches: [{ name: "npm", path: "/elsewhere" }] });
    const instance = await fixture.provider.create(other, signal);
    expect(await outputOf(other, "cat /elsewhere/file; ls /.data")).toBe("cache\n");
    await instance.destroy();
  });

  it("may include allowed host directories, read-only by default", async () => {
    const source = join(allowed, "project");
    await using sandbox = await fixture.create({
      container: { workspace: { path: source }, binds: [{ source, target: "/fixtures", isReadOnly: true }] },
    });
    expect((await sandbox.exec("cat /fixtures/file")).stdout).toBe("of the host");
    expect((await sandbox.exec("echo x > /fixtures/file")).stderr).toContain("Read-only file system");
    await sandbox.exec("printf 'of the sandbox' > /workspace/new", { user: "root" });
    expect(await readFile(join(source, "new"), "utf8")).toBe("of the sandbox");
  });

  it("leaves nothing when its options are rejected", async () => {
    const refused: readonly (readonly [ContainerOptions, string])[] = [
      [{ workspace: { path: "/opt" } }, "path_not_allowed"],
      [{ binds: [{ source: allowed, target: "/.data", isReadOnly: true }] }, "mount_target_taken"],
      [{ network: "nope" }, "network_not_allowed"],
      [{ ports: [3000] }, "ports_need_network"],
      [{ workspace: { git: "https://example.org/a.git" } }, "workspace_needs_network"],
    ];
    for (const [container, reason] of refused) {
      const spec = containerSpec(container);
      expect((await rejection(fixture.provider.create(spec, signal))).reason).toBe(reason);
      expect(await tracesOf(spec.id, fixture)).toEqual([]);
    }
  });

  it("starts with a cloned repository", async () => {
    const git = `http://me:s3cret@${server.address}/private/repository.git`;
    await using sandbox = await fixture.create({ container: { network: "bridge", workspace: { git } } });
    expect((await sandbox.exec("cat file && git status --short", { cwd: "/workspace" })).stdout).toBe("second");
  });

  it("leaves only the volumes of an earlier instance when the clone fails", async () => {
    const git = `http://${server.address}/open/nope.git`;
    const spec = containerSpec({ network: "bridge", workspace: { git } });
    expect((await rejection(fixture.provider.create(spec, signal))).reason).toBe("workspace_clone_failed");
    expect(await tracesOf(spec.id, fixture)).toEqual([]);
    const first = await fixture.provider.create(containerSpec(undefined, spec.id), signal);
    await first.destroy({ keepsVolumes: true });
    expect((await rejection(fixture.provider.create(spec, signal))).reason).toBe("workspace_clone_failed");
    expect(await tracesOf(spec.id, fixture)).toEqual([`volume sandpiper-data-${spec.id}`]);
    await fixture.provider.remove(spec.id);
    expect(await tracesOf(spec.id, fixture)).toEqual([]);
  });
});
