import { once } from "node:events";
import { createServer } from "node:http";
import { createServer as createSocketServer } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { shared, sharedDirectory } from "../../host/testing/shared.ts";
import { connectTo, startSleeper } from "../testing/connect.ts";
import { startDockerd } from "../testing/dockerd.ts";
import type { Endpoint } from "./endpoint.ts";
import { Engine } from "./engine.ts";

const directory = sharedDirectory("engine");
const dockerd = await shared(startDockerd());
afterEach(() => void vi.unstubAllEnvs());

function at(name: string): Endpoint {
  return { url: new URL(`unix://${join(directory, name)}`), origin: "a test", tls: undefined };
}

/** A fake engine with an arbitrary version. */
async function answering(name: string, version: object): Promise<AsyncDisposable> {
  const server = createServer((_, response) => response.end(JSON.stringify(version))).listen(join(directory, name));
  await once(server, "listening");
  return {
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

describe("an engine", () => {
  it("reports its version and features", async () => {
    using engine = await connectTo(dockerd);
    expect(engine.info).toEqual({
      serverVersion: expect.stringMatching(/^\d+\.\d+/),
      apiVersion: expect.stringMatching(/^1\.\d+$/),
      isPodman: false,
      architecture: process.arch === "x64" ? "amd64" : process.arch,
      os: "linux",
      runtimes: expect.arrayContaining(["runc"]),
      defaultRuntime: "runc",
      isLiveRestore: false,
      cgroupVersion: expect.stringMatching(/^[12]$/),
    });
  });

  it("is the one at the endpoint, regardless of the environment", async () => {
    vi.stubEnv("DOCKER_HOST", "tcp://127.0.0.1:1");
    using engine = await connectTo(dockerd);
    expect(await engine.call("list containers", (docker) => docker.listContainers())).toEqual([]);
  });

  it.each([
    [{ ApiVersion: "1.41", MinAPIVersion: "1.12" }, "1.41"],
    [{ ApiVersion: "1.45", MinAPIVersion: "1.24" }, "1.45"],
    [{ ApiVersion: "1.99", MinAPIVersion: "1.44" }, "1.51"],
    [{ ApiVersion: "1.41" }, "1.41"],
  ])("uses the newest API version that both sides support: %o", async (version, apiVersion) => {
    await using _ = await answering("version.sock", { Version: "x", ...version });
    using engine = await Engine.connect(at("version.sock"));
    expect(engine.info.apiVersion).toBe(apiVersion);
  });

  it("lists only installed runtimes, although Podman reports others", async () => {
    await using _ = await answering("podman.sock", {
      Version: "4.3.1",
      ApiVersion: "1.41",
      Components: [{ Name: "Podman Engine" }],
      Runtimes: { crun: {}, runsc: {} },
      DefaultRuntime: "crun",
    });
    using engine = await Engine.connect(at("podman.sock"));
    expect(engine.info).toMatchObject({ isPodman: true, runtimes: ["crun"], defaultRuntime: "crun" });
  });

  it.each([
    ["too old", { Version: "19.03", ApiVersion: "1.40", MinAPIVersion: "1.12" }, "engine_version"],
    ["too new", { Version: "99.0", ApiVersion: "1.99", MinAPIVersion: "1.90" }, "engine_version"],
    ["of another generation", { Version: "99.0", ApiVersion: "2.0", MinAPIVersion: "2.0" }, "engine_version"],
    ["not an engine", { hello: "world" }, "not_an_engine"],
  ])("is rejected when it is %s", async (_title, version, reason) => {
    await using _ = await answering("refused.sock", version);
    await expect(Engine.connect(at("refused.sock"))).rejects.toMatchObject({ code: "failed_precondition", reason });
  });

  it("that does not exist is reported with its address", async () => {
    await expect(Engine.connect(at("nothing.sock"))).rejects.toMatchObject({
      code: "unavailable",
      reason: "engine_unreachable",
      message: expect.stringContaining(`unix://${join(directory, "nothing.sock")} (a test)`),
      hint: expect.stringContaining("DOCKER_HOST"),
    });
  });

  it("that never answers can be aborted", async () => {
    const server = createSocketServer().listen(join(directory, "silent.sock"));
    await once(server, "listening");
    const abort = new AbortController();
    server.once("connection", () => abort.abort());
    await expect(Engine.connect(at("silent.sock"), abort.signal)).rejects.toMatchObject({ code: "canceled" });
    server.close();
  });

  it("is quoted in the error, with the operation and the id", async () => {
    using engine = await connectTo(dockerd);
    const inspected = engine.call("inspect container nope", (docker) => docker.getContainer("nope").inspect());
    await expect(inspected).rejects.toMatchObject({
      code: "not_found",
      message: "could not inspect container nope: No such container: nope",
    });
    const created = engine.call("create volume !", (docker) => docker.createVolume({ Name: "!" }));
    await expect(created).rejects.toMatchObject({ code: "invalid_argument", reason: "engine_refused" });
  });

  it("that dies in the middle of a response fails the call", async () => {
    using engine = await connectTo(dockerd);
    const container = await startSleeper(engine);
    const waiting = engine.call(`wait for container ${container.id}`, () => container.wait());
    const failed = expect(waiting).rejects.toMatchObject({ code: "unavailable", reason: "engine_unreachable" });
    // The engine has sent the headers, and sends the body when the container ends.
    await expect.poll(() => engine.docker.listContainers()).toHaveLength(1);
    await dockerd.kill();
    await failed;
    await expect(engine.call("list containers", (docker) => docker.listContainers())).rejects.toMatchObject({
      reason: "engine_unreachable",
    });
    await dockerd.restart();
    expect(await engine.call("list containers", (docker) => docker.listContainers())).toEqual([]);
  });
});
