import type { Verb } from "../command/verb.ts";
import { showResult } from "../output/show.ts";

const jsonOption = { name: "json", summary: "print a JSON object" };
const details =
  "Reads the store and the secrets from the environment, the configuration file and the home of a node, as a node does.";

const migrateStore: Verb = {
  name: "store migrate",
  summary: "sign the objects of a store that an earlier version wrote",
  options: [jsonOption],
  details: `${details}\nStop all nodes first, and make sure that no other program can write to the store.`,
  examples: ["SANDPIPER_STORE=s3://bucket/prefix sandpiper store migrate"],
  learnMore: "docs/store.md",
  run: (arguments_) => sign(arguments_, { acceptsUnsigned: true }),
};

const rotateStore: Verb = {
  name: "store rotate",
  summary: "sign the objects of a store with the current secret",
  options: [jsonOption],
  details: `${details}\nNodes can run meanwhile. Afterwards, remove the earlier secret from acceptedClusterSecrets.`,
  examples: ["SANDPIPER_STORE=s3://bucket/prefix sandpiper store rotate"],
  learnMore: "docs/cluster.md",
  run: (arguments_) => sign(arguments_, { acceptsUnsigned: false }),
};

async function sign(
  arguments_: Parameters<NonNullable<Verb["run"]>>[0],
  options: { readonly acceptsUnsigned: boolean },
): Promise<undefined> {
  const { loadNodeConfig, signStore } = await import("@sandpiper/node/server");
  const signed = await signStore(await loadNodeConfig({ argv: [], env: process.env }), options);
  await showResult(arguments_, { json: { signed }, lines: [`signed ${signed} objects`] });
  return undefined;
}

export const storeVerb: Verb = {
  name: "store",
  summary: "migrate the shared store, or replace its secret",
  options: [],
  actions: [migrateStore, rotateStore],
};
