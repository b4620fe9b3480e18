import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "@sandpiper/core";
import { createSandboxId } from "@sandpiper/protocol";
import { afterAll, beforeAll, expect, it } from "vitest";
import { cacheDirectory } from "../guest/cache-directory.ts";
import { findTunedKernel } from "../guest/kernel.ts";
import { findTuned } from "../guest/tuned-part.ts";
import { findQemuHost, findQemuPlace, type QemuHost } from "./host.ts";
import { QemuProvider } from "./provider.ts";
import { describeQemu } from "./testing/describe-qemu.ts";
import { createQemuFixture, type QemuFixture } from "./testing/fixture.ts";

const qemu = await findTuned("tuned-qemu", "qemu-system-x86_64", cacheDirectory());
const kernel = await findTunedKernel();

/** Integers, fractions, texts and hashes. */
const COMPUTATION = `
i=0; sum=0; while [ $i -lt 2000 ]; do sum=$(( (sum * 31 + i) % 99991 )); i=$((i + 1)); done; echo $sum
seq 1 5000 | sort -rn | awk '{ sum += $1 * NR } END { print sum }'
awk 'BEGIN { for (i = 1; i < 3000; i++) wave += sin(i) * log(i) / sqrt(i); printf "%.12f ", wave }'
seq 1 3000 | sed 's/7/seven/g' | tr 0-9 a-j | sha256sum`;

if (qemu === undefined || kernel === undefined) {
  it.skip(
    "machines of a QEMU and a kernel that were built for this machine (skipped: `npm run setup tuned-qemu tuned-kernel` has not been run)",
  );
} else {
  // With one processor, which is what has the kernel.
  await describeQemu("qemu tuned", { vcpuCount: 1 });

  let fixture: QemuFixture;
  let host: QemuHost;
  let packaged: QemuProvider;
  beforeAll(async () => {
    fixture = await createQemuFixture();
    host = await findQemuHost(findQemuPlace(fixture));
    packaged = new QemuProvider({ stateDirectory: fixture.stateDirectory, takesTuned: false });
  });
  afterAll(() => fixture[Symbol.asyncDispose]());

  it("a machine with one processor has the kernel where guests are translated; others have Debian's", async () => {
    expect(host.qemu).toMatchObject({ program: qemu, isTuned: true });
    await using one = await fixture.create({ vcpuCount: 1 });
    expect((await one.exec("uname -r")).stdout.includes("sandpiper")).toBe(host.accelerator === "tcg");
    await using two = await fixture.create({ vcpuCount: 2 });
    expect((await two.exec("uname -r; nproc")).stdout).toMatch(/cloud-amd64\n2\n$/);
    await using other = await Sandbox.create(packaged, { ...fixture.config, vcpuCount: 1 });
    expect((await other.exec("uname -r")).stdout).toMatch(/cloud-amd64\n$/);
  });

  it.each([1, 2])(
    "with %i processors it computes what the host does, also once code is improved",
    async (vcpuCount) => {
      const expected = execFileSync("sh", ["-c", COMPUTATION], { encoding: "utf8" });
      await using sandbox = await fixture.create({ vcpuCount });
      for (let turn = 0; turn < 3; turn++) {
        expect(await sandbox.exec(COMPUTATION)).toMatchObject({ stdout: expected, stderr: "" });
      }
    },
  );

  it.each([
    ["the one that was built", "the packaged one", () => fixture.provider, () => packaged],
    ["the packaged one", "the one that was built", () => packaged, () => fixture.provider],
  ])("what %s saved goes on with %s", async (_from, _to, from, to) => {
    const directory = await mkdtemp(join(tmpdir(), "sandpiper-tuned-"));
    try {
      await using first = await Sandbox.create(from(), { ...fixture.config, vcpuCount: 1 });
      await first.exec("echo kept > kept");
      await first.checkpoint(directory, { keepsRunning: false });
      const { config, createdAt } = first;
      const prepared = await Sandbox.prepare(to(), config, { id: createSandboxId() });
      await using second = await Sandbox.restore(to(), config, { prepared, directory, createdAt });
      expect(await second.readTextFile("kept")).toBe("kept\n");
    } finally {
      await rm(directory, { recursive: true });
    }
  });
}
