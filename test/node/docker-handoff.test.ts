import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, type Sandbox } from "@sandpiper/sdk";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { freePort } from "../../packages/node/src/store/testing/free-port.ts";
import { DockerHome } from "./docker-home.ts";
import { NodeProcess } from "./node-process.ts";

const LOST = { code: "gone", reason: "process_lost" };
const SHOW = "cat file /.data/file";
const write = (text: string) => `echo ${text} | tee file > /.data/file`;

let docker: DockerHome;
/** Has never seen the image. */
let other: DockerHome;
let store: string;
beforeAll(async () => {
  [docker, other] = await Promise.all([DockerHome.start(), DockerHome.start({ hasImage: false })]);
}, 300_000);
afterAll(() => Promise.all([docker?.[Symbol.asyncDispose](), other?.[Symbol.asyncDispose]()]));
beforeEach(() => {
  store = mkdtempSync(join(tmpdir(), "sandpiper-docker-store-"));
});
afterEach(() => rmSync(store, { recursive: true, force: true }));

/** Two nodes of a cluster, and clients of each that know the same key. */
async function startCluster(homes: readonly DockerHome[]) {
  const clusterSecret = "a secret of a test, long enough";
  const settings = { store: `file://${store}`, clusterSecret, leaseMs: 4000, maxSkewMs: 0, drainMs: 60_000 };
  const nodes: NodeProcess[] = [];
  for (const home of homes) nodes.push(await NodeProcess.start(home.config({ ...settings, port: await freePort() })));
  const [first, second] = nodes as [NodeProcess, NodeProcess];
  const { apiKey } = first.started;
  const there = new Client({ url: second.started.url, apiKey });
  const bring = async ({ id }: Pick<Sandbox, "id">) => {
    const url = `${second.started.url}/v1/sandboxes/${id}/handoff`;
    const response = await fetch(url, { method: "POST", headers: { authorization: `Bearer ${apiKey}` } });
    expect(response.status, await response.clone().text()).toBe(200);
  };
  return {
    first,
    second,
    here: first.client,
    there,
    bring,
    async [Symbol.asyncDispose]() {
      there.close();
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  let text = "";
  for await (const chunk of chunks) text += Buffer.from(chunk).toString();
  return text;
}

describe("a sandbox on Docker", () => {
  it("moves to a node with another engine with its files, and whoever reads from its processes is told", async () => {
    await using cluster = await startCluster([docker, other]);
    const sandbox = await cluster.here.sandboxes.create();
    await sandbox.exec(write("moved"));
    const process = await sandbox.start("while true; do echo x; sleep 0.1; done");
    const outcomes = Promise.allSettled([textOf(process.stdout), process.wait()]);
    await cluster.bring(sandbox);
    expect(await outcomes).toMatchObject([{ reason: LOST }, { reason: LOST }]);
    const moved = await cluster.there.sandboxes.connect(sandbox.id);
    expect((await moved.exec(SHOW)).stdout).toBe("moved\nmoved\n");
    expect((await sandbox.exec(SHOW)).stdout).toBe("moved\nmoved\n");
    await expect.poll(() => docker.left()).toEqual([]);
    await moved.destroy();
    expect(await other.left()).toEqual([]);
  });

  it("moves between two nodes that share an engine", async () => {
    await using cluster = await startCluster([docker, docker]);
    const sandbox = await cluster.here.sandboxes.create();
    await sandbox.exec(write("moved"));
    await cluster.bring(sandbox);
    const moved = await cluster.there.sandboxes.connect(sandbox.id);
    expect((await moved.exec(SHOW)).stdout).toBe("moved\nmoved\n");
    await moved.destroy();
    await expect.poll(() => docker.left()).toEqual([]);
  });

  it("is left to the others by a node that stops", async () => {
    await using cluster = await startCluster([docker, other]);
    const sandbox = await cluster.here.sandboxes.create();
    await sandbox.exec(write("drained"));
    await cluster.first.stop();
    expect(await docker.left()).toEqual([]);
    const moved = await cluster.there.sandboxes.connect(sandbox.id);
    expect((await moved.exec(SHOW)).stdout).toBe("drained\ndrained\n");
    expect(moved.info.rolledBackTo).toBeNull();
    await moved.destroy();
    expect(await other.left()).toEqual([]);
  });

  it("whose node and engine are gone goes on from its newest checkpoint elsewhere, and says so", async () => {
    await using doomed = await DockerHome.start();
    await using cluster = await startCluster([doomed, other]);
    const sandbox = await cluster.here.sandboxes.create();
    await sandbox.exec(write("saved"));
    await sandbox.checkpoint();
    await sandbox.exec(write("later"));
    await cluster.first.kill();
    await doomed.kill();
    await expect
      .poll(async () => (await (await cluster.there.sandboxes.connect(sandbox.id)).exec(SHOW)).stdout, {
        timeout: 60_000,
        interval: 500,
      })
      .toBe("saved\nsaved\n");
    const found = await cluster.there.sandboxes.connect(sandbox.id);
    expect(found.info.rolledBackTo).not.toBeNull();
    await found.destroy();
    expect(await other.left()).toEqual([]);
  });
});
