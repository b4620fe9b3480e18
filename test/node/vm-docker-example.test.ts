import { once } from "node:events";
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { rejection } from "@sandpiper/core/testing";
import type { SandboxResource } from "@sandpiper/protocol";
import { afterAll, describe, expect, it } from "vitest";
import { connectTo } from "../../packages/providers/src/docker/testing/connect.ts";
import { startDockerd } from "../../packages/providers/src/docker/testing/dockerd.ts";
import { startGitServer } from "../../packages/providers/src/docker/testing/git-server.ts";
import { startRegistry } from "../../packages/providers/src/docker/testing/registry.ts";
import { pushTestImage } from "../../packages/providers/src/docker/testing/test-image.ts";
import { findDockerRoot } from "../../packages/providers/src/guest/image-default.ts";
import { findKernel } from "../../packages/providers/src/guest/kernel.ts";
import { kernelArchive } from "../../packages/providers/src/guest/kernel-archive.ts";
import { machineProcesses } from "../../packages/providers/src/host/testing/machine-traces.ts";
import { shared } from "../../packages/providers/src/host/testing/shared.ts";
import { QemuProvider } from "../../packages/providers/src/qemu/provider.ts";
import { startSdkNode } from "../sdk/sdk-node.ts";
import { ask, SERVE } from "./line-server.ts";
import { RESOURCES } from "./vm-docker-home.ts";

/** A machine boots, its engine starts and loads an image; without KVM, QEMU emulates all of that. */
const FIRST_MS = 180_000;
const PROJECT = "project-abc123";

const home = await mkdtemp(join(tmpdir(), "sp-ex-"));
const source = join(home, "workspace");
await mkdir(source);
await writeFile(join(source, "main.py"), "print('from the host')\n");
const git = await shared(startGitServer("127.0.0.1", { user: "me", password: "secret" }));
const registry = await shared(startRegistry());
const image = `${registry.address}/team/app:1`;
{
  await using dockerd = await startDockerd();
  using engine = await connectTo(dockerd);
  await pushTestImage(engine, image, { variant: "python" });
}

/** A kernel and an initrd as an operator provides them: the initrd has the kernel's modules, and no agent. */
async function operatorsKernel() {
  const found = await findKernel();
  const files = await Promise.all(
    found.modules.map(async (path) => ({
      kind: "file" as const,
      path: `modules/${basename(path)}`,
      bytes: await readFile(path),
    })),
  );
  const [kernel, initrd] = [join(home, "vmlinuz"), join(home, "initrd.img")];
  await copyFile(found.path, kernel);
  await writeFile(initrd, kernelArchive([{ kind: "directory", path: "modules" }, ...files]));
  return { kernel, initrd, machineImage: String(await findDockerRoot()) };
}

const node = await startSdkNode({
  home: join(home, "home"),
  defaultProvider: "vm-docker",
  vmDocker: {
    ...RESOURCES,
    volumesMib: 512,
    ...(await operatorsKernel()),
    allowedPaths: [source],
    gitHosts: [git.address],
  },
});
const { client } = node;
const machines = new QemuProvider({ stateDirectory: join(home, "home/node/vm") });

afterAll(async () => {
  for await (const sandbox of client.sandboxes.list()) await sandbox.destroy();
  for (const { id } of await client.machines.list()) await client.machines.stop(id, { force: true });
  await node.stop();
  for (const { id } of await machines.list()) await machines.remove(id);
  await rm(home, { recursive: true });
}, FIRST_MS);

describe("the example of docs/vm-docker.md, in a real machine", () => {
  const env = { SHARED_SECRET: "secret" };
  const caches = [{ name: "pip", path: "/home/user/.cache" }];
  let id: string;

  it(
    "creates a sandbox in the project's machine through REST, with the host's workspace and a cache",
    async () => {
      const container = { project: PROJECT, workspace: { path: source }, network: "bridge", ports: [3000], caches };
      const answer = await fetch(`${node.url}/v1/sandboxes`, {
        method: "POST",
        headers: { authorization: `Bearer ${node.apiKey}`, "content-type": "application/json" },
        body: JSON.stringify({ image, env, container }),
      });
      const created = (await answer.json()) as SandboxResource;
      expect(created).toMatchObject({ provider: "vm-docker", state: "ready", image });
      const sandbox = await client.sandboxes.connect(created.id);
      id = created.id;
      const { stdout } = await sandbox.exec("python3 /workspace/main.py; echo $SHARED_SECRET; cat /proc/version");
      expect(stdout).toMatch(/^from the host\nsecret\nLinux version/);
      expect(stdout).not.toContain(await readFile("/proc/version", "utf8"));
    },
    FIRST_MS,
  );

  it(
    "forwards a published port from the host's loopback through the machine's agent",
    async () => {
      const sandbox = await client.sandboxes.connect(id);
      await sandbox.start(SERVE);
      await expect.poll(() => ask(sandbox.info.addresses["3000"]), { timeout: 60_000 }).toBe("hello you\n");
    },
    FIRST_MS,
  );

  it(
    "creates the next sandbox in the same machine, with a repository that the host clones",
    async () => {
      const workspace = { git: `http://${git.address}/open/repository.git`, ref: "v1" };
      await using sandbox = await client.sandboxes.create({ image, env, container: { project: PROJECT, workspace } });
      expect((await sandbox.exec("cat /workspace/file")).stdout).toBe("first");
      expect(await machines.list()).toHaveLength(1);
      const [machine] = await client.machines.list();
      expect(machine).toMatchObject({ project: PROJECT, state: "ready", ...RESOURCES, error: null });
      expect(machine?.sandboxes).toHaveLength(2);
    },
    FIRST_MS,
  );

  it(
    "creates a sandbox of the project through WS /create",
    async () => {
      const query = new URLSearchParams({ provider: "vm-docker", project: PROJECT, image });
      const url = `${node.url.replace("http", "ws")}/create?${query}`;
      const socket = new WebSocket(url, { headers: { authorization: `Bearer ${node.apiKey}` } } as never);
      const heard: string[] = [];
      socket.addEventListener("message", ({ data }) => void heard.push(String(data)));
      await expect.poll(() => heard.join("\n"), { timeout: 120_000 }).toMatch(/SANDBOX_(RUNNING|CREATION_ERROR)/);
      expect(heard.join("\n")).toContain("SANDBOX_RUNNING");
      socket.close();
      await once(socket, "close");
      expect(await machines.list()).toHaveLength(1);
    },
    FIRST_MS,
  );

  it(
    "shows and stops the machine; its caches stay until they are cleared",
    async () => {
      const [machine] = await client.machines.list();
      const shown = String(machine?.id);
      const [{ id: instance } = { id: "" }] = await machines.list();
      expect(await client.machines.get(shown)).toMatchObject({ id: shown, console: expect.any(String) });
      expect(await rejection(client.machines.stop(shown))).toMatchObject({ reason: "machine_in_use" });
      await client.machines.stop(shown, { force: true });
      expect(await machineProcesses(instance)).toEqual([]);
      const cache = { project: PROJECT, name: "pip", usedBy: [] };
      expect(await client.caches.list()).toMatchObject([cache]);
      await client.caches.clear(cache);
      expect(await client.caches.list()).toEqual([]);
    },
    FIRST_MS,
  );
});
