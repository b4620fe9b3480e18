import type { ListSandboxesQuery, NodeResource } from "@sandpiper/protocol";
import { z } from "zod";
import type { Principal } from "../auth/principal.ts";
import type { StoredSandboxes } from "../handoff/stored-sandboxes.ts";
import { encodeCursor } from "../records/page-cursor.ts";
import { MAX_PAGE_BYTES } from "../records/sqlite-sandbox-records.ts";
import { sandboxFilter } from "../sandboxes/sandbox-filter.ts";
import type { RequestForwarder } from "./request-forwarder.ts";

const TIMEOUT_MS = 3000;

/** Loose, because nodes of another version may send more fields. */
const pageSchema = z.object({
  items: z.array(z.looseObject({ id: z.string(), createdAt: z.string() })),
  nextCursor: z.string().nullable(),
});

export type SandboxListPage = z.infer<typeof pageSchema>;
type Item = SandboxListPage["items"][number];

export interface ClusterPage extends SandboxListPage {
  /** Ids of nodes that did not answer in time: the page shows their sandboxes as they were last saved. */
  readonly missingNodes: readonly string[];
}

export interface ClusterListOptions {
  readonly own: SandboxListPage;
  readonly principal: Principal;
  readonly query: ListSandboxesQuery;
  readonly requestId: string;
  readonly nodes: readonly NodeResource[];
  readonly forwarder: RequestForwarder;
  readonly stored: Pick<StoredSandboxes, "list">;
}

/** Lists the sandboxes of all nodes and those at rest, newest first. The store lists those of nodes that do not answer. */
export async function clusterList(request: Request, options: ClusterListOptions): Promise<ClusterPage> {
  const { own, nodes, principal, query, stored } = options;
  const others = nodes.flatMap(({ id, url, isAlive, isThisNode }) =>
    isAlive && !isThisNode && url !== null ? [{ id, url }] : [],
  );
  const answers = await Promise.all(others.map(({ url }) => askNode(request, url, options).catch(() => undefined)));
  const missingNodes = others.filter((_, at) => answers[at] === undefined).map(({ id }) => id);
  const pages = [own, ...answers.filter((page) => page !== undefined)];
  const held = newestFirst(pages.flatMap(({ items }) => items));
  const limit = Math.min(sandboxFilter(principal, query).limit, completeCount(held, pages));
  const rest = await stored.list(principal, query, {
    except: new Set(held.map(({ id }) => id)),
    answered: new Set(others.filter((_, at) => answers[at] !== undefined).map(({ id }) => id)),
    sinceMs: Date.parse(held[limit - 1]?.createdAt ?? "") || Number.NEGATIVE_INFINITY,
  });
  const isMore = rest.isMore || pages.some(({ nextCursor }) => nextCursor !== null);
  return { ...cut(newestFirst([...held, ...rest.items]), { limit, isMore }), missingNodes };
}

async function askNode(request: Request, url: string, options: ClusterListOptions): Promise<SandboxListPage> {
  const { requestId, forwarder } = options;
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const same = new Request(request.url, { headers: request.headers, signal });
  const isStillRight = async () => true;
  // Without bindings, a truncated answer of the other node does not close the client's connection.
  const response = await forwarder.forward(same, { url, requestId, bindings: {}, isStillRight });
  if (response.status !== 200) throw new Error(`the node answered with status ${response.status}`);
  return pageSchema.parse(await response.json());
}

/** How many items precede the end of every page that has a next one: a node may have shortened its page. */
function completeCount(items: readonly Item[], pages: readonly SandboxListPage[]): number {
  const ends = pages.filter(({ nextCursor }) => nextCursor !== null).map(({ items }) => items.at(-1)?.createdAt ?? "");
  const endMs = Math.max(...ends.map((createdAt) => Date.parse(createdAt)));
  const count = items.findIndex(({ createdAt }) => Date.parse(createdAt) < endMs);
  return count === -1 ? Number.POSITIVE_INFINITY : count;
}

function newestFirst(items: readonly Item[]): Item[] {
  const each = [...new Map(items.map((item) => [item.id, item])).values()];
  return each.sort((one, other) => Date.parse(other.createdAt) - Date.parse(one.createdAt));
}

function cut(items: Item[], { limit, isMore }: { readonly limit: number; readonly isMore: boolean }): SandboxListPage {
  const shown = items.slice(0, wholeInstants(items, Math.min(limit, countWithin(items, MAX_PAGE_BYTES))));
  const last = shown.at(-1);
  if ((!isMore && shown.length === items.length) || last === undefined) return { items: shown, nextCursor: null };
  const cursor = { createdAtMs: Date.parse(last.createdAt), id: last.id as never };
  return { items: shown, nextCursor: encodeCursor(cursor) };
}

/** How many items fit; at least one. */
function countWithin(items: readonly Item[], maxBytes: number): number {
  let bytes = 0;
  const count = items.findIndex((item) => {
    bytes += Buffer.byteLength(JSON.stringify(item));
    return bytes > maxBytes;
  });
  return count === -1 ? items.length : Math.max(1, count);
}

/**
 * Keeps sandboxes of one instant on one page. A node knows only the order of its own sandboxes, so the next page could
 * miss some of them otherwise.
 */
function wholeInstants(items: readonly Item[], limit: number): number {
  let count = limit;
  while (count > 0 && count < items.length && items[count]?.createdAt === items[count - 1]?.createdAt) count--;
  return count === 0 ? limit : count;
}
