import { rejection } from "@sandpiper/core/testing";
import type { Client } from "@sandpiper/sdk";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { connectTo } from "../../packages/providers/src/docker/testing/connect.ts";
import { startDockerd } from "../../packages/providers/src/docker/testing/dockerd.ts";
import { freePort } from "../../packages/providers/src/docker/testing/free-port.ts";
import { importTestImage } from "../../packages/providers/src/docker/testing/test-image.ts";
import { shared, sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { blocksOf, readDocument, runProgram } from "../e2e/document.ts";
import { containersAndVolumes, IMAGE } from "../node/docker-home.ts";
import { NodeProcess } from "../node/node-process.ts";
import { type SdkNode, startSdkNode } from "./sdk-node.ts";

const home = sharedDirectory("sdk-docker");
const killedHome = sharedDirectory("sdk-docker-killed");
const dockerd = await shared(startDockerd({ bridge: true }));
const engine = await shared(connectTo(dockerd));
const settings = { url: dockerd.url, image: IMAGE, networks: ["bridge"], hostPorts: ["1-65535"] };
let node: SdkNode;
let client: Client;

async function start(): Promise<void> {
  node = await startSdkNode({ home, defaultProvider: "docker", docker: settings, stopGraceMs: 0 });
  ({ client } = node);
}

beforeAll(async () => {
  await importTestImage(engine, { name: IMAGE, variant: "python" });
  await start();
}, 120_000);

afterEach(async () => {
  for await (const sandbox of client.sandboxes.list()) await sandbox.destroy();
});

afterAll(() => node.stop());

const left = () => containersAndVolumes(engine, /^sandpiper-(agent|cache)-/);

const docker = { provider: "docker", image: IMAGE } as const;

describe("a container, through the SDK", { timeout: 60_000 }, () => {
  it("runs commands, serves a port and leaves nothing behind when it is destroyed", async () => {
    const sandbox = await client.sandboxes.create({
      ...docker,
      env: { SECRET: "in no label" },
      container: { network: "bridge", ports: [8000] },
    });
    expect(sandbox.info).toMatchObject({ state: "ready", image: IMAGE, fidelity: "filesystem" });
    expect((await sandbox.exec('echo "$SECRET"')).stdout).toBe("in no label\n");
    const serve = ["python3", "-c", SERVER];
    const server = await sandbox.start(serve);
    for await (const { bytes } of server.output) if (new TextDecoder().decode(bytes).includes("up")) break;
    const address = sandbox.info.addresses["8000"];
    expect(address).toMatch(/^127\.0\.0\.1:\d+$/);
    expect(await (await fetch(`http://${address}/`)).text()).toBe("hello from inside");
    const [container] = await engine.docker.listContainers();
    expect(JSON.stringify(container)).not.toContain("in no label");
    await sandbox.destroy();
    expect(await left()).toEqual([]);
  });

  it("is rebuilt from the current image with its volume; its processes end with process_lost", async () => {
    const image = await importTestImage(engine, { name: "changing:1", label: "old" });
    const sandbox = await client.sandboxes.create({ provider: "docker", image });
    await sandbox.exec("echo kept > /.data/file; echo lost > /tmp/file");
    const reader = await sandbox.start("sleep 600");
    const ending = rejection(reader.wait());
    const before = await engine.docker.listContainers();
    await importTestImage(engine, { name: "changing:1", label: "new" });
    expect(await sandbox.rebuild()).toMatchObject({ id: sandbox.id, state: "ready" });
    const after = await engine.docker.listContainers();
    expect([before.length, after.length]).toEqual([1, 1]);
    expect(after[0]?.ImageID).not.toBe(before[0]?.ImageID);
    expect((await sandbox.exec("cat /.data/file; ls /tmp")).stdout).toBe("kept\n");
    expect(await ending).toMatchObject({ code: "gone", reason: "process_lost" });
  });

  it("is reported as failed when it is removed outside of Sandpiper, and a rebuild restores it with its volume", async () => {
    const sandbox = await client.sandboxes.create(docker);
    await sandbox.exec("echo kept > /.data/file");
    const events = sandbox.events();
    await engine.docker.getContainer(`sandpiper-${sandbox.id}`).remove({ force: true });
    for await (const { kind } of events) if (kind === "sandbox.failed") break;
    expect(await sandbox.refresh()).toMatchObject({ state: "failed", failure: { message: expect.any(String) } });
    expect(await left()).toEqual([`sandpiper-data-${sandbox.id}`]);
    expect(await sandbox.rebuild()).toMatchObject({ state: "ready", failure: null });
    expect((await sandbox.exec("cat /.data/file")).stdout).toBe("kept\n");
    const after = await lastEvent();
    await engine.docker.getContainer(`sandpiper-${sandbox.id}`).remove({ force: true });
    for await (const { kind } of sandbox.events({ after })) if (kind === "sandbox.failed") break;
    await sandbox.destroy();
    expect(await left()).toEqual([]);
  });

  it("shares caches with its project, which can be cleared when no sandbox uses them", async () => {
    const container = { project: "web", caches: [{ name: "npm", path: "/cache" }] };
    const one = await client.sandboxes.create({ ...docker, container });
    const two = await client.sandboxes.create({ ...docker, container });
    await one.exec("echo shared > /cache/file");
    expect((await two.exec("cat /cache/file")).stdout).toBe("shared\n");
    const [cache] = await client.caches.list();
    expect(cache).toMatchObject({ project: "web", name: "npm", usedBy: expect.arrayContaining([one.id, two.id]) });
    const clear = () => client.caches.clear({ project: "web", name: "npm" });
    const refused = await rejection(clear());
    expect(refused).toMatchObject({ code: "failed_precondition", reason: "cache_in_use" });
    expect(refused.message).toContain("cache npm of project web");
    await one.destroy();
    await two.destroy();
    await clear();
    expect(await client.caches.list()).toEqual([]);
  });

  it("runs the image's own command as a service with the sandbox's environment, also after a rebuild and a fork", async () => {
    const script = 'echo "$GREETING" >> /.data/log; exec sleep 600';
    const image = await importTestImage(engine, { name: "serves:1", entrypoint: ["/bin/sh", "-c"], command: [script] });
    const container = { service: { restart: "always" }, labels: { team: "a" } } as const;
    const sandbox = await client.sandboxes.create({
      provider: "docker",
      image,
      env: { GREETING: "secret" },
      container,
    });
    expect(sandbox.info.container).toEqual(container);
    const log =
      (of = sandbox) =>
      async () =>
        (await of.exec("cat /.data/log")).stdout;
    await expect.poll(log()).toBe("secret\n");
    expect(await sandbox.processes()).toMatchObject([{ id: "service", isRunning: true }]);
    const events = await client.pastEvents({ sandbox: sandbox.id });
    expect(events.map(({ kind, details }) => [kind, details["process"]])).toContainEqual([
      "process.started",
      "service",
    ]);
    const [shown] = await engine.docker.listContainers();
    expect(shown?.Labels).toMatchObject({ team: "a", "sandpiper.sandbox": sandbox.id });
    expect(JSON.stringify(shown)).not.toContain("secret");
    await sandbox.rebuild();
    await expect.poll(log()).toBe("secret\nsecret\n");
    const [fork] = await sandbox.fork();
    if (fork === undefined) throw new Error("no fork");
    await expect.poll(log(fork)).toBe("secret\nsecret\nsecret\n");
  });

  it("has the host port that its caller chose, and a fork gets another", async () => {
    const host = await freePort();
    const container = { network: "bridge", ports: [{ container: 80, host }] };
    const sandbox = await client.sandboxes.create({ ...docker, container });
    expect(sandbox.info).toMatchObject({ container, addresses: { "80": `127.0.0.1:${host}` } });
    expect(await rejection(client.sandboxes.create({ ...docker, container }))).toMatchObject({
      reason: "host_port_in_use",
      message: expect.stringContaining(`tcp port ${host}`),
    });
    const [fork] = await sandbox.fork();
    expect(fork?.info.addresses["80"]).toMatch(/^127\.0\.0\.1:\d+$/);
    expect(fork?.info.addresses["80"]).not.toBe(`127.0.0.1:${host}`);
  });

  it("leaves its volumes on request, which a later sandbox mounts", async () => {
    const first = await client.sandboxes.create(docker);
    await first.exec("echo kept > /.data/file");
    await first.destroy({ volumes: "keep" });
    const name = `sandpiper-data-${first.id}`;
    expect(await left()).toEqual([name]);
    expect(await client.volumes.list()).toMatchObject([{ name, sandbox: first.id, path: "/.data", usedBy: [] }]);
    const second = await client.sandboxes.create({ ...docker, container: { volumes: [{ name }] } });
    expect((await second.exec("cat /.data/file")).stdout).toBe("kept\n");
    expect(await rejection(client.volumes.remove(name))).toMatchObject({ reason: "volume_in_use" });
    await second.destroy();
    await client.volumes.remove(name);
    expect(await client.volumes.list()).toEqual([]);
    expect(await left()).toEqual([]);
  });

  it("is refused with the reason when its image, network or mount is not available", async () => {
    const create = (more: object) => rejection(client.sandboxes.create({ provider: "docker", ...more }));
    const never = { imagePullPolicy: "never" };
    expect(await create({ image: "nowhere:1", container: never })).toMatchObject({ reason: "image_not_found" });
    expect(await create({ container: { network: "host" } })).toMatchObject({ reason: "network_not_allowed" });
    const binds = [{ source: "/etc", target: "/mnt/etc" }];
    expect(await create({ container: { binds } })).toMatchObject({ reason: "path_not_allowed" });
    expect(await left()).toEqual([]);
  });

  it("behaves as the program in docs/sdk.md shows", async () => {
    const [program = ""] = blocksOf(readDocument("docs/sdk.md"), "js");
    expect(program).toContain("node:24");
    const env = { SANDPIPER_URL: node.url, SANDPIPER_API_KEY: node.apiKey };
    const stdout = await runProgram(program.replaceAll("node:24", IMAGE), env);
    expect(stdout).toMatch(/^127\.0\.0\.1:\d+$/m);
    expect(stdout).toMatch(/^web npm \d+ \[/m);
  });
});

describe("a node that starts", { timeout: 60_000 }, () => {
  it("rebuilds sandboxes whose image has changed, and adopts the others with their processes", async () => {
    const startHere = () =>
      NodeProcess.start({ home: killedHome, port: 0, logLevel: "warn", providers: ["docker"], docker: settings });
    const image = await importTestImage(engine, { name: "changing:2", label: "old" });
    await using first = await startHere();
    const outdated = await first.client.sandboxes.create({ provider: "docker", image });
    const current = await first.client.sandboxes.create(docker);
    await outdated.exec("echo kept > /.data/file");
    const counter = await current.start("sleep 600");
    await first.kill();
    await importTestImage(engine, { name: "changing:2", label: "new" });

    await using second = await startHere();
    expect(second.started).toMatchObject({ rebuilt: [outdated.id], lost: [], removed: [] });
    expect(second.started.adopted.toSorted()).toEqual([outdated.id, current.id].sort());
    const again = await second.client.sandboxes.connect(outdated.id);
    expect((await again.exec("cat /.data/file")).stdout).toBe("kept\n");
    const still = await second.client.sandboxes.connect(current.id);
    expect(await still.processes()).toMatchObject([{ id: counter.id, isRunning: true }]);
    for (const sandbox of [again, still]) await sandbox.destroy();
    expect(await left()).toEqual([]);
  });
});

describe("a node whose engine does not answer at start-up", { timeout: 60_000 }, () => {
  it("starts, reports the engine as unavailable, and adopts its sandboxes when the engine answers", async () => {
    const sandbox = await client.sandboxes.create(docker);
    await node.stop();
    await dockerd.kill();
    await start();
    expect(node.engines).toMatchObject([{ provider: "docker", status: { available: false } }]);
    expect(node.reconciled.unreachable).toMatchObject([{ provider: "docker" }]);
    expect((await client.sandboxes.connect(sandbox.id)).state).toBe("ready");
    const after = await lastEvent();
    await dockerd.restart();
    // Without live restore the container ended with the engine, so its sandbox has failed.
    for await (const { kind } of client.events({ after })) if (kind === "sandbox.failed") break;
    const found = await client.sandboxes.connect(sandbox.id);
    expect(found.info).toMatchObject({ state: "failed", failure: { reason: "instance_lost" } });
    expect(await found.rebuild()).toMatchObject({ state: "ready" });
  });
});

async function lastEvent(): Promise<number> {
  const events = await client.pastEvents({ limit: 1000 });
  return events.at(-1)?.id ?? 0;
}

const SERVER = `
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello from inside")
    def log_message(self, *args):
        pass
server = http.server.HTTPServer(("0.0.0.0", 8000), Handler)
print("up", flush=True)
server.serve_forever()
`;
