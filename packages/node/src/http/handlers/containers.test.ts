import type { Provider } from "@sandpiper/core";
import type { CacheResource, VolumeResource } from "@sandpiper/protocol";
import { MockContainers, MockProvider } from "@sandpiper/providers";
import { describe, expect, it } from "vitest";
import { errorOf, nodeOfTest } from "../testing/test-node.ts";

function containerMock() {
  const images = { "base:1": "sha256:one", "python:3.13-slim": "sha256:default" };
  return new MockProvider({ containers: new MockContainers(images) });
}

async function setUp(provider = containerMock()) {
  const node = await nodeOfTest({ provider });
  const engine = provider.containers as MockContainers;
  const caches = async (key: string): Promise<CacheResource[]> => {
    const answer = await node.request("GET", "/v1/caches", { key });
    return ((await answer.json()) as { items: CacheResource[] }).items;
  };
  return {
    ...node,
    provider,
    engine,
    caches,
    pull: (json: object) => node.request("POST", "/v1/images/pull", { json }),
  };
}

/** The kind and the data of each event of an answer. */
async function eventsOf(answer: Response) {
  const blocks = (await answer.text()).split("\n\n").filter((block) => block.startsWith("event: "));
  return blocks.map((block) => {
    const [, kind, data = ""] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? [];
    return [kind, JSON.parse(data)];
  });
}

describe("a container", () => {
  it("is created as requested, and shows the addresses of its ports", async () => {
    const { create, request } = await setUp();
    const container = { network: "bridge", ports: [3000], project: "web", isRootReadOnly: true };
    const made = await create({ image: "base:1", container });
    expect(made).toMatchObject({ image: "base:1", container, addresses: { "3000": "127.0.0.1:43000" } });
    expect(await (await request("GET", `/v1/sandboxes/${made.id}`)).json()).toEqual(made);
    expect(await create()).toMatchObject({ image: "python:3.13-slim", container: null, addresses: {} });
  });

  it("does not show the credentials of its repository", async () => {
    const { create, records } = await setUp();
    const workspace = { git: "https://me:secret@git.example/a.git", ref: "main" };
    const made = await create({ container: { network: "bridge", workspace } });
    expect(made.container?.workspace).toEqual({ git: "https://git.example/a.git", ref: "main" });
    expect(records.get(made.id as never)?.container?.workspace).toEqual(workspace);
  });

  it("is refused if the provider has no containers, or an option is invalid", async () => {
    const { request } = await setUp(new MockProvider());
    const create = (container: object) => request("POST", "/v1/sandboxes", { json: { provider: "mock", container } });
    expect(await errorOf(await create({ ports: [80], network: "bridge" }))).toMatchObject({
      status: 400,
      reason: "no_containers",
      message: expect.stringContaining("cannot use container.network, container.ports: provider"),
    });
    for (const wrong of [{ privileged: true }, { ports: [0] }, { project: "a".repeat(41) }, { network: "-x" }]) {
      expect(await errorOf(await create(wrong))).toMatchObject({ status: 400, reason: "invalid_body" });
    }
  });

  it("does not keep others from booting while its image is pulled", async () => {
    const { create, engine } = await setUp();
    const gate = Promise.withResolvers<void>();
    engine.beforePull = () => gate.promise;
    engine.registry.set("large:1", "sha256:large");
    const slow = [1, 2, 3].map(() => create({ image: "large:1" }));
    expect(await create({ image: "base:1" })).toMatchObject({ state: "ready" });
    gate.resolve();
    expect(await Promise.all(slow)).toMatchObject([{ state: "ready" }, { state: "ready" }, { state: "ready" }]);
  });
});

