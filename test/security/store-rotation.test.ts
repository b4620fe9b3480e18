import { mkdtempSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@sandpiper/core";
import { MemoryStore, rejection } from "@sandpiper/core/testing";
import { createLogger, parseNodeConfig, signStore, startNode } from "@sandpiper/node/server";
import { createSandboxId } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { afterAll, describe, expect, it } from "vitest";
import { Keyring } from "../../packages/node/src/auth/keyring.ts";
import { CheckpointStore } from "../../packages/node/src/store/checkpoint-store.ts";
import { rewriteData } from "../../packages/node/src/store/rewrite-data.ts";
import { SealedStates } from "../../packages/node/src/store/sealed-states.ts";
import { freePort } from "../../packages/node/src/store/testing/free-port.ts";

const SECRET = "a secret of this test, long enough";
const NEXT = "the next secret of this test, long";
const root = mkdtempSync(join(tmpdir(), "sandpiper-rotation-"));
afterAll(() => rm(root, { recursive: true, force: true }));

const keyringOf = (...secrets: [string, ...string[]]) => new Keyring({ secrets, salt: "cluster" });
const [before, during, after] = [keyringOf(SECRET), keyringOf(NEXT, SECRET), keyringOf(NEXT)];
const owner = { id: createSandboxId(), tenant: "mine" };

/** A store that stops answering after some writes, as for a process that is killed. */
class FailingStore extends MemoryStore {
  writesLeft = Number.POSITIVE_INFINITY;
  onGet: (key: string) => Promise<void> = async () => {};

  override async get(key: string) {
    await this.onGet(key);
    return await super.get(key);
  }

  override async put(...parameters: Parameters<MemoryStore["put"]>) {
    if (this.writesLeft <= 0) throw new Error("killed");
    this.writesLeft -= 1;
    return await super.put(...parameters);
  }
}

/** A checkpoint of many small files: each is a chunk of its own. */
async function openBed(files: number) {
  const store = new FailingStore();
  const checkpoints = (keyring: Keyring) =>
    new CheckpointStore({ store, keyring, clock: systemClock, directory: join(root, "tmp") });
  const directory = await mkdtemp(join(root, "d-"));
  for (let each = 0; each < files; each += 1) await writeFile(join(directory, `file-${each}`), `content ${each}`);
  await checkpoints(before).save(owner, "c", directory);
  await new SealedStates(store, before).put(`states/${owner.id}.state`, Buffer.from("{}"));
  const load = async (keyring: Keyring, checkpoint = "c") => {
    const target = await mkdtemp(join(root, "l-"));
    await checkpoints(keyring).load(owner, checkpoint, target);
    for (const name of await readdir(target)) {
      expect(await readFile(join(target, name), "utf8")).toBe(await readFile(join(directory, name), "utf8"));
    }
    return (await readdir(target)).length;
  };
  const rotate = () => rewriteData({ store, keyring: during, acceptUnprotected: false });
  const chunks = () => Array.fromAsync(store.list("chunks/"), ({ key }) => key);
  return { store, checkpoints, load, rotate, chunks };
}

describe("an encryption of the store's data with the next secret", () => {
  it("continues after a kill at any write, and every checkpoint can be loaded at any time", async () => {
    const files = 300;
    const { store, load, rotate, chunks } = await openBed(files);
    for (let kills = 0; ; kills += 1) {
      store.writesLeft = 61;
      const error = await rotate().then(
        () => undefined,
        (thrown) => thrown,
      );
      store.writesLeft = Number.POSITIVE_INFINITY;
      expect(await load(during)).toBe(files);
      if (error === undefined) break;
      expect(kills, "each run makes progress").toBeLessThan(20);
      store.writesLeft = 200;
      await rotate().catch(() => {});
    }
    expect(await load(after)).toBe(files);
    expect((await chunks()).length, "no chunk was written under a third name").toBeLessThanOrEqual(2 * files);
  });

  it("reports damaged objects at the end, and encrypts all others", async () => {
    const { store, checkpoints, load, rotate } = await openBed(1);
    await checkpoints(before).copy(owner, "c", "a-damaged");
    await store.put(`checkpoints/${owner.id}/a-damaged.json`, Buffer.from("{}"));
    expect(await rejection(rotate())).toMatchObject({
      reason: "object_damaged",
      details: { key: `checkpoints/${owner.id}/a-damaged.json` },
    });
    expect(await load(after)).toBe(1);
  });

  it("disturbs neither a load nor a copy of the same checkpoint, even if the earlier chunks are collected", async () => {
    const { store, checkpoints, load, rotate, chunks } = await openBed(3);
    const old = await chunks();
    const rotateAt = (pattern: RegExp) => {
      store.onGet = async (key) => {
        if (!pattern.test(key)) return;
        store.onGet = async () => {};
        await rotate();
        for (const each of old) await store.delete(each);
      };
    };
    rotateAt(/^chunks\//);
    expect(await load(during)).toBe(3);
    const again = await openBed(3);
    const put = again.store.put.bind(again.store);
    again.store.put = async (...parameters) => {
      again.store.put = put;
      await again.rotate();
      return await put(...parameters);
    };
    await again.checkpoints(during).copy(owner, "c", "copy");
    expect(await again.load(after, "copy")).toBe(3);
    await checkpoints(during).copy(owner, "c", "copy");
    expect(await load(after, "copy")).toBe(3);
  });
});

describe("a replacement of the cluster's secret while clients use the cluster", () => {
  it("fails no request: neither while nodes restart one after another nor while the data is encrypted again", async () => {
    const store = `file://${join(root, "store")}`;
    const ports = [await freePort(), await freePort()];
    const configOf = (name: string, port: number, secrets: object) =>
      parseNodeConfig({ home: join(root, name), port, store, leaseMs: 3000, maxSkewMs: 0, ...secrets });
    const start = (index: number, secrets: object) =>
      startNode(configOf(`node-${index}`, ports[index] ?? 0, secrets), {
        logger: createLogger({ logLevel: "silent", logFormat: "json" }),
        providers: [new MockProvider()],
      });
    await mkdir(join(root, "store"), { recursive: true });
    const nodes = [await start(0, { clusterSecret: SECRET }), await start(1, { clusterSecret: SECRET })] as const;
    const running = [...nodes];
    const apiKey = readFileSync(nodes[0].apiKeyFile, "utf8").trim();
    const up = [true, true];
    const loops = new LoopingClients({ apiKey, urls: running.map(({ url }) => url), up });
    try {
      await loops.start();
      const restart = async (secrets: object) => {
        for (const index of [0, 1]) {
          up[index] = false;
          await running[index]?.stop();
          running[index] = await start(index, secrets);
          up[index] = true;
          await loops.progress();
        }
      };
      await restart({ clusterSecret: SECRET, acceptedClusterSecrets: [NEXT] });
      const next = { clusterSecret: NEXT, acceptedClusterSecrets: [SECRET] };
      const rotate = () => signStore(configOf("operator", 1, next), { acceptsUnsigned: false, rewritesData: true });
      expect(await rejection(rotate())).toMatchObject({ reason: "node_uses_earlier_secret" });
      await restart(next);
      for (let round = 0; round < 3; round += 1) {
        await rotate();
        await loops.progress();
      }
      await restart({ clusterSecret: NEXT });
      await loops.stop();
    } finally {
      await loops.stop().catch(() => {});
      for (const node of running) await node.stop();
    }
  });
});

interface LoopingClientsOptions {
  readonly apiKey: string;
  readonly urls: readonly string[];
  /** The nodes that a load balancer sends requests to. */
  readonly up: readonly boolean[];
}

/** Clients that use sandboxes all the time, behind a load balancer that takes stopping nodes out first. */
class LoopingClients {
  readonly #options: LoopingClientsOptions;
  readonly #end = new AbortController();
  #loops: Promise<void>[] = [];
  #rounds = 0;
  #turn = 0;
  #failure: unknown;

  constructor(options: LoopingClientsOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { id } = await this.#request("POST", "/v1/sandboxes", { provider: "mock" });
    this.#loops = [this.#loop(() => this.#use(id)), this.#loop(() => this.#create())];
    await this.progress();
  }

  /** Resolves after each loop has run a few more times. */
  async progress(): Promise<void> {
    const target = this.#rounds + 6;
    await expect.poll(() => this.#failure ?? this.#rounds >= target, { timeout: 20_000 }).toBe(true);
  }

  async stop(): Promise<void> {
    this.#end.abort();
    await Promise.all(this.#loops);
    if (this.#failure !== undefined) throw this.#failure;
  }

  async #loop(work: () => Promise<void>): Promise<void> {
    while (!this.#end.signal.aborted && this.#failure === undefined) {
      try {
        await work();
        this.#rounds += 1;
      } catch (thrown) {
        this.#failure ??= thrown;
      }
    }
  }

  async #use(id: string): Promise<void> {
    expect(await this.#request("GET", `/v1/sandboxes/${id}`)).toMatchObject({ id });
    await this.#request("POST", `/v1/sandboxes/${id}/checkpoints`, { keepLast: 3 });
  }

  async #create(): Promise<void> {
    const { id } = await this.#request("POST", "/v1/sandboxes", { provider: "mock", name: "looping" });
    await this.#request("POST", `/v1/sandboxes/${id}/checkpoints`, {});
    await this.#request("DELETE", `/v1/sandboxes/${id}`);
  }

  /** Repeats a request that the node asks to repeat, such as one for a sandbox that is moving. */
  async #request(method: string, path: string, json?: object): Promise<{ readonly id: string }> {
    const { apiKey, urls, up } = this.#options;
    for (let attempts = 1; ; attempts += 1) {
      this.#turn += 1;
      const url = urls[up[this.#turn % 2] ? this.#turn % 2 : (this.#turn + 1) % 2] ?? "";
      const response = await fetch(url + path, {
        method,
        headers: { authorization: `Bearer ${apiKey}`, ...(json && { "content-type": "application/json" }) },
        body: json === undefined ? null : JSON.stringify(json),
      });
      const body = (response.status === 204 ? {} : await response.json()) as { readonly id: string };
      if (response.ok) return body;
      if (response.status !== 503 || attempts === 20) throw new Error(`${method} ${path}: ${JSON.stringify(body)}`);
    }
  }
}
