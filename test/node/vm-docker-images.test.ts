import { createWriteStream } from "node:fs";
import { chmod, readdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { PullProgress } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { resolveImage } from "../../packages/providers/src/docker/image/image.ts";
import { connectTo } from "../../packages/providers/src/docker/testing/connect.ts";
import { startDockerd } from "../../packages/providers/src/docker/testing/dockerd.ts";
import { freePort } from "../../packages/providers/src/docker/testing/free-port.ts";
import { CREDENTIAL, startRegistry } from "../../packages/providers/src/docker/testing/registry.ts";
import { pushTestImage, testImageArchive } from "../../packages/providers/src/docker/testing/test-image.ts";
import { freshDirectory, shared } from "../../packages/providers/src/host/testing/shared.ts";
import { HostImages } from "../../packages/providers/src/vm-docker/image/host-images.ts";
import { machineImages } from "./vm-docker-home.ts";

const { signal } = new AbortController();
const directory = freshDirectory("vm-images");
const dockerd = await shared(startDockerd({ bridge: true }));
const engine = await shared(connectTo(dockerd));
const registry = await shared(startRegistry());
const closed = await shared(startRegistry({ needsCredential: true }));
/** The engine stands for the one in a machine: it gets images only as archives. */
const machine = { id: "host", engineUrl: dockerd.url };

// Ignores the registry logins of the user who runs the tests.
beforeEach(() => void vi.stubEnv("DOCKER_CONFIG", directory));
afterEach(() => void vi.unstubAllEnvs());

const missing = { policy: "missing", signal } as const;

describe("an image for a machine", () => {
  it("is pulled on the host with progress, and loaded into each machine once", async () => {
    const name = `${registry.address}/team/app:1`;
    await pushTestImage(engine, name, { variant: "tiny", user: "user", label: "loaded" });
    const images = machineImages(directory);
    const progress: PullProgress[] = [];
    const options = { ...missing, onProgress: (step: PullProgress) => void progress.push(step) };
    expect(await images.provide(machine, name, options)).toBe(name);
    expect(await resolveImage(engine, name)).toMatchObject({ user: "user", labels: { test: "loaded" } });
    const done = progress.filter(({ status }) => status === "complete");
    expect(done.map(({ layer }) => layer)).toEqual([expect.any(String), expect.any(String), "machine"]);
    for (const { doneBytes, totalBytes } of done) expect(doneBytes).toBe(totalBytes);
    progress.splice(0);
    await Promise.all([images.provide(machine, name, options), images.provide(machine, name, options)]);
    expect(progress).toEqual([]);
  });

  it("comes from the host's cache for the next machine, without the registry", async () => {
    const own = await startRegistry();
    const name = `${own.address}/team/cached:1`;
    await pushTestImage(engine, name, { variant: "tiny", label: "cached" });
    await machineImages(directory).pull(name, missing);
    await own[Symbol.asyncDispose]();
    await machineImages(directory).provide(machine, name, { ...missing, policy: "never" });
    expect(await resolveImage(engine, name)).toMatchObject({ labels: { test: "cached" } });
  });

  it("is replaced in the machine when the host has pulled a newer one", async () => {
    const name = `${registry.address}/team/new:1`;
    const images = machineImages(directory);
    await pushTestImage(engine, name, { variant: "tiny", label: "old" });
    await images.provide(machine, name, missing);
    await pushTestImage(engine, `${registry.address}/team/new:draft`, { variant: "tiny", label: "draft" });
    await pushTestImage(engine, name, { variant: "tiny", label: "new" });
    await images.provide(machine, name, missing);
    expect(await resolveImage(engine, name)).toMatchObject({ labels: { test: "old" } });
    await images.pull(name, { ...missing, policy: "always" });
    await images.refresh(machine, name, signal);
    expect(await resolveImage(engine, name)).toMatchObject({ labels: { test: "new" } });
  });

  it("can be named by its digest", async () => {
    const name = `${registry.address}/team/digest`;
    await pushTestImage(engine, `${name}:latest`, { variant: "tiny", label: "digest" });
    const answer = await fetch(`http://${registry.address}/v2/team/digest/manifests/latest`, { method: "HEAD" });
    const digest = answer.headers.get("docker-content-digest");
    const inMachine = await machineImages(directory).provide(machine, `${name}@${digest}`, missing);
    expect(await resolveImage(engine, inMachine)).toMatchObject({ labels: { test: "digest" } });
  });

  it("is pulled with the credential that the host's Docker client has", async () => {
    const name = `${closed.address}/team/private:1`;
    await pushTestImage(engine, name, { variant: "tiny", label: "private" });
    const images = machineImages(directory);
    expect(await rejection(images.pull(name, missing))).toMatchObject({ reason: "registry_refused" });
    const auth = Buffer.from(`${CREDENTIAL.username}:${CREDENTIAL.password}`).toString("base64");
    await writeFile(join(directory, "config.json"), JSON.stringify({ auths: { [closed.address]: { auth } } }));
    await chmod(join(directory, "config.json"), 0o600);
    await images.provide(machine, name, missing);
    expect(await resolveImage(engine, name)).toMatchObject({ labels: { test: "private" } });
  });

  it("is expected in the archives that every machine loads, without the registry", async () => {
    const { name, archive } = await testImageArchive({ variant: "tiny", name: "shop/app:7" });
    const path = join(directory, "app.tar");
    await pipeline(archive, createWriteStream(path));
    const images = machineImages(directory, [path]);
    await images.pull(name, missing);
    await images.pull(`docker.io/${name}`, missing);
    const nowhere = `127.0.0.1:${await freePort()}/shop/app:7`;
    expect(await rejection(images.pull(nowhere, missing))).toMatchObject({ reason: "registry_unreachable" });
  });
});

describe("a pull to the host", () => {
  it("names the registry and the reason of a failure", async () => {
    const images = machineImages(directory);
    const failure = (reference: string) => rejection(images.pull(reference, missing));
    expect(await failure(`${registry.address}/team/none:1`)).toMatchObject({
      reason: "image_not_found",
      message: expect.stringContaining(registry.address),
    });
    expect(await rejection(images.pull("none:1", { ...missing, policy: "never" }))).toMatchObject({
      reason: "image_not_found",
    });
  });

  it("rejects content that does not match its digest, and keeps nothing of it", async () => {
    const digest = `sha256:${"a".repeat(64)}`;
    const part = { digest, size: 5 };
    const server = createServer(({ url }, response) => {
      response.end(url?.includes("/blobs/") ? "other" : JSON.stringify({ config: part, layers: [part] }));
    }).listen(0, "127.0.0.1");
    try {
      const { port } = await new Promise<AddressInfo>((resolve) => {
        server.once("listening", () => resolve(server.address() as AddressInfo));
      });
      const pulling = machineImages(directory).pull(`127.0.0.1:${port}/bad:1`, missing);
      expect(await rejection(pulling)).toMatchObject({ code: "data_loss", reason: "image_damaged" });
      expect(await readdir(join(directory, "images/blobs"))).toEqual([]);
    } finally {
      server.close();
    }
  });

  it("is refused for an image that does not fit on a machine's disk, before its download", async () => {
    const name = `${registry.address}/team/huge:1`;
    await pushTestImage(engine, name, { variant: "tiny", label: "huge" });
    const host = new HostImages({ directory: join(directory, "full"), maxBytes: 0, maxImageBytes: 1024 });
    expect(await rejection(host.pull(name, missing))).toMatchObject({ reason: "image_too_large" });
    expect(await readdir(join(directory, "full")).catch(() => [])).toEqual([]);
  });

  it("evicts the least recently used images beyond the limit", async () => {
    const host = new HostImages({ directory: join(directory, "small"), maxBytes: 0, maxImageBytes: 2 ** 30 });
    const [one, two] = [`${registry.address}/team/one:1`, `${registry.address}/team/two:1`];
    await pushTestImage(engine, one, { variant: "tiny", label: "one" });
    await pushTestImage(engine, two, { variant: "base", label: "two" });
    await host.pull(one, missing);
    expect(await host.find(one)).toBeDefined();
    await host.pull(two, missing);
    expect(await host.find(one)).toBeUndefined();
    expect(await host.find(two)).toBeDefined();
    await rm(join(directory, "small"), { recursive: true });
  });
});
