import { Sandbox } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import { afterAll, describe, expect, it } from "vitest";
import { describeContract } from "./testing/describe-contract.ts";
import { createEngineFixture, type EngineFixture } from "./testing/fixture.ts";
import { startPodman } from "./testing/podman.ts";
import { importTestImage } from "./testing/test-image.ts";
import { crashContainer, tracesOfAll } from "./testing/traces.ts";
import { Watch } from "./testing/watch.ts";

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
  describeContract("docker on Podman", () => fixture);

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
    it("is watched from creation to removal, with its exit code", async () => {
      await using before = await fixture.create();
      await using watch = new Watch(fixture);
      expect(await watch.next()).toMatchObject({ id: before.id, kind: "running", isReplay: true });
      const crashed = await fixture.create();
      await crashContainer(crashed.id, fixture);
      await crashed.closed;
      await crashed.destroy();
      expect(await watch.kinds(crashed.id, "removed")).toEqual(["created", "running", "failed", "removed"]);
      expect(watch.seen.find(({ kind }) => kind === "failed")?.exit).toEqual({ exitCode: 137, isOutOfMemory: false });
    });

    it("stops gracefully, starts again, and is adopted with its files", async () => {
      await using sandbox = await fixture.create();
      await sandbox.start("trap 'echo asked > asked; exit' TERM; echo > /tmp/ready; sleep 600 & wait");
      await expect.poll(() => sandbox.exec("ls /tmp/ready")).toMatchObject({ exitCode: 0 });
      await fixture.provider.containers.stop(sandbox.id, { timeoutMs: 600_000 });
      expect(await sandbox.closed).toMatchObject({ message: "its container was stopped" });
      const { state, exit } = await fixture.provider.containers.get(sandbox.id);
      expect({ state, exit }).toMatchObject({ state: "stopped", exit: { exitCode: 0 } });
      await fixture.provider.containers.start(sandbox.id);
      await using again = await Sandbox.adopt(fixture.provider, sandbox.id);
      expect(await again.readTextFile("asked")).toBe("asked\n");
    });

    it("is outdated once its image reference resolves to another image", async () => {
      const image = await importTestImage(fixture.engine, { name: "sandpiper-test:moving", label: "first" });
      await using sandbox = await fixture.create({ container: { image } });
      expect(await fixture.provider.containers.isOutdated(sandbox.id)).toBe(false);
      await importTestImage(fixture.engine, { name: "sandpiper-test:moving", label: "second" });
      expect(await fixture.provider.containers.isOutdated(sandbox.id)).toBe(true);
    });

    it("leaves nothing when its program dies during a checkpoint", async () => {
      const before = await tracesOfAll(fixture.engine);
      const program = fixture.startProgram({ config: {} });
      const { id } = await program.ready();
      const container = fixture.engine.docker.getContainer(`sandpiper-${id}`);
      await container.pause();
      await container.commit({ pause: false, changes: "LABEL sandpiper.checkpoint=true" });
      await program.kill();
      await using adopted = await Sandbox.adopt(fixture.newProvider(), id);
      expect((await adopted.exec("echo awake")).stdout).toBe("awake\n");
      await adopted.destroy();
      expect(await tracesOfAll(fixture.engine)).toEqual(before);
    });

    it("publishes a port", async () => {
      const image = await importTestImage(fixture.engine, { name: "sandpiper-test:python", variant: "python" });
      await using sandbox = await fixture.create({ container: { image, network: "bridge", ports: [8000] } });
      await sandbox.start("echo served > file; exec python3 -m http.server 8000");
      const { addresses } = await fixture.provider.containers.get(sandbox.id);
      const ask = `console.log(await (await fetch("http://${addresses["8000"]}/file")).text())`;
      const answer = () => podman.run([process.execPath, "--input-type=module", "--eval", ask]).catch(() => "");
      await expect.poll(answer).toBe("served\n\n");
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
