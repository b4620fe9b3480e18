import { once } from "node:events";
import { rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import type { PullProgress } from "@sandpiper/core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { shared, sharedDirectory } from "../../host/testing/shared.ts";
import { connectTo } from "../testing/connect.ts";
import { startDockerd } from "../testing/dockerd.ts";
import { freePort } from "../testing/free-port.ts";
import { CREDENTIAL, startRegistry } from "../testing/registry.ts";
import { importTestImage, pushTestImage } from "../testing/test-image.ts";
import { resolveImage } from "./image.ts";
import { pullImage } from "./pull-image.ts";

const { signal } = new AbortController();
const directory = sharedDirectory("pull");
const dockerd = await shared(startDockerd({ bridge: true }));
const engine = await shared(connectTo(dockerd));
const registry = await shared(startRegistry());
// Ignores the registry logins of the user who runs the tests.
beforeEach(() => void vi.stubEnv("DOCKER_CONFIG", directory));
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(join(directory, "config.json"), { force: true });
});

function pull(reference: string, policy: "missing" | "always" | "never" = "missing") {
  return pullImage(engine, reference, { policy, signal });
}

describe("pulling an image", () => {
  it("reports the progress of each layer in bytes, and returns the image", async () => {
    const name = `${registry.address}/team/app:1`;
    await pushTestImage(engine, name, { user: "user" });
    const progress: PullProgress[] = [];
    const image = await pullImage(engine, name, {
      policy: "missing",
      signal,
      onProgress: (step) => progress.push(step),
    });
    expect(image).toEqual({
      id: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      reference: name,
      user: "user",
      architecture: engine.info.architecture,
      os: "linux",
      labels: {},
      command: { argv: ["/bin/sh"], cwd: "/", user: "user" },
    });
    expect(new Set(progress.map((step) => step.layer)).size).toBe(1);
    expect(progress.map((step) => step.status)).toEqual(
      expect.arrayContaining(["waiting", "downloading", "unpacking"]),
    );
    const last = progress.at(-1);
    expect(last).toMatchObject({ image: name, status: "complete" });
    expect(last?.totalBytes).toBeGreaterThan(1_000_000);
    expect(last?.doneBytes).toBe(last?.totalBytes);
  });

  it("pulls one tag, even if the reference has none", async () => {
    const name = `${registry.address}/team/tags`;
    await pushTestImage(engine, `${name}:latest`, { variant: "tiny", label: "latest" });
    await pushTestImage(engine, `${name}:other`, { variant: "tiny", label: "other" });
    const image = await pull(name);
    expect(await resolveImage(engine, `${name}:latest`)).toMatchObject({ id: image.id });
    expect(await resolveImage(engine, `${name}:other`)).toBeUndefined();
  });

  it("pulls by digest", async () => {
    const name = `${registry.address}/team/digest`;
    await pushTestImage(engine, `${name}:latest`, { variant: "tiny", label: "digest" });
    const { id } = await pull(name);
    const [digest] = (await engine.docker.getImage(name).inspect()).RepoDigests;
    await engine.docker.getImage(name).remove({ force: true });
    expect(await pull(String(digest))).toMatchObject({ id });
  });

  it("follows the policy", async () => {
    const name = `${registry.address}/team/policy:1`;
    await expect(pull(name, "never")).rejects.toMatchObject({ code: "not_found", reason: "image_not_found" });
    await pushTestImage(engine, name, { variant: "tiny", label: "old" });
    const old = await pull(name, "missing");
    await pushTestImage(engine, name, { variant: "tiny", label: "new" });
    await importTestImage(engine, { name, variant: "tiny", label: "old" });
    expect(await pull(name, "never")).toMatchObject({ id: old.id });
    expect(await pull(name, "missing")).toMatchObject({ id: old.id });
    expect((await pull(name, "always")).id).not.toBe(old.id);
  });

  it("is shared by concurrent callers", async () => {
    const name = `${registry.address}/team/shared:1`;
    await pushTestImage(engine, name, { variant: "python" });
    const started = vi.spyOn(engine.docker, "createImage");
    const images = await Promise.all([pull(name), pull(name), pull(name, "always")]);
    expect(new Set(images.map((image) => image.id)).size).toBe(1);
    expect(started).toHaveBeenCalledTimes(1);
    started.mockRestore();
  });
});

