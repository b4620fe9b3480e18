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

const verifyStore: Verb = {
  name: "store verify",
  summary: "list the objects of a store that nodes refuse",
  options: [jsonOption],
  details: `${details}
Checks the signatures of control objects and the encryption of states and manifests. It does not read chunks, and changes
nothing.`,
  exitCodes: [
    ["0", "nodes accept all objects"],
    ["1", "nodes refuse some objects; the output names them"],
  ],
  learnMore: "docs/store.md",
  async run(arguments_) {
    const { checkStore, loadNodeConfig } = await import("@sandpiper/node/server");
    const bad = await checkStore(await loadNodeConfig({ argv: [], env: process.env }));
    const lines = bad.length === 0 ? ["all objects are sound"] : bad.map(({ key, fault }) => `${key}: ${fault}`);
    await showResult(arguments_, { json: bad, lines });
    return bad.length === 0 ? 0 : 1;
  },
};

const repairStore: Verb = {
  name: "store repair",
  summary: "replace the forged, damaged or missing lock of a sandbox at rest",
  operands: ["SANDBOX"],
  options: [
    {
      name: "accept-older-state",
      summary: "accept a state that is older than the lock records, as after a restored backup",
    },
    jsonOption,
  ],
  details: `${details}
Waits as long as a lease first: the owner of a running sandbox replaces a bad lock itself. Then writes a new lock from the
sandbox's state, and any node can take the sandbox. Deletes the lock if the sandbox has no state. First find out who else
can write to the store.`,
  examples: ["sandpiper store repair 01234567-89ab-4cde-8f01-23456789abcd"],
  learnMore: "docs/store.md",
  async run(arguments_) {
    const { loadNodeConfig, repairSandbox } = await import("@sandpiper/node/server");
    const config = await loadNodeConfig({ argv: [], env: process.env });
    const [id = ""] = arguments_.operands;
    const repair = await repairSandbox(config, id, { acceptsOlderState: arguments_.has("accept-older-state") });
    await showResult(arguments_, { json: { sandbox: id, lock: repair }, lines: [REPAIRS[repair]] });
    return undefined;
  },
};

const REPAIRS = {
  sound: "nodes accept the lock; nothing was changed",
  written: "wrote a new lock; any node can take the sandbox",
  removed: "deleted the lock: the sandbox has no state",
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
  summary: "check and repair the shared store, migrate it, or replace its secret",
  options: [],
  actions: [verifyStore, repairStore, migrateStore, rotateStore],
};
