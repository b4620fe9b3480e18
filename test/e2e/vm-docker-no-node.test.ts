import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { connectTo } from "../../packages/providers/src/docker/testing/connect.ts";
import { startDockerd } from "../../packages/providers/src/docker/testing/dockerd.ts";
import { startRegistry } from "../../packages/providers/src/docker/testing/registry.ts";
import { pushTestImage } from "../../packages/providers/src/docker/testing/test-image.ts";
import { QemuProvider } from "../../packages/providers/src/qemu/provider.ts";
import { runCli } from "./run-cli.ts";

/** A machine boots with its engine; without KVM, QEMU emulates all of that. */
const TIMEOUT_MS = 360_000;
const PROMISE = "sandpiper run --provider vm-docker works without a node and a project, and leaves no machine";

// A short path, because machines have sockets deep inside.
const home = mkdtempSync(join(tmpdir(), "sp-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

if (process.env["SANDPIPER_TEST_MACHINES"] === "all") it(PROMISE, runInMachine, TIMEOUT_MS);
else it.skip(`${PROMISE} (skipped: it takes minutes; SANDPIPER_TEST_MACHINES=all runs it)`);

async function runInMachine(): Promise<void> {
  await using registry = await startRegistry();
  const image = `${registry.address}/team/app:1`;
  {
    await using dockerd = await startDockerd();
    using engine = await connectTo(dockerd);
    await pushTestImage(engine, image);
  }
  const argv = ["run", "--provider", "vm-docker", "--image", image, "--memory", "128M"];
  const script = "read line; echo in a container: $line; exit 3";
  const { stdout, exitCode } = await runCli([...argv, "--", "sh", "-c", script], {
    env: { SANDPIPER_HOME: home, SANDPIPER_PORT: "1" },
    stdin: "hello\n",
  });
  expect([stdout, exitCode]).toEqual(["in a container: hello\n", 3]);
  expect(await new QemuProvider({ stateDirectory: join(home, "vm") }).list()).toEqual([]);
}