describe("an image for another machine", () => {
  it("is rejected when the engine has it", async () => {
    const name = await importTestImage(engine, { name: "local:s390x", variant: "tiny", architecture: "s390x" });
    await expect(pull(name, "never")).rejects.toMatchObject({
      code: "invalid_argument",
      reason: "wrong_architecture",
      message: `image local:s390x is for linux/s390x; the engine's machine is linux/${engine.info.architecture}`,
    });
  });

  it("is rejected when the registry has no image for this machine", async () => {
    const name = `${registry.address}/team/foreign`;
    await pushTestImage(engine, `${name}:latest`, { variant: "tiny", architecture: "s390x" });
    await expect(pull(name)).rejects.toMatchObject({ reason: "wrong_architecture" });
    await putIndex("team/foreign", "list");
    await expect(pull(`${name}:list`)).rejects.toMatchObject({
      code: "invalid_argument",
      reason: "wrong_architecture",
    });
  });

  /** A multi-platform image without this platform. */
  async function putIndex(repository: string, tag: string): Promise<void> {
    const url = `http://${registry.address}/v2/${repository}/manifests`;
    const mediaType = "application/vnd.docker.distribution.manifest.v2+json";
    const response = await fetch(`${url}/latest`, { headers: { accept: mediaType } });
    const manifest = await response.text();
    const digest = response.headers.get("docker-content-digest");
    const platform = { os: "linux", architecture: "s390x" };
    const list = "application/vnd.docker.distribution.manifest.list.v2+json";
    const manifests = [{ mediaType, size: manifest.length, digest, platform }];
    const put = await fetch(`${url}/${tag}`, {
      method: "PUT",
      headers: { "content-type": list },
      body: JSON.stringify({ schemaVersion: 2, mediaType: list, manifests }),
    });
    expect(put.status).toBe(201);
  }
});

describe("a registry that refuses a pull", () => {
  it("is reported when it has no such image", async () => {
    for (const name of [`${registry.address}/no/such:1`, `${registry.address}/team/app:no-such-tag`]) {
      await expect(pull(name)).rejects.toMatchObject({
        code: "not_found",
        reason: "image_not_found",
        message: expect.stringContaining(name),
        details: { image: name, registry: registry.address },
      });
    }
  });

  it("is reported when it requires a credential, which Docker's settings may provide", async () => {
    await using closed = await startRegistry({ needsCredential: true });
    const name = `${closed.address}/team/secret:1`;
    await pushTestImage(engine, name, { variant: "tiny", label: "secret" });
    await expect(pull(name)).rejects.toMatchObject({
      code: "permission_denied",
      reason: "registry_refused",
      hint: expect.stringContaining(`docker login ${closed.address}`),
    });
    const auths = (password: string) => {
      const auth = Buffer.from(`${CREDENTIAL.username}:${password}`).toString("base64");
      return writeFile(join(directory, "config.json"), JSON.stringify({ auths: { [closed.address]: { auth } } }));
    };
    await auths("wrong");
    await expect(pull(name)).rejects.toMatchObject({
      reason: "registry_refused",
      message: expect.not.stringContaining("wrong"),
    });
    await auths(CREDENTIAL.password);
    expect(await pull(name)).toMatchObject({ reference: name });
  });

  it("is reported when the engine does not trust it", async () => {
    await using untrusted = await startRegistry({ host: String(dockerd.bridgeAddress) });
    await expect(pull(`${untrusted.address}/team/app:1`)).rejects.toMatchObject({
      code: "unavailable",
      reason: "registry_unreachable",
      hint: expect.stringContaining("insecure-registries"),
    });
  });

  it("is reported when it does not exist", async () => {
    const address = `127.0.0.1:${await freePort()}`;
    await expect(pull(`${address}/team/app:1`)).rejects.toMatchObject({
      code: "unavailable",
      reason: "registry_unreachable",
      message: expect.stringContaining(`${address}/team/app:1`),
    });
    await expect(pull("registry.invalid/team/app:1")).rejects.toMatchObject({ reason: "registry_unreachable" });
  });
});

describe("a registry that never answers", () => {
  async function silentRegistry() {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const sockets = new Set<{ destroy(): void }>();
    server.on("connection", (socket) => sockets.add(socket));
    const dispose = () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    };
    const name = `127.0.0.1:${(server.address() as AddressInfo).port}/team/app:1`;
    return { name, asked: once(server, "connection"), [Symbol.dispose]: dispose };
  }

  it("is abandoned when the caller aborts", async () => {
    using silent = await silentRegistry();
    const abort = new AbortController();
    const pulling = pullImage(engine, silent.name, { policy: "missing", signal: abort.signal });
    const refused = expect(pulling).rejects.toMatchObject({ name: "AbortError" });
    await silent.asked;
    abort.abort();
    await refused;
  });

  it("does not keep a caller waiting after the engine has died", async () => {
    using silent = await silentRegistry();
    const refused = expect(pull(silent.name)).rejects.toMatchObject({ reason: "engine_unreachable" });
    await silent.asked;
    await dockerd.kill();
    await refused;
    await dockerd.restart();
  });
});
