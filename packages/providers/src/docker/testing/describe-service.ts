import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import { describe, expect, it } from "vitest";
import type { EngineFixture } from "./fixture.ts";
import { importTestImage } from "./test-image.ts";

/** Counts its starts, and fails for the first two. */
const FLAKY = 'echo run >> /.data/runs; echo "run $(wc -l < /.data/runs)"; [ $(wc -l < /.data/runs) -ge 3 ] || exit 7';
/** Runs until SIGTERM. */
const STEADY =
  "trap 'echo stopped >> /.data/log; exit 0' TERM; echo started >> /.data/log; while :; do sleep 0.05; done";

/** The image's own command as a service, alike on Docker and Podman. */
export function describeService(title: string, fixture: EngineFixture): void {
  const { engine, provider } = fixture;
  const imageOf = (name: string, script: string) =>
    importTestImage(engine, { name: `sandpiper-test:${name}`, entrypoint: ["/bin/sh", "-c"], command: [script] });
  const log = async (sandbox: Sandbox) => (await sandbox.exec("cat /.data/log")).stdout;

  describe(title, () => {
    it("runs next to the agent, restarts after failures, and is one process with all output", async () => {
      const image = await imageOf("flaky", `${FLAKY}; echo "$GREETING from $PWD"; id -u; exec sleep 600`);
      const env = { GREETING: "hello" };
      await using sandbox = await fixture.create({ container: { image, service: {} }, env, timeoutMs: 60_000 });
      expect(sandbox.startedService?.id).toBe("service");
      const handle = await sandbox.attach("service");
      let output = "";
      for await (const { bytes } of handle.output) {
        output += new TextDecoder().decode(bytes);
        if (output.includes("hello from /\n0\n")) break;
      }
      expect(output.match(/^run \d$/gm)).toEqual(["run 1", "run 2", "run 3"]);
      expect(output).toContain("the service ended: exit status: 7; it starts again in 100 ms");
      expect(await sandbox.process("service")).toMatchObject({ isRunning: true });
      expect((await sandbox.exec("echo beside")).stdout).toBe("beside\n");
    });

    it("stops with the container, starts again with it, and survives an adoption and a rebuild", async () => {
      const image = await imageOf("steady", STEADY);
      const container = { image, service: { restart: "always" as const } };
      await using sandbox = await fixture.create({ container });
      await expect.poll(() => log(sandbox)).toBe("started\n");
      await provider.containers.stop(sandbox.id, { timeoutMs: 600_000 });
      await sandbox.closed;
      await provider.containers.start(sandbox.id);
      const again = await Sandbox.adopt(provider, sandbox.id);
      expect(again.startedService?.id).toBe("service");
      await expect.poll(() => log(again)).toMatch(/^started\n(stopped\n)+started\n$/);
      await again.destroy({ keepsVolumes: true });
      await using rebuilt = await Sandbox.create(provider, { container }, { id: sandbox.id, keepsVolumes: true });
      await expect.poll(() => log(rebuilt)).toMatch(/started\n$/);
      expect((await log(rebuilt)).match(/started/g)).toHaveLength(3);
    });

    it("keeps running while its program is replaced, and is not started twice", async () => {
      const image = await imageOf("steady", STEADY);
      const program = fixture.startProgram({ config: { container: { image, service: {} } } });
      const { id } = await program.ready();
      await program.kill();
      await using adopted = await Sandbox.adopt(fixture.newProvider(), id);
      expect(adopted.startedService).toBeUndefined();
      expect(await adopted.process("service")).toMatchObject({ isRunning: true });
      await expect.poll(() => log(adopted)).toBe("started\n");
    });

    it("starts again in a sandbox that is restored from a checkpoint", async () => {
      const image = await imageOf("steady", STEADY);
      await using sandbox = await fixture.create({ container: { image, service: {} } });
      await expect.poll(() => log(sandbox)).toBe("started\n");
      const directory = await mkdtemp(join(tmpdir(), "sandpiper-service-"));
      try {
        await sandbox.checkpoint(directory, { keepsRunning: false });
        await sandbox.destroy();
        const { config, createdAt, id } = sandbox;
        const prepared = await Sandbox.prepare(provider, config, { id });
        await using restored = await Sandbox.restore(provider, config, { prepared, directory, createdAt });
        await expect.poll(() => log(restored)).toBe("started\nstarted\n");
      } finally {
        await rm(directory, { recursive: true });
      }
    });

    it("ends with its exit code when it is not restarted", async () => {
      const image = await imageOf("ends", "echo done; exit 7");
      await using sandbox = await fixture.create({ container: { image, service: { restart: "never" } } });
      const handle = await sandbox.attach("service");
      expect(await handle.wait()).toMatchObject({ exitCode: 7 });
      expect(await sandbox.process("service")).toMatchObject({ isRunning: false });
    });

    it("is refused for an image without a command, before anything is created", async () => {
      const image = await importTestImage(engine, { name: "sandpiper-test:empty", command: [] });
      const before = await provider.list();
      const error = await rejection(fixture.create({ container: { image, service: {} } }));
      expect(error).toMatchObject({ code: "invalid_argument", reason: "image_has_no_command", details: { image } });
      expect(await provider.list()).toEqual(before);
    });
  });
}
