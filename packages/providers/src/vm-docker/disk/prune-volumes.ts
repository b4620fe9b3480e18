import { callEngine } from "../driver/engine-http.ts";

/** The label of caches, which provider docker sets. */
const CACHE_LABEL = "sandpiper.cache";
/** Older engines also prune named volumes, and do not know the filter that newer ones need for that. */
const FIRST_API_WITH_ALL = 42;

/** Removes the volumes of the sandboxes of an earlier machine, and keeps caches. */
export async function pruneVolumes(engineUrl: string, signal: AbortSignal): Promise<void> {
  const { ApiVersion = "1.0" } = JSON.parse(
    await callEngine(engineUrl, { method: "GET", path: "/version", signal }),
  ) as {
    readonly ApiVersion?: string;
  };
  const hasAll = Number(ApiVersion.split(".")[1]) >= FIRST_API_WITH_ALL;
  const filters = { "label!": [CACHE_LABEL], ...(hasAll ? { all: ["true"] } : {}) };
  const path = `/volumes/prune?filters=${encodeURIComponent(JSON.stringify(filters))}`;
  await callEngine(engineUrl, { method: "POST", path, signal });
}
