import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { testRoot } from "../../packages/providers/src/guest/testing/test-root.ts";
import { startSdkNode } from "../sdk/sdk-node.ts";
import { QemuHome } from "./qemu-home.ts";
import { SecretApi } from "./secret-api.ts";

const HOST = "api.secrets.test";

it("secrets reach their host from a virtual machine, also after it was paused and resumed", async () => {
  await using home = await QemuHome.make();
  mkdirSync(join(home.path, "images"), { recursive: true });
  symlinkSync(await testRoot("python"), join(home.path, "images", "python"));
  await using api = await SecretApi.start(home.path);
  await using node = await startSdkNode(home.config({ network: api.network }));
  const hosts = [`${HOST}:${api.port}`];
  const inject = { header: "Authorization", format: "Bearer {}" };
  await node.client.secrets.create({ name: "bearer", value: "sk-real-0123456789", hosts, inject });
  const rules = [{ allow: HOST, ports: [api.port] }];
  const shape = { image: "python", memoryMib: 256, diskMib: 128, vcpuCount: 1 };
  const sandbox = await node.client.sandboxes.create({ ...shape, network: { rules }, secrets: ["bearer"] });
  const call = (path: string) =>
    sandbox.exec(
      `python3 -c 'import urllib.request as u; print(u.urlopen("https://${HOST}:${api.port}${path}").read())'`,
      { timeoutMs: 120_000 },
    );
  expect(await call("/fresh")).toMatchObject({ exitCode: 0 });
  await sandbox.pause();
  expect(await call("/resumed")).toMatchObject({ exitCode: 0 });
  expect(api.seen.map(({ url, authorization }) => `${url} ${authorization}`)).toEqual([
    "/fresh Bearer sk-real-0123456789",
    "/resumed Bearer sk-real-0123456789",
  ]);
  await sandbox.destroy();
}, 300_000);
