import { type ListSandboxesQuery, listSandboxesQuerySchema, type NodeResource } from "@sandpiper/protocol";
import { z } from "zod";
import type { Principal } from "../auth/principal.ts";
import { readQuery } from "../http/read-query.ts";
import { encodeCursor } from "../records/page-cursor.ts";
import { sandboxFilter } from "../sandboxes/sandbox-filter.ts";
import type { RequestForwarder } from "./request-forwarder.ts";
import type { SandboxesAtRest } from "../handoff/sandboxes-at-rest.ts";

/** Ids of nodes whose sandboxes are not in the list, because they did not answer in time. */
const MISSING_NODES_HEADER = "sandpiper-missing-nodes";

const TIMEOUT_MS = 3000;

/** Nodes of another version may say more about a sandbox. */
const pageSchema = z.object({
  items: z.array(z.looseObject({ id: z.string(), createdAt: z.string() })),
  nextCursor: z.string().nullable(),
});

type Page = z.infer<typeof pageSchema>;

export interface ListEverywhereOptions {
  /** This node's own answer: the query is sound, and whoever asks may ask. */
  readonly own: Response;
  readonly principal: Principal;
  readonly path: string;
  readonly requestId: string;
  readonly nodes: readonly NodeResource[];
  readonly forwarder: RequestForwarder;
  readonly atRest: Pick<SandboxesAtRest, "list">;
}

/** The list of all sandboxes: each node answers for its own, the store for those that no node has; the newest come first. */
export async function listEverywhere(request: Request, options: ListEverywhereOptions): Promise<Response> {
  const { own, path, nodes, principal, atRest } = options;
  const others = nodes.filter(({ isAlive, isThisNode }) => isAlive && !isThisNode);
  const answers = await Promise.all(others.map((node) => askNode(request, node, options).catch(() => undefined)));
  const missing = others.filter((_, at) => answers[at] === undefined).map(({ id }) => id);
  const pages = [pageSchema.parse(await own.json()), ...answers.filter((page) => page !== undefined)];
  const held = newestFirst(pages.flatMap(({ items }) => items));
  const query = readQuery(listSandboxesQuerySchema, path) as ListSandboxesQuery;
  const { limit } = sandboxFilter(principal, query);
  const rest = await atRest.list(principal, query, {
    except: new Set(held.map(({ id }) => id)),
    sinceMs: Date.parse(held[limit - 1]?.createdAt ?? "") || Number.NEGATIVE_INFINITY,
  });
  const isMore = rest.isMore || pages.some(({ nextCursor }) => nextCursor !== null);
  const headers = new Headers(own.headers);
  headers.delete("content-length");
  if (missing.length > 0) headers.set(MISSING_NODES_HEADER, missing.join(", "));
  return new Response(JSON.stringify(cut(newestFirst([...held, ...rest.items]), { limit, isMore })), {
    status: 200,
    headers,
  });
}

async function askNode(request: Request, { url }: NodeResource, options: ListEverywhereOptions): Promise<Page> {
  const { path, requestId, forwarder } = options;
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const same = new Request(request.url, { headers: request.headers, signal });
  // What this answer is made of goes to nobody directly.
  const bindings = {};
  const response = await forwarder.forward(same, { url, path, requestId, bindings, isStillRight: async () => true });
  if (response.status !== 200) throw new Error(`the answer's status is ${response.status}`);
  return pageSchema.parse(await response.json());
}

function newestFirst(items: Page["items"]): Page["items"] {
  const each = [...new Map(items.map((item) => [item.id, item])).values()];
  return each.sort((one, other) => Date.parse(other.createdAt) - Date.parse(one.createdAt));
}

function cut(items: Page["items"], { limit, isMore }: { readonly limit: number; readonly isMore: boolean }): Page {
  const shown = items.slice(0, wholeInstants(items, limit));
  const last = shown.at(-1);
  if ((!isMore && shown.length === items.length) || last === undefined) return { items: shown, nextCursor: null };
  const cursor = { createdAtMs: Date.parse(last.createdAt), id: last.id as never };
  return { items: shown, nextCursor: encodeCursor(cursor) };
}

/**
 * A node knows the order of its own sandboxes alone: those of one instant are shown together, so that the next page, which
 * begins after the last one shown, misses none of them.
 */
function wholeInstants(items: Page["items"], limit: number): number {
  let count = limit;
  while (count > 0 && count < items.length && items[count]?.createdAt === items[count - 1]?.createdAt) count--;
  return count === 0 ? limit : count;
}
