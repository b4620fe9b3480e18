import type { Verb } from "../command/verb.ts";
import { showResult } from "../output/show.ts";

const jsonOption = { name: "json", summary: "print a JSON object" };
const REPORT_EVERY_MS = 3000;
const details =
  "Reads the store and the secrets from the environment, the configuration file and the home of a node, as a node does.";

const migrateStore: Verb = {
  name: "store migrate",
  summary: "sign and encrypt the objects of a store that an earlier version wrote",
  options: [jsonOption],
  details: `${details}\nStop all nodes first, and make sure that no other program can write to the store.`,
  examples: ["SANDPIPER_STORE=s3://bucket/prefix sandpiper store migrate"],
  learnMore: "docs/store.md",
  run: (arguments_) => sign(arguments_, { acceptsUnsigned: true, rewritesData: true }),
};

const rotateStore: Verb = {
  name: "store rotate",
  summary: "sign the objects of a store with the current secret",
  options: [{ name: "data", summary: "also encrypt checkpoints and states with the current secret" }, jsonOption],
  details: `${details}
Nodes can run meanwhile, with the current secret as clusterSecret. Keep the earlier secret in acceptedClusterSecrets while
checkpoints that were taken under it exist; --data encrypts them again, and the earlier secret can go. You can interrupt
the command and repeat it.`,
  examples: ["SANDPIPER_STORE=s3://bucket/prefix sandpiper store rotate --data"],
  learnMore: "docs/cluster.md",
  run: (arguments_) => sign(arguments_, { acceptsUnsigned: false, rewritesData: arguments_.has("data") }),
};

async function sign(
  arguments_: Parameters<NonNullable<Verb["run"]>>[0],
  options: { readonly acceptsUnsigned: boolean; readonly rewritesData: boolean },
): Promise<undefined> {
  const { loadNodeConfig, signStore } = await import("@sandpiper/node/server");
  const config = await loadNodeConfig({ argv: [], env: process.env });
  const { signed, encrypted } = await signStore(config, { ...options, onProgress: reporter() });
  await showResult(arguments_, {
    json: { signed, encrypted },
    lines: [`signed ${signed} objects${options.rewritesData ? `, encrypted ${encrypted}` : ""}`],
  });
  return undefined;
}

/** Reports progress on the standard error stream, every few seconds. */
function reporter() {
  let reportedAtMs = performance.now();
  return ({
    objects,
    chunks,
    bytes,
  }: {
    readonly objects: number;
    readonly chunks: number;
    readonly bytes: number;
  }) => {
    if (performance.now() - reportedAtMs < REPORT_EVERY_MS) return;
    reportedAtMs = performance.now();
    process.stderr.write(`encrypted ${objects} objects, ${chunks} chunks, ${Math.round(bytes / 1e6)} MB\n`);
  };
}

export const storeVerb: Verb = {
  name: "store",
  summary: "migrate the shared store, or replace its secret",
  options: [],
  actions: [migrateStore, rotateStore],
};