describe("POST /v1/images/pull", () => {
  it("reports the progress of each layer, and its end", async () => {
    const { pull, engine } = await setUp();
    engine.registry.set("new:1", "sha256:new");
    const answer = await pull({ image: "new:1" });
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
    const layer = { image: "new:1", layer: "layer-1", totalBytes: 100 };
    expect(await eventsOf(answer)).toEqual([
      ["progress", { ...layer, status: "downloading", doneBytes: 40 }],
      ["progress", { ...layer, status: "complete", doneBytes: 100 }],
      ["done", { image: "new:1" }],
    ]);
    expect(engine.images.get("new:1")).toBe("sha256:new");
    expect(await eventsOf(await pull({ image: "new:1" }))).toEqual([["done", { image: "new:1" }]]);
    expect(engine.pulls).toEqual(["new:1"]);
    await eventsOf(await pull({ image: "new:1", policy: "always", provider: "mock" }));
    expect(engine.pulls).toEqual(["new:1", "new:1"]);
  });

  it("reports why it failed", async () => {
    const { pull } = await setUp();
    const [[kind, error] = []] = await eventsOf(await pull({ image: "nowhere:1" }));
    expect([kind, error]).toMatchObject(["error", { code: "not_found", reason: "image_not_found" }]);
    expect(await errorOf(await pull({ image: "-rm" }))).toMatchObject({ status: 400, reason: "invalid_body" });
    expect(await errorOf(await pull({ image: "a:1", provider: "gvisor" }))).toMatchObject({ status: 501 });
    const plain = await setUp(new MockProvider());
    expect(await errorOf(await plain.pull({ image: "a:1" }))).toMatchObject({
      status: 501,
      reason: "no_container_provider",
    });
  });

  it("makes a provider of virtual machines fetch its image, but no path of the node's machine", async () => {
    const provide: Provider["provide"] = async (rootfs, { onProgress }) =>
      onProgress?.({ image: rootfs, layer: "kernel", status: "building", doneBytes: 0, totalBytes: undefined });
    const { pull } = await setUp(Object.assign(new MockProvider(), { provide }));
    expect(await eventsOf(await pull({ image: "host", provider: "mock" }))).toEqual([
      ["progress", { image: "host", layer: "kernel", status: "building", doneBytes: 0, totalBytes: null }],
      ["done", { image: "host" }],
    ]);
    const refused = await pull({ image: "srv/own", provider: "mock" });
    expect(await errorOf(refused)).toMatchObject({ status: 400, reason: "unusable_image" });
  });

  it("cancels the pull when its caller leaves", async () => {
    const { listen, engine } = await setUp();
    engine.registry.set("large:1", "sha256:large");
    const stopped = Promise.withResolvers<void>();
    engine.beforePull = (signal) =>
      new Promise((_, reject) =>
        signal.addEventListener("abort", () => {
          stopped.resolve();
          reject(signal.reason);
        }),
      );
    await using server = await listen();
    const gone = new AbortController();
    const answer = await server.fetch("POST", "/v1/images/pull", { json: { image: "large:1" }, signal: gone.signal });
    await answer.body?.getReader().read();
    gone.abort();
    await stopped.promise;
    expect(engine.images.has("large:1")).toBe(false);
  });
});

describe("caches", () => {
  const container = { project: "web", caches: [{ name: "npm", path: "/root/.npm" }] };

  it("are separate for each tenant, even with the same project name", async () => {
    const { create, caches, owner, key, engine } = await setUp();
    const other = key({ tenant: "other" });
    const mine = await create({ container });
    const theirs = await create({ container }, { key: other });
    expect(mine.container).toEqual(container);
    expect(await caches(owner)).toEqual([{ project: "web", name: "npm", sizeBytes: 1024, usedBy: [mine.id] }]);
    expect(await caches(other)).toEqual([{ project: "web", name: "npm", sizeBytes: 1024, usedBy: [theirs.id] }]);
    expect(await caches(key({ tenant: "third", scopes: ["admin"] }))).toEqual([]);
    expect(engine.caches.size).toBe(2);
  });

  it("are shared by the sandboxes of one project, and its forks", async () => {
    const { create, caches, owner, request } = await setUp();
    const one = await create({ container });
    const two = await create({ container });
    const forked = await request("POST", `/v1/sandboxes/${one.id}/fork`, { json: {} });
    const [three] = ((await forked.json()) as { items: { id: string }[] }).items;
    const [cache] = await caches(owner);
    expect(cache?.usedBy.toSorted()).toEqual([one.id, two.id, three?.id].toSorted());
  });

  it("can be cleared by their tenant when no sandbox uses them", async () => {
    const { create, caches, owner, key, request } = await setUp();
    const { id } = await create({ container });
    const clear = (path: string, options = {}) => request("DELETE", `/v1/caches/${path}`, options);
    const refused = await errorOf(await clear("web/npm"));
    expect(refused).toMatchObject({ status: 412, reason: "cache_in_use" });
    await request("DELETE", `/v1/sandboxes/${id}`);
    expect(await errorOf(await clear("web/npm", { key: key({ tenant: "other" }) }))).toMatchObject({ status: 404 });
    for (const nothing of ["web/pip", "other/npm", "..%2f../npm", "web/..%2fcontainers"]) {
      expect(await errorOf(await clear(nothing)), nothing).toMatchObject({ status: 404, reason: "no_such_cache" });
    }
    expect((await clear("web/npm")).status).toBe(204);
    expect(await caches(owner)).toEqual([]);
  });
});

