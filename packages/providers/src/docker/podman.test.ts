import { Sandbox } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import { afterAll, describe, expect, it } from "vitest";
import { containerName } from "./container/inspect-container.ts";
import { describeContainers } from "./testing/describe-containers.ts";
import { describeContract } from "./testing/describe-contract.ts";
import { describeService } from "./testing/describe-service.ts";
import { createEngineFixture, type EngineFixture } from "./testing/fixture.ts";
import { freePort } from "./testing/free-port.ts";
import { startPodman } from "./testing/podman.ts";
import { importTestImage } from "./testing/test-image.ts";

const podman = await startPodman();
const fixture = await createEngineFixture(podman);
const refusal = await refusalOf(fixture);
if (refusal === undefined) {
  afterAll(() => fixture[Symbol.asyncDispose]());
  describePodman();
} else {
  await fixture[Symbol.asyncDispose]();
  it.skip(`the docker provider on Podman (skipped: it runs no container here: ${refusal})`);
}

function describePodman(): void {
  describeContract("docker on Podman", fixture);
  describeContainers("a Podman container", fixture);
  describeService("the service of a Podman container", fixture);

  describe("the agent of a Podman container", () => {
    it("is adopted by one program after another, even in the middle of large output", async () => {
      const first = fixture.startProgram({
        command: "head -c 50000000 /dev/zero; sleep 60",
        readBytes: 1_000_000,
      });
      const { id } = await first.ready();
      await first.kill();
      const second = fixture.startProgram({ adopt: id, command: "sleep 61" });
      await second.ready();
      await second.kill();
      await using sandbox = await Sandbox.adopt(fixture.provider, id);
      expect((await sandbox.exec("echo in order")).stdout).toBe("in order\n");
      expect(await sandbox.processes()).toHaveLength(2);
    });

    it("is reached again after its relay or Podman was killed", async () => {
      await using sandbox = await fixture.create();
      const kill = "cd /proc; for p in [0-9]*; do grep -q rela[y] $p/cmdline && kill -9 $p; done";
      await rejection(sandbox.exec(kill, { user: "root" }));
      expect((await sandbox.exec("echo again")).stdout).toBe("again\n");
      await podman.crash();
      const call = sandbox.exec("echo and again");
      // The command waits for Podman, or fails because it started before the channel was lost.
      const answer = await call.catch(() => sandbox.exec("echo and again"));
      expect(answer.stdout).toBe("and again\n");
    });

    it("refuses other users inside, and keeps its socket name", async () => {
      await using sandbox = await fixture.create({ container: { isRootReadOnly: true } });
      const relay = "/.sandpiper/agent --relay --channel unix:@sandpiper";
      const ping = `echo '{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}' | (cat; sleep 1) | ${relay}`;
      expect((await sandbox.exec(ping, { user: "root" })).stdout).toContain("pong");
      expect((await sandbox.exec(ping, { user: "user" })).stdout).toBe("");
      const steal = await sandbox.exec("/.sandpiper/agent --channel unix:@sandpiper --exit-on-eof", { user: "root" });
      expect(steal).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("in use") });
    });
  });

  describe("a Podman container", () => {
    it("publishes a port", async () => {
      const image = await importTestImage(fixture.engine, { name: "sandpiper-test:python", variant: "python" });
      await using sandbox = await fixture.create({ container: { image, network: "bridge", ports: [8000] } });
      await sandbox.start("echo served > file; exec python3 -m http.server 8000");
      const { addresses } = await fixture.provider.containers.get(sandbox.id);
      const ask = `console.log(await (await fetch("http://${addresses["8000"]}/file")).text())`;
      const answer = () => podman.run([process.execPath, "--input-type=module", "--eval", ask]).catch(() => "");
      await expect.poll(answer).toBe("served\n\n");
    });

    it("publishes ports at fixed host ports, also of UDP, and reports a taken one", async () => {
      const host = await freePort();
      const provider = fixture.newProvider({ hostPorts: ["1-65535"] });
      const ports = [
        { container: 53, host, protocol: "udp" as const },
        { container: 80, host },
      ];
      const container = { network: "bridge", ports, labels: { team: "a" } };
      await using sandbox = await Sandbox.create(provider, { container });
      const { addresses } = await provider.containers.get(sandbox.id);
      expect(addresses).toEqual({ "53/udp": `127.0.0.1:${host}`, "80": `127.0.0.1:${host}` });
      const { Config } = await fixture.engine.docker.getContainer(containerName(sandbox.id)).inspect();
      expect(Config.Labels).toMatchObject({ team: "a", "sandpiper.sandbox": sandbox.id });
      const error = await rejection(
        Sandbox.create(provider, { container: { ...container, ports: [{ container: 80, host }] } }),
      );
      expect(error).toMatchObject({ reason: "host_port_in_use", details: { port: host } });
    });

    it("is not created with a runtime that Podman would not use", async () => {
      const error = await rejection(Sandbox.create(fixture.newProvider({ runtime: "runsc" })));
      expect(error).toMatchObject({ code: "failed_precondition", reason: "runtime_not_chosen" });
    });
  });
}

/** Why Podman cannot run even a plain container here. */
async function refusalOf({ engine, image }: EngineFixture): Promise<string | undefined> {
  try {
    const HostConfig = { NetworkMode: "none" };
    const container = await engine.docker.createContainer({ Image: image, Cmd: ["true"], HostConfig });
    await container.start();
    await container.wait();
    await container.remove({ force: true });
    return undefined;
  } catch (error) {
    return String(error).replace(/\s+/g, " ");
  }
}
