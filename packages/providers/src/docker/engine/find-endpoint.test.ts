import { createHash } from "node:crypto";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { shared, sharedDirectory } from "../../host/testing/shared.ts";
import { startDockerd } from "../testing/dockerd.ts";
import { Engine } from "./engine.ts";
import { type EndpointSurroundings, findEndpoint } from "./find-endpoint.ts";

const home = sharedDirectory("endpoint");

function find(env: EndpointSurroundings["env"], sockets: readonly string[] = [], engineUrl?: string) {
  const isSocket = (path: string) => sockets.includes(path);
  return findEndpoint(engineUrl, { env, homeDirectory: home, uid: 1000, isSocket });
}

async function urlOf(env: EndpointSurroundings["env"], sockets?: readonly string[], engineUrl?: string) {
  return (await find(env, sockets, engineUrl)).url.href;
}

async function writeContext(directory: string, name: string, endpoint: object): Promise<string> {
  const id = createHash("sha256").update(name).digest("hex");
  await mkdir(join(directory, "contexts/meta", id), { recursive: true });
  await writeFile(
    join(directory, "contexts/meta", id, "meta.json"),
    JSON.stringify({ Name: name, Endpoints: { docker: endpoint } }),
  );
  return id;
}

describe("the engine's address", () => {
  it("comes from the setting before the environment", async () => {
    const env = { DOCKER_HOST: "tcp://elsewhere:1" };
    expect(await find(env, [], "unix:///my/engine.sock")).toMatchObject({
      url: expect.objectContaining({ href: "unix:///my/engine.sock" }),
      origin: "the engine URL setting",
    });
  });

  it.each([
    ["unix:///run/other.sock", "unix:///run/other.sock"],
    ["tcp://10.0.0.1:4243", "http://10.0.0.1:4243/"],
    ["tcp://engine", "http://engine:2375/"],
    ["10.0.0.1:4243", "http://10.0.0.1:4243/"],
    ["http://engine:8080", "http://engine:8080/"],
    ["https://engine", "https://engine/"],
    ["tcp://[::1]:2375", "http://[::1]:2375/"],
  ])("comes from DOCKER_HOST: %s", async (host, url) => {
    expect(await urlOf({ DOCKER_HOST: host, DOCKER_CONTEXT: "another" })).toBe(url);
  });

  it.each([
    ["ssh://me@engine", "ssh -nNT -L /tmp/engine.sock:/var/run/docker.sock me@engine"],
    ["npipe:////./pipe/docker_engine", "unix:///var/run/docker.sock"],
    ["unix://relative", "unix:///var/run/docker.sock"],
    ["tcp://engine:2375/prefix", "unix:///var/run/docker.sock"],
    ["tcp://name:secret@engine:2375", "unix:///var/run/docker.sock"],
    ["tcp://", "unix:///var/run/docker.sock"],
  ])("is rejected with a hint if it is unsupported: %s", async (host, hint) => {
    await expect(find({ DOCKER_HOST: host })).rejects.toMatchObject({
      code: "invalid_argument",
      reason: "engine_url",
      message: expect.stringContaining("DOCKER_HOST"),
      hint: expect.stringContaining(hint),
    });
  });

  it("is never shown with its password", async () => {
    const refused = find({ DOCKER_HOST: "tcp://name:secret@engine:2375" });
    await expect(refused).rejects.toMatchObject({ message: expect.not.stringContaining("secret") });
  });

  it("comes from the context in DOCKER_CONTEXT or in the client's settings", async () => {
    const directory = join(home, "contexts");
    await writeContext(directory, "build", { Host: "unix:///run/build.sock" });
    await writeContext(directory, "chosen", { Host: "tcp://chosen:2375" });
    await writeFile(join(directory, "config.json"), JSON.stringify({ currentContext: "chosen" }));
    const env = { DOCKER_CONFIG: directory };
    expect(await find({ ...env, DOCKER_CONTEXT: "build" })).toMatchObject({
      url: expect.objectContaining({ href: "unix:///run/build.sock" }),
      origin: 'the context "build"',
    });
    expect(await urlOf(env)).toBe("http://chosen:2375/");
    expect(await urlOf({ ...env, DOCKER_CONTEXT: "default" }, ["/var/run/docker.sock"])).toBe(
      "unix:///var/run/docker.sock",
    );
  });

  it("is not guessed if the chosen context does not exist", async () => {
    await expect(find({ DOCKER_CONTEXT: "gone" }, ["/var/run/docker.sock"])).rejects.toMatchObject({
      reason: "engine_context",
      message: expect.stringContaining('"gone"'),
    });
  });

  it("is the first socket that exists: Docker's, a rootless one, Podman's", async () => {
    const sockets = ["/run/podman/podman.sock", "/run/user/1000/podman/podman.sock", "/run/user/1000/docker.sock"];
    expect(await urlOf({}, sockets)).toBe("unix:///run/user/1000/docker.sock");
    expect(await urlOf({}, sockets.slice(0, 2))).toBe("unix:///run/user/1000/podman/podman.sock");
    expect(await urlOf({}, sockets.slice(0, 1))).toBe("unix:///run/podman/podman.sock");
    expect(await urlOf({ XDG_RUNTIME_DIR: "/x" }, ["/x/docker.sock"])).toBe("unix:///x/docker.sock");
  });

  it("is reported missing with a hint what to install", async () => {
    await expect(find({})).rejects.toMatchObject({
      reason: "engine_missing",
      message: expect.stringContaining("/var/run/docker.sock"),
      hint: expect.stringContaining("docker.io"),
    });
  });

  it("requires the certificates that the environment demands", async () => {
    const env = { DOCKER_HOST: "tcp://engine:2376", DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: join(home, "none") };
    await expect(find(env)).rejects.toMatchObject({
      reason: "engine_certificates",
      message: expect.stringContaining("ca.pem"),
    });
  });
});

