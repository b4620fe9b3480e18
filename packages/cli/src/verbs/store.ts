import type { Verb } from "../command/verb.ts";
import { showResult } from "../output/show.ts";

const jsonOption = { name: "json", summary: "print a JSON object" };
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
  options: [
    { name: "data", summary: "also encrypt checkpoints and states with the current secret; stop all nodes first" },
    jsonOption,
  ],
  details: `${details}
Without --data, nodes can run meanwhile. Keep the earlier secret in acceptedClusterSecrets while checkpoints that were
taken under it exist; --data encrypts them again, and the earlier secret can go.`,
  examples: ["SANDPIPER_STORE=s3://bucket/prefix sandpiper store rotate"],
  learnMore: "docs/cluster.md",
  run: (arguments_) => sign(arguments_, { acceptsUnsigned: false, rewritesData: arguments_.has("data") }),
};

async function sign(
  arguments_: Parameters<NonNullable<Verb["run"]>>[0],
  options: { readonly acceptsUnsigned: boolean; readonly rewritesData: boolean },
): Promise<undefined> {
  const { loadNodeConfig, signStore } = await import("@sandpiper/node/server");
  const { signed, encrypted } = await signStore(await loadNodeConfig({ argv: [], env: process.env }), options);
  await showResult(arguments_, {
    json: { signed, encrypted },
    lines: [`signed ${signed} objects${options.rewritesData ? `, encrypted ${encrypted}` : ""}`],
  });
  return undefined;
}

export const storeVerb: Verb = {
  name: "store",
  summary: "migrate the shared store, or replace its secret",
  options: [],
  actions: [migrateStore, rotateStore],
};