describe("kept volumes", () => {
  async function setUpVolumes() {
    const node = await setUp();
    const volumes = async (key?: string): Promise<VolumeResource[]> => {
      const answer = await node.request("GET", "/v1/volumes", key === undefined ? {} : { key });
      return ((await answer.json()) as { items: VolumeResource[] }).items;
    };
    const destroy = (id: string, query = "?volumes=keep") => node.request("DELETE", `/v1/sandboxes/${id}${query}`);
    const remove = (name: string, options = {}) => node.request("DELETE", `/v1/volumes/${name}`, options);
    return { ...node, volumes, destroy, remove };
  }

  it("are those of sandboxes that were destroyed with volumes=keep, and only their tenant sees them", async () => {
    const { create, destroy, volumes, key, engine } = await setUpVolumes();
    const [kept, gone] = [await create(), await create()];
    expect((await destroy(kept.id)).status).toBe(204);
    expect((await destroy(gone.id, "")).status).toBe(204);
    expect([...engine.volumes.keys()]).toEqual([kept.id]);
    const name = `sandpiper-data-${kept.id}`;
    expect(await volumes()).toEqual([
      {
        name,
        provider: "mock",
        sandbox: kept.id,
        path: "/.data",
        sizeBytes: 1024,
        keptAt: expect.any(String),
        usedBy: [],
      },
    ]);
    expect(await volumes(key({ tenant: "other", scopes: ["admin"] }))).toEqual([]);
  });

  it("can be mounted in a new sandbox of the same tenant, and removed when no sandbox uses them", async () => {
    const { create, destroy, volumes, remove, request, key } = await setUpVolumes();
    const { id } = await create();
    const name = `sandpiper-data-${id}`;
    const json = { provider: "mock", container: { volumes: [{ name }] } };
    const refused = { status: 404, reason: "no_such_volume" };
    expect(await errorOf(await request("POST", "/v1/sandboxes", { json }))).toMatchObject(refused);
    await destroy(id);
    const other = key({ tenant: "other" });
    expect(await errorOf(await request("POST", "/v1/sandboxes", { json, key: other }))).toMatchObject(refused);
    const user = await create({ container: json.container });
    expect(await volumes()).toMatchObject([{ name, usedBy: [user.id] }]);
    expect(await errorOf(await remove(name))).toMatchObject({ status: 412, reason: "volume_in_use" });
    await destroy(user.id, "");
    expect(await volumes()).toMatchObject([{ name, usedBy: [] }]);
    expect(await errorOf(await remove(name, { key: other }))).toMatchObject(refused);
    for (const nothing of ["postgres", "..%2f..", `sandpiper-data-${user.id}`]) {
      expect(await errorOf(await remove(nothing)), nothing).toMatchObject(refused);
    }
    expect((await remove(name)).status).toBe(204);
    expect(await volumes()).toEqual([]);
    expect(await errorOf(await remove(name))).toMatchObject(refused);
  });

  it("need a provider that keeps volumes, and a sandbox that has them", async () => {
    const { create, destroy, request, engine } = await setUpVolumes();
    const { id } = await create();
    expect(await errorOf(await destroy(id, "?volumes=some"))).toMatchObject({ status: 400, reason: "invalid_query" });
    await request("POST", `/v1/sandboxes/${id}/pause`);
    expect(await errorOf(await destroy(id))).toMatchObject({ reason: "not_ready", hint: "resume it first" });
    Object.assign(engine, { kept: undefined });
    const { id: plain } = await create();
    expect(await errorOf(await destroy(plain))).toMatchObject({ reason: "provider_lacks_capability" });
    expect((await request("GET", `/v1/sandboxes/${plain}`)).status).toBe(200);
  });
});

describe("POST /v1/sandboxes/{id}/stop", () => {
  it("is refused by a provider without containers, with the alternative", async () => {
    const { create, request } = await setUp(new MockProvider());
    const { id } = await create({});
    const stop = () => request("POST", `/v1/sandboxes/${id}/stop`, { json: { timeoutMs: 0 } });
    expect(await errorOf(await stop())).toMatchObject({
      status: 501,
      reason: "provider_lacks_capability",
      hint: expect.stringContaining("pause"),
    });
    expect((await request("POST", `/v1/sandboxes/${id}/start`)).status).toBe(200);
    const tooLong = await request("POST", `/v1/sandboxes/${id}/stop`, { json: { timeoutMs: 1e9 } });
    expect(await errorOf(tooLong)).toMatchObject({ status: 400 });
  });
});

describe("POST /v1/sandboxes/{id}/rebuild", () => {
  it("answers with the rebuilt sandbox, also with the sandbox's token", async () => {
    const { create, request, engine } = await setUp();
    const { id, token } = await create({ image: "base:1" });
    engine.images.set("base:1", "sha256:new");
    const answer = await request("POST", `/v1/sandboxes/${id}/rebuild`, { key: token });
    expect([answer.status, await answer.json()]).toMatchObject([200, { id, state: "ready", image: "base:1" }]);
    expect(await engine.isOutdated(id as never)).toBe(false);
  });
});
