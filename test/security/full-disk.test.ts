import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SandboxError } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import { expect, it } from "vitest";
import { SmallDisk } from "../chaos/small-disk.ts";
import { startSdkNode } from "../sdk/sdk-node.ts";

const STACK_TRACE = /\n\s+at |\.ts:\d+/;

it("a node without a reserve names the full disk, keeps its sandboxes, recovers, and stops on a full disk", async () => {
  await using disk = await SmallDisk.mount(join(tmpdir(), `sandpiper-no-reserve-${process.pid}`), 64);
  const config = { home: disk.path, defaultProvider: "gvisor", reserve: { diskMib: 0 } } as const;
  await using node = await startSdkNode(config);
  const create = () => node.client.sandboxes.create({ diskMib: 16 });
  const sandbox = await create();
  await disk.fill();
  for (const attempt of [create, () => sandbox.fork(), () => sandbox.checkpoint()]) {
    const error: SandboxError = await rejection(attempt());
    expect(error).toMatchObject({ code: "resource_exhausted", reason: "disk_full" });
    expect(`${error.message} ${error.hint}`).toMatch(/disk.*free space/s);
    expect(JSON.stringify(error)).not.toMatch(STACK_TRACE);
  }
  const session = new WebSocket(`${node.url.replace("http", "ws")}/create`, ["sandpiper.v1", `bearer.${node.apiKey}`]);
  const received: string[] = [];
  session.addEventListener("message", ({ data }) => received.push(data));
  await once(session, "close");
  expect(JSON.parse(received.at(-1) ?? "")).toMatchObject({ status: "SANDBOX_CREATION_ERROR", reason: "disk_full" });
  expect((await sandbox.exec("true")).exitCode).toBe(0);
  await disk.free();
  await (await create()).destroy();
  await sandbox.destroy();
  await disk.fill();
});
