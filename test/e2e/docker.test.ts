import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { connectTo } from "../../packages/providers/src/docker/testing/connect.ts";
import { startDockerd } from "../../packages/providers/src/docker/testing/dockerd.ts";
import { freePort } from "../../packages/providers/src/docker/testing/free-port.ts";
import { startRegistry } from "../../packages/providers/src/docker/testing/registry.ts";
import { importTestImage, pushTestImage } from "../../packages/providers/src/docker/testing/test-image.ts";
import { shared, sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { containersAndVolumes, IMAGE } from "../node/docker-home.ts";
import { useNode } from "./node-process.ts";
import { type CliOptions, type CliResult, runCli } from "./run-cli.ts";

const scratch = sharedDirectory("e2e");
const dockerd = await shared(startDockerd({ bridge: true }));
const engine = await shared(connectTo(dockerd));
await importTestImage(engine, { name: IMAGE });
const registry = await shared(startRegistry());
const node = await useNode(
  "--providers",
  "docker",
  "--docker-url",
  dockerd.url,
  "--docker-image",
  IMAGE,
  "--docker-networks",
  "bridge",
);

/** Without a node, and with the engine where Docker's own client would find it. */
function cli(argv: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  const env = { SANDPIPER_HOME: join(scratch, "embedded"), DOCKER_HOST: dockerd.url, ...options.env };
  return runCli(argv, { ...options, env });
}

const left = () => containersAndVolumes(engine, /^sandpiper-(agent|cache)-/);

const docker = ["--provider", "docker", "--image", IMAGE] as const;

describe("sandpiper run --provider docker", { timeout: 60_000 }, () => {
  it("forwards input, output and exit code, and leaves nothing behind", async () => {
    const { stdout, stderr, exitCode } = await cli(["run", ...docker, "--", "sh", "-c", "tr a-z A-Z; exit 3"], {
      stdin: "hello\n",
    });
    expect([stdout, stderr, exitCode]).toEqual(["HELLO\n", "", 3]);
    expect(await left()).toEqual([]);
  });

  it("mounts directories, read-only unless :rw, and a workspace", async () => {
    for (const name of ["ro", "rw", "work"]) {
      mkdirSync(join(scratch, name), { mode: 0o777 });
      writeFileSync(join(scratch, name, "file"), `${name}\n`);
    }
    const mounts = ["--mount", "ro:/mnt/ro", "--mount", "rw:/mnt/rw:rw", "--workspace", "work"];
    const script =
      "cat /mnt/*/file /workspace/file; touch /mnt/ro/new 2>/dev/null || echo refused; touch /mnt/rw/new && echo written";
    const argv = ["run", ...docker, ...mounts, "--user", "root", "--", "sh", "-c", script];
    const { stdout, stderr, exitCode } = await cli(argv, { cwd: scratch });
    expect([stdout, stderr, exitCode]).toEqual(["ro\nrw\nwork\nrefused\nwritten\n", "", 0]);
  });

  it("prints the address of a published port, except with --quiet", async () => {
    const argv = ["run", ...docker, "--network", "bridge", "--publish", "3000"];
    expect(await cli([...argv, "--", "true"])).toMatchObject({
      stderr: expect.stringMatching(/^sandpiper: port 3000 is published at 127\.0\.0\.1:\d+\n$/),
      exitCode: 0,
    });
    expect(await cli([...argv, "--quiet", "--", "true"])).toMatchObject({ stderr: "", exitCode: 0 });
  });

  it("publishes at the host port of the command line, and names one that is taken", async () => {
    const port = await freePort();
    const argv = ["run", ...docker, "--network", "bridge", "--publish", `${port}:3000`, "--", "true"];
    expect(await cli(argv)).toMatchObject({
      stderr: `sandpiper: port 3000 is published at 127.0.0.1:${port}\n`,
      exitCode: 0,
    });
    const server = createServer().listen(port, "127.0.0.1");
    await once(server, "listening");
    try {
      const refused = await cli(argv);
      expect(refused).toMatchObject({ exitCode: 125, stderr: expect.stringContaining(`tcp port ${port}`) });
    } finally {
      server.close();
    }
    expect(await left()).toEqual([]);
  });

  it("prints the progress of a pull, and nothing when the image is present", async () => {
    const image = `${registry.address}/team/app:1`;
    await pushTestImage(engine, image, { variant: "tiny" });
    const argv = ["run", "--provider", "docker", "--image", image];
    const { stdout, stderr, exitCode } = await cli([...argv, "--", "echo", "ran"]);
    expect([stdout, exitCode]).toEqual(["ran\n", 0]);
    expect(stderr).toMatch(new RegExp(`^sandpiper: pulling ${image}\n(sandpiper: [0-9a-f]{12}  \\w+.*\n)+$`));
    expect(stderr).toMatch(/complete {2}[\d.]+ MiB\n$/);
    expect(await cli([...argv, "--", "true"])).toMatchObject({ stderr: "", exitCode: 0 });
  });

  it("names a missing image in the error, also in JSON", async () => {
    const argv = ["run", "--provider", "docker", "--image", "nowhere:1", "--pull", "never"];
    const plain = await cli([...argv, "--", "true"]);
    expect(plain).toMatchObject({ stdout: "", exitCode: 125, stderr: expect.stringContaining("nowhere:1") });
    const { stdout } = await cli([...argv, "--json", "--", "true"]);
    expect(JSON.parse(stdout)).toMatchObject({ error: { reason: "image_not_found" } });
    expect(await left()).toEqual([]);
  });

  it("names a provider with containers when gVisor is given container options", async () => {
    const { stderr, exitCode } = await cli(["run", "--image", IMAGE, "--publish", "80", "--", "true"]);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining("cannot use --publish, --image: provider gvisor")]);
  });

  it("names the socket when no engine answers", async () => {
    const env = { DOCKER_HOST: `unix://${join(scratch, "none.sock")}` };
    const { stderr, exitCode } = await cli(["run", ...docker, "--", "true"], { env });
    expect([exitCode, stderr]).toEqual([125, expect.stringContaining("none.sock")]);
  });
});

