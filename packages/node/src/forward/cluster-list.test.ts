import { createSandboxId } from "@sandpiper/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { encodeCursor, parseCursor } from "../records/page-cursor.ts";
import { ClusterNodes } from "./testing/cluster-nodes.ts";

let nodes: ClusterNodes;

beforeEach(() => {
  nodes = new ClusterNodes();
});

afterEach(() => nodes[Symbol.asyncDispose]());

interface Item {
  readonly id: ReturnType<typeof createSandboxId>;
  readonly createdAt: string;
}

/** A sandbox created in the given second. */
const item = (second: number): Item => ({ id: createSandboxId(), createdAt: new Date(second * 1000).toISOString() });

/** Lists like a node: newest first, and after a cursor only sandboxes that follow it. */
function listing(items: readonly Item[], most = Number.POSITIVE_INFINITY) {
  return (request: Request) => {
    const query = new URL(request.url).searchParams;
    const limit = Math.min(most, Number(query.get("limit") ?? 100));
    const cursor = query.get("cursor") === null ? undefined : parseCursor(query.get("cursor") ?? "");
    const place = items.findIndex(({ id }) => id === cursor?.id);
    const after = items.filter(({ createdAt }, at) => {
      if (cursor === undefined) return true;
      const ms = Date.parse(createdAt);
      return ms < cursor.createdAtMs || (ms === cursor.createdAtMs && place !== -1 && at > place);
    });
    const shown = after.slice(0, limit);
    const last = after.length > limit ? shown.at(-1) : undefined;
    const nextCursor = last ? encodeCursor({ createdAtMs: Date.parse(last.createdAt), id: last.id }) : null;
    return Response.json({ items: shown, nextCursor });
  };
}

async function list(url: string, query = "") {
  const response = await fetch(`${url}/v1/sandboxes${query}`, {
    headers: { authorization: "Bearer spk_0a1b2c3d_key" },
  });
  const page = (await response.json()) as { readonly items: readonly Item[]; readonly nextCursor: string | null };
  return { ...page, missing: response.headers.get("missing") || null };
}

describe("the list of sandboxes of a cluster", () => {
  it("contains the sandboxes of all nodes, newest first, and asks each node once", async () => {
    const [a, b, c] = [[item(5), item(2)], [item(4)], [item(3), item(1)]];
    let asked = 0;
    const url = await nodes.start("1", listing(a));
    await nodes.start("2", (request) => {
      asked++;
      return listing(b)(request);
    });
    await nodes.start("3", listing(c));
    const { items, nextCursor, missing } = await list(url);
    expect(items.map(({ createdAt }) => Date.parse(createdAt) / 1000)).toEqual([5, 4, 3, 2, 1]);
    expect([nextCursor, missing, asked]).toEqual([null, null, 1]);
  });

  it("has pages of a bounded size, however many nodes fill them", async () => {
    const large = (second: number) => ({ ...item(second), metadata: "x".repeat(500_000) });
    const [a, b] = [[8, 6, 4, 2].map(large), [7, 5, 3, 1].map(large)];
    const url = await nodes.start("1", listing(a));
    await nodes.start("2", listing(b));
    const first = await list(url);
    expect(JSON.stringify(first.items).length).toBeLessThan(2.1 * 1024 * 1024);
    const second = await list(url, `?cursor=${first.nextCursor}`);
    const seen = [...first.items, ...second.items].map(({ createdAt }) => Date.parse(createdAt) / 1000);
    expect(seen).toEqual([8, 7, 6, 5, 4, 3, 2, 1]);
  });

  it.each([1, 2, 3, 4, 7])("contains every sandbox once in pages of %d", async (limit) => {
    const all = [9, 8, 8, 7, 6, 6, 6, 5, 4, 3, 2, 1].map(item);
    const url = await nodes.start("1", listing(all.filter((_, at) => at % 2 === 0)));
    // Sandboxes of one instant must be on one node, or fit on one page.
    await nodes.start("2", listing(all.filter((_, at) => at % 2 === 1 && limit > 2)));
    const wanted = limit > 2 ? all : all.filter((_, at) => at % 2 === 0);
    const seen: string[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const page: Awaited<ReturnType<typeof list>> = await list(url, `?limit=${limit}${cursor && `&cursor=${cursor}`}`);
      expect(page.items.length).toBeLessThanOrEqual(limit);
      seen.push(...page.items.map(({ id }) => id));
      cursor = page.nextCursor;
    }
    expect(seen.toSorted()).toEqual(wanted.map(({ id }) => id).toSorted());
  });

  it("has no gaps when a node shortens its pages", async () => {
    const [a, b] = [[9, 8, 5, 4, 1].map(item), [7, 6, 3, 2].map(item)];
    const url = await nodes.start("1", listing(a));
    await nodes.start("2", listing(b, 1));
    const seen: number[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const page = await list(url, cursor === "" ? "" : `?cursor=${encodeURIComponent(cursor)}`);
      seen.push(...page.items.map(({ createdAt }) => Date.parse(createdAt) / 1000));
      cursor = page.nextCursor;
    }
    expect(seen).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1]);
  });

  it("shows a sandbox once while it moves to another node", async () => {
    const moving = item(1);
    const url = await nodes.start("1", listing([moving]));
    await nodes.start("2", listing([moving]));
    expect((await list(url)).items).toEqual([moving]);
  });

  it("names the nodes that did not answer", async () => {
    const own = item(1);
    const url = await nodes.start("1", listing([own]));
    await nodes.start("2", listing([item(2)]));
    await nodes.stop("2");
    expect(await list(url)).toMatchObject({ items: [own], missing: "00000000-0000-4000-8000-000000000002" });
  });

  it("is refused without asking the other nodes", async () => {
    let asked = 0;
    const url = await nodes.start("1", () => new Response("no", { status: 403 }));
    await nodes.start("2", () => {
      asked++;
      return new Response();
    });
    const response = await fetch(`${url}/v1/sandboxes`, { headers: { authorization: "Bearer spk_0a1b2c3d_key" } });
    expect([response.status, asked]).toEqual([403, 0]);
  });
});