const { tls } = await shared(startDockerd({ tls: true }));
if (tls === undefined) throw new Error("dockerd has no TLS");

describe("an engine with TLS", () => {
  it("is reached with the certificates of DOCKER_CERT_PATH", async () => {
    const env = { DOCKER_HOST: tls.url, DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: tls.certificates };
    using engine = await Engine.connect(await find(env));
    expect(engine.info.os).toBe("linux");
  });

  it("is reached with the certificates of a context", async () => {
    const directory = join(home, "tls");
    const id = await writeContext(directory, "secure", { Host: tls.url, SkipTLSVerify: false });
    const certificates = join(directory, "contexts/tls", id, "docker");
    await mkdir(join(certificates, ".."), { recursive: true });
    await cp(tls.certificates, certificates, { recursive: true });
    using engine = await Engine.connect(await find({ DOCKER_CONFIG: directory, DOCKER_CONTEXT: "secure" }));
    expect(engine.info.os).toBe("linux");
  });

  it("is rejected if its certificate is not trusted", async () => {
    const endpoint = await find({ DOCKER_HOST: tls.url.replace("tcp:", "https:") });
    await expect(Engine.connect(endpoint)).rejects.toMatchObject({
      code: "unavailable",
      reason: "engine_unreachable",
      message: expect.stringContaining("certificate"),
      hint: expect.stringContaining("certificates"),
    });
  });

  it("reports that it requires a client certificate", async () => {
    const { ca } =
      (await find({ DOCKER_HOST: tls.url, DOCKER_TLS: "1", DOCKER_CERT_PATH: tls.certificates })).tls ?? {};
    const url = new URL(tls.url.replace("tcp:", "https:"));
    const anonymous = { url, origin: "a test", tls: { ca, cert: undefined, key: undefined, isVerified: true } };
    await expect(Engine.connect(anonymous)).rejects.toMatchObject({ reason: "engine_unreachable" });
    const plain = { url: new URL(tls.url.replace("tcp:", "http:")), origin: "a test", tls: undefined };
    await expect(Engine.connect(plain)).rejects.toMatchObject({ message: expect.stringContaining("HTTPS") });
  });
});