describe("sandpiper doctor", { timeout: 60_000 }, () => {
  const check = async (env: NodeJS.ProcessEnv = {}) => {
    const { stdout, exitCode } = await cli(["doctor", "--json"], { env });
    const { checks } = JSON.parse(stdout) as {
      checks: { name: string; status: string; detail: string; hint?: string }[];
    };
    return { exitCode, check: checks.find(({ name }) => name === "provider docker") };
  };

  it("names the engine that answers, and downloads nothing", async () => {
    const { exitCode, check: found } = await check();
    expect(found).toMatchObject({
      status: "ok",
      detail: expect.stringMatching(/^Docker \d+.*API 1\.\d+.*not pulled yet$/),
    });
    expect(exitCode).toBe(0);
  });

  it("warns with a hint when no engine answers, and exits with 0", async () => {
    const { exitCode, check: found } = await check({ DOCKER_HOST: `unix://${join(scratch, "none.sock")}` });
    expect(found).toMatchObject({ status: "warning", hint: expect.any(String) });
    expect(exitCode).toBe(0);
  });
});

describe("with a node that has docker", { timeout: 120_000 }, () => {
  it("create, get, ls, rebuild and caches work on containers", async () => {
    const run = async (...argv: string[]) => {
      const { stdout, stderr, exitCode } = await node.run(argv);
      expect([argv, stderr, exitCode]).toEqual([argv, "", 0]);
      return stdout.trim();
    };
    const options = ["--network", "bridge", "--publish", "3000", "--cache", "npm:/cache", "--project", "web"];
    const id = await run("create", ...docker, ...options, "--name", "web");
    const info = JSON.parse(await run("get", "web"));
    expect(info).toMatchObject({
      id,
      provider: "docker",
      addresses: { "3000": expect.stringMatching(/^127\.0\.0\.1:/) },
    });
    expect(JSON.parse(await run("ls"))).toMatchObject([{ id, addresses: info.addresses }]);
    await run("exec", "web", "--", "sh", "-c", "echo kept > /.data/file; echo lost > /tmp/file");
    expect(await run("rebuild", "web")).toBe("");
    expect(await run("exec", "web", "--", "sh", "-c", "cat /.data/file; ls /tmp")).toBe("kept");
    expect(await run("run", ...docker, "--", "echo", "through the node")).toBe("through the node");
    const image = `${registry.address}/team/app:2`;
    await pushTestImage(engine, image, { variant: "python" });
    const pulled = await node.run(["run", "--provider", "docker", "--image", image, "--", "true"]);
    expect(pulled).toMatchObject({ stderr: expect.stringContaining(`sandpiper: pulling ${image}\n`), exitCode: 0 });
    expect(JSON.parse(await run("caches", "ls"))).toMatchObject([{ project: "web", name: "npm", usedBy: [id] }]);
    expect(await node.run(["caches", "clear", "web/npm"])).toMatchObject({ exitCode: 1 });
    await run("rm", "web");
    await run("caches", "clear", "web/npm");
    expect(JSON.parse(await run("caches", "ls"))).toEqual([]);
    expect(await left()).toEqual([]);
  });

  it("runs the image's command as a service, keeps its volume, and mounts the volume again", async () => {
    const run = async (...argv: string[]) => {
      const { stdout, stderr, exitCode } = await node.run(argv);
      expect([argv, stderr, exitCode]).toEqual([argv, "", 0]);
      return stdout.trim();
    };
    const script = "echo served; echo kept > /.data/file; exec sleep 600";
    const image = await importTestImage(engine, { name: "serves:2", entrypoint: ["/bin/sh", "-c"], command: [script] });
    const serve = ["create", "--provider", "docker", "--image", image, "--service", "always"];
    const id = await run(...serve, "--container-label", "team=a", "--name", "server");
    await expect.poll(() => run("logs", "server", "service")).toBe("served");
    expect(JSON.parse(await run("ps", "server", "--json"))).toMatchObject([{ id: "service", isRunning: true }]);
    await run("rm", "--quiet", "--keep-volumes", "server");
    const name = `sandpiper-data-${id}`;
    expect(JSON.parse(await run("volumes", "ls", "--json"))).toMatchObject([{ name, sandbox: id, usedBy: [] }]);
    expect(await run("run", ...docker, "--volume", `${name}:/old`, "--", "cat", "/old/file")).toBe("kept");
    await run("volumes", "rm", name);
    expect(await run("volumes", "ls", "--json")).toBe("[]");
    const refused = await node.run(["create", ...docker, "--network", "bridge", "--publish", "8080:80"]);
    expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("docker.hostPorts") });
  });
});
